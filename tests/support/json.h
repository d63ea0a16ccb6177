// SPDX-License-Identifier: MIT
// JSON that programs printed, parsed. The parser is compiled once, for all tests: in each that calls it, it
// takes seconds.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

extern template class nlohmann::basic_json<>;

namespace forktail::test
{

// Throws nlohmann's parse_error, which fails the test, where `text` is no JSON.
nlohmann::json parse_json(const std::string &text);

} // namespace forktail::test
