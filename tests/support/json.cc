// SPDX-License-Identifier: MIT
// The only place where the tests' JSON parser is compiled. It is linked into every test program.
#include "json.h"

template class nlohmann::basic_json<>;

namespace forktail::test
{

nlohmann::json parse_json(const std::string &text)
{
	return nlohmann::json::parse(text);
}

} // namespace forktail::test
