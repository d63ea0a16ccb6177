// SPDX-License-Identifier: MIT
// Output made with jansson is valid JSON, whatever bytes a path, an argument or a name has.
#include <cstdlib>
#include <string>

#include "recording/json_block.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"

namespace
{

std::string line(json_t *value)
{
	char *text = json_line(value);
	REQUIRE(text);
	std::string copy = text;
	free(text);
	return copy;
}

template <class Fill> nlohmann::json written(Fill fill)
{
	json_t *array = json_array();
	fill(array);
	return forktail::test::parse_json(line(array)).at(0);
}

} // namespace

TEST_CASE("objects, arrays and numbers nest")
{
	const auto v = written([](json_t *j) {
		json_t *object = json_put_object(j, nullptr);
		json_put_array(object, "empty");
		json_put_count(object, "most", INT64_MAX);
		json_put_count(object, "more", UINT64_MAX);
		json_t *list = json_put_array(object, "list");
		json_put_count(list, nullptr, 1);
		json_put_truth(json_put_object(list, nullptr), "yes", true);
		json_put_number(list, nullptr, 0.5);
		json_put_number(object, "no number", 0.0 / 0.0);
	});
	CHECK(v["empty"].empty());
	CHECK(v["most"].get<int64_t>() == INT64_MAX);
	CHECK(v["more"].get<double>() == Approx(18446744073709551615.0));
	CHECK(v["list"][1]["yes"] == true);
	CHECK(v["list"][2] == 0.5);
	CHECK(v["no number"] == 0);
}

TEST_CASE("members keep their order, and numbers their digits")
{
	json_t *object = json_object();
	json_put_number(object, "z", 5);
	json_put_number(object, "a", 0.1);
	json_put_number(object, "third", 1.0 / 3);
	json_put_number(object, "large", 1234567890.5);
	json_put_number(object, "negative", -3);
	CHECK(line(object) == R"({"z":5,"a":0.1,"third":0.3333333333,"large":1234567890.0,"negative":-3})");
}

TEST_CASE("text of any bytes stays valid")
{
	for (const std::string text : {"plain", "quote\" back\\slash", "line\nfeed\ttab\x01\x7f",
				       "gr\xc3\xbc\xc3\x9f", "\xf0\x9f\x90\x8c"}) {
		const auto v = written([&](json_t *j) { json_put_text(j, nullptr, text.c_str()); });
		CHECK(v.get<std::string>() == text);
	}
	for (const char *bad :
	     {"\xff", "\xc3", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x80z"}) {
		const auto v = written([&](json_t *j) { json_put_text(j, nullptr, bad); });
		CHECK(!v.get<std::string>().empty());
		const auto named =
		    written([&](json_t *j) { json_put_count(json_put_object(j, nullptr), bad, 7); });
		CHECK(named.size() == 1);
		CHECK(*named.begin() == 7);
	}
	CHECK(written([](json_t *j) { json_put_text(j, nullptr, "a\xe9\xc3\xbc"); }) == "a\\xe9\xc3\xbc");
	CHECK(written([](json_t *j) { json_put_text(j, nullptr, "\x1b]52;c;\xff\a"); }) ==
	      "\\x1b]52;c;\\xff\\x07");
}
