// SPDX-License-Identifier: MIT
// Parses JSON printed by programs. The parser is compiled once for all tests, because it takes seconds in
// each file that uses it.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

extern template class nlohmann::basic_json<>;

namespace forktail::test
{

// Throws nlohmann's parse_error, which fails the test, if `text` is no JSON.
nlohmann::json parse_json(const std::string &text);

} // namespace forktail::test
