// SPDX-License-Identifier: MIT
// A page as a file: a template that build.mjs made, with its data put in.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "arrays.h"

namespace forktail::analysis::report
{

// Writes the page to `path` (replacing it). False: *error is one sentence for the user.
bool WritePage(std::string_view page, const nlohmann::json &run, const ReportArrays &arrays,
	       const std::string &path, std::string *error);

} // namespace forktail::analysis::report
