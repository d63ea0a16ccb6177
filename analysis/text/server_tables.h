// SPDX-License-Identifier: MIT
// Tables and JSON of what the server counted itself, beside what forktail recorded.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "analysis/explain/explanation.h"
#include "layout.h"

namespace forktail::analysis
{

// "" if the server's counters were not recorded. Narrow terminals get fewer columns.
std::string ServerCommandsTable(const Explanation &e, const Style &style);
std::string ServerThreadsTable(const Explanation &e, const Style &style);

nlohmann::ordered_json ServerCommandsJson(const ServerCommands &counted);
nlohmann::ordered_json ServerThreadsJson(const Explanation &e);

} // namespace forktail::analysis
