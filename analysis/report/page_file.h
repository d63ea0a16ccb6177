// SPDX-License-Identifier: MIT
// Writes a page: a template made by build.mjs, with its data inserted.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "arrays.h"

namespace forktail::analysis::report
{

// Writes the page to `path` (replacing it), with this mode as far as the umask allows. False: *error is one
// sentence for the user.
bool WritePage(std::string_view page, const nlohmann::json &run, const ReportArrays &arrays, uint32_t mode,
	       const std::string &path, std::string *error);

} // namespace forktail::analysis::report
