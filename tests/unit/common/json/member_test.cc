// SPDX-License-Identifier: MIT
// One member of a large JSON object is read without storing the others.
#include <sstream>

#include "common/json.h"
#include "tests/support/catch.h"

using namespace forktail::common;

TEST_CASE("only the member that is asked for is stored")
{
	std::istringstream text(
	    R"({"run":"x","answer":"fork() took 1 ms","episodes":[{"answer":"no"},{"a":[1]}],"n":1})");
	CHECK(ParseMember(text, "answer") == Json{{"answer", "fork() took 1 ms"}});
	std::istringstream without(R"({"episodes":[{"answer":"no"}]})");
	CHECK(ParseMember(without, "answer") == Json::object());
	std::istringstream cut(R"j({"answer":"fork()","episodes":[)j");
	CHECK(ParseMember(cut, "answer").is_discarded());
	CHECK(Text(Json(Json::value_t::discarded), "answer").empty());
}
