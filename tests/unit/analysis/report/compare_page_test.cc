// SPDX-License-Identifier: MIT
// The compare page's data: both sides are complete, infinite bounds are null, and no name can end a script.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "analysis/report.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/sample_comparison.h"

using namespace forktail::analysis;
using namespace forktail::analysis::compare;
using namespace forktail::analysis::report;

namespace
{

std::string PageOf(const Comparison &comparison)
{
	std::string path = "/tmp/forktail-compare-" + std::to_string(getpid()) + ".html", error;
	REQUIRE(WriteComparePage(comparison, path, &error));
	std::ifstream in(path, std::ios::binary);
	std::ostringstream text;
	text << in.rdbuf();
	remove(path.c_str());
	return text.str();
}

nlohmann::json DataOf(const std::string &page)
{
	size_t at = page.find("id=\"run\">");
	REQUIRE(at != std::string::npos);
	at = page.find('>', at) + 1;
	return forktail::test::parse_json(page.substr(at, page.find("</script", at) - at));
}

size_t Count(const std::string &text, const std::string &what)
{
	size_t n = 0;
	for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
		n++;
	return n;
}

double SumOf(const nlohmann::json &heat)
{
	double sum = 0;
	for (const nlohmann::json &cell : heat)
		sum += cell[2].get<double>();
	return sum;
}

} // namespace

TEST_CASE("both sides are on the page, on one scale")
{
	Comparison c = SampleComparison(3);
	nlohmann::json data = DataOf(PageOf(c));
	CHECK(data["a"]["runs"].size() == 3);
	CHECK(data["seconds"] == 20);
	CHECK(SumOf(data["a"]["heat"]) == Approx(20'039)); // a run's
	CHECK(SumOf(data["b"]["heat"]) == Approx(20'059));
	// The share of requests above falls from all to one of them.
	const nlohmann::json &curve = data["b"]["curve"];
	CHECK(curve.front()[0] == 1.0);
	CHECK(curve.back()[0].get<double>() == Approx(1.0 / 20'059));
	CHECK(curve.back()[1] == BucketNs(LatencyBucket(60'000'000)));
	for (size_t i = 1; i < curve.size(); i++) {
		CHECK(curve[i][0] < curve[i - 1][0]);
		CHECK(curve[i][1] > curve[i - 1][1]);
	}
	CHECK(data["causes"][0]["name"] == "fork");
	CHECK(data["verdict"] == "worse");
	CHECK(data["episodes"][0]["b"]["worst_ns"] == 60'000'000);
}

TEST_CASE("unknown values and infinite bounds are null")
{
	nlohmann::json data = DataOf(PageOf(SampleComparison(1)));
	CHECK(data["percentiles"][1]["ratio_interval"].is_null());
	CHECK(data["percentiles"][2]["ratio_interval"][1].is_null());
	CHECK(data["percentiles"][2]["ratio_interval"][0] == 1.3);
	CHECK(data["causes"][1]["ratio"].is_null());
	CHECK(data["advisory"] == true);
}

TEST_CASE("a comparison of long runs has no more columns than a screen")
{
	Comparison c = SampleComparison(1);
	c.a.runs[0].by_second.resize(10'000, c.a.runs[0].by_second[0]);
	nlohmann::json data = DataOf(PageOf(c));
	CHECK(data["column_s"] == 17);
	for (const nlohmann::json &cell : data["a"]["heat"])
		REQUIRE(cell[0] < 600);
	CHECK(SumOf(data["a"]["heat"]) == Approx(10'000'000 + 39));
}

TEST_CASE("the compare page references nothing outside itself, and no name ends a script")
{
	std::string page = PageOf(SampleComparison(2));
	CHECK(Count(page, "</script") == 3); // run, arrays, ours
	CHECK(page.find("alert(1)</script") == std::string::npos);
	CHECK(Count(page, " src=\"") == 0);
	CHECK(page.find("url(") == std::string::npos);
	CHECK(page.find("default-src 'none'") != std::string::npos);
	CHECK(DataOf(page)["b"]["given"] == "runs/</script><script>alert(1)</script>");
}
