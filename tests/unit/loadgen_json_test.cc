// SPDX-License-Identifier: MIT
// What the JSON writer writes is what a JSON reader reads, whatever bytes a path or an argument holds.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "loadgen/json.h"
#include "tests/support/catch.h"

namespace
{

template <class Fill> nlohmann::json written(Fill fill)
{
	char *text = nullptr;
	size_t size = 0;
	json j = {open_memstream(&text, &size), true};
	fill(&j);
	fclose(j.to);
	const auto value = nlohmann::json::parse(text);
	free(text);
	return value;
}

} // namespace

TEST_CASE("objects, arrays and numbers nest")
{
	const auto v = written([](json *j) {
		json_begin(j, nullptr, '{');
		json_begin(j, "empty", '[');
		json_end(j, ']');
		json_count(j, "most", UINT64_MAX);
		json_begin(j, "list", '[');
		json_count(j, nullptr, 1);
		json_begin(j, nullptr, '{');
		json_truth(j, "yes", true);
		json_end(j, '}');
		json_number(j, nullptr, 0.5);
		json_end(j, ']');
		json_number(j, "no number", 0.0 / 0.0);
		json_end(j, '}');
	});
	CHECK(v["empty"].empty());
	CHECK(v["most"].get<uint64_t>() == UINT64_MAX);
	CHECK(v["list"][1]["yes"] == true);
	CHECK(v["list"][2] == 0.5);
	CHECK(v["no number"] == 0);
}

TEST_CASE("text of any bytes stays valid")
{
	for (const std::string text : {"plain", "quote\" back\\slash", "line\nfeed\ttab\x01\x7f",
				       "gr\xc3\xbc\xc3\x9f", "\xf0\x9f\x90\x8c"}) {
		const auto v = written([&](json *j) { json_text(j, nullptr, text.c_str()); });
		CHECK(v.get<std::string>() == text);
	}
	for (const char *bad :
	     {"\xff", "\xc3", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x80z"}) {
		const auto v = written([&](json *j) { json_text(j, nullptr, bad); });
		CHECK(!v.get<std::string>().empty());
	}
}
