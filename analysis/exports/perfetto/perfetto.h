// SPDX-License-Identifier: MIT
// A run as a trace for Perfetto (ui.perfetto.dev). docs/reference/exports-and-sql.md describes its contents.
#pragma once

#include <memory>
#include <string>

#include "analysis/exports/exporter.h"

namespace forktail::analysis::exports
{

// Null: *error is one sentence.
std::unique_ptr<Exporter> MakePerfetto(const std::string &path, std::string *error);

} // namespace forktail::analysis::exports
