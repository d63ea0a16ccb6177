// SPDX-License-Identifier: MIT
// The text of an explanation fits on a screen for every run. Explanations are made by hand; test_terminal.py
// starts the program.
#include "tests/support/catch.h"
#include "tests/support/sample_explanation.h"
#include "tests/support/text.h"

#include <algorithm>
#include <clocale>

#include "analysis/text.h"
#include "common/format.h"

using namespace forktail::analysis;
using namespace forktail::common;
using forktail::test::contains;

namespace
{

// Lines of a text without colours, none too wide.
std::vector<std::string> Checked(const std::string &text, size_t columns)
{
	INFO(text);
	CHECK_FALSE(contains(text, "\033"));
	CHECK(text.back() == '\n');
	const std::vector<std::string> lines = forktail::analysis::Lines(text);
	for (const std::string &line : lines) {
		INFO(line);
		CHECK(DisplayWidth(line) <= columns);
	}
	return lines;
}

std::vector<SampleSize> Samples()
{
	SampleSize plain, iterations, unrecorded;
	plain.seconds = iterations.seconds = unrecorded.seconds = 10;
	plain.rate = iterations.rate = unrecorded.rate = 2000;
	plain.slow_one_in = iterations.slow_one_in = unrecorded.slow_one_in = 100;
	iterations.requests = false;
	unrecorded.recorder = false;
	return {plain, iterations, unrecorded};
}

Explained SampleRun(const SampleSize &size)
{
	Explained e = SampleExplanation(size);
	e.first_ns = e.zero_ns;
	e.measured_ns = static_cast<uint64_t>(size.seconds * 1e9);
	e.blame.slow_count = e.blame.slow.size();
	e.lead = FindLead(e.blame, UsualFigure());
	return e;
}

} // namespace

TEST_CASE("the output fits on a screen, and is ASCII unless more is allowed")
{
	for (const SampleSize &size : Samples()) {
		Explained e = SampleRun(size);
		// More content than there is room for.
		e.run.warnings.assign(
		    30, "a recording of this run could not be read to its end, and what it held "
			"then is not known");
		for (Episode &episode : e.episodes)
			episode.evidence.assign(8, std::string(300, 'x') + " and more words");
		for (size_t columns : {size_t{80}, size_t{120}, size_t{300}}) {
			Style style;
			style.columns = columns;
			const std::string text = ExplainScreen(e, style);
			CHECK(Checked(text, columns).size() <= kScreenLines);
			CHECK(std::all_of(text.begin(), text.end(),
					  [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
			CHECK(contains(text, "more notes on drops and limits"));
			style.unicode = true;
			const std::string drawn = ExplainScreen(e, style);
			CHECK(Checked(drawn, columns).size() <= kScreenLines);
			CHECK(contains(drawn, "█"));
			CHECK(contains(drawn, "longest  +0.000 s"));
		}
		Style narrow;
		narrow.columns = 40;
		Checked(ExplainScreen(e, narrow), 40);
	}
}

TEST_CASE("the first line is the answer")
{
	Explained e = SampleRun(Samples()[0]);
	REQUIRE(!e.blame.causes.empty());
	REQUIRE(e.lead.causes.size() == 1);
	const Cause first = e.lead.causes[0];
	e.culprits[first].clause = "x";
	CHECK(ExplainScreen(e, {}).rfind("x: " + FormatPercent(e.blame.RowOf(first).share) +
					     " of the slow requests' time (" + CauseName(first) + ").",
					 0) == 0);
	e.blame.slow.clear();
	e.blame.causes.clear();
	e.episodes.clear();
	e.lead = FindLead(e.blame, UsualFigure());
	CHECK(ExplainScreen(e, {}).rfind("Nothing was slow: no request took ", 0) == 0);
	e.blame.errors = e.blame.count;
	CHECK(ExplainScreen(e, {}).rfind("No request was answered.\n", 0) == 0);
}

TEST_CASE("the requested number of episodes is shown with all of their evidence")
{
	Explained e = SampleRun(Samples()[0]);
	const size_t all = e.episodes.size();
	REQUIRE(all > 3);
	for (Episode &episode : e.episodes)
		episode.evidence = {"one fact", "another fact", "the last fact"};
	const std::string text = ExplainScreen(e, {}, all);
	size_t facts = 0;
	for (size_t at = 0; (at = text.find("the last fact", at)) != std::string::npos; at++)
		facts++;
	CHECK(facts == all);
	CHECK(contains(ExplainScreen(e, {}, all - 1), "The " + std::to_string(all - 1) + " worst of "));
}

TEST_CASE("the worst episode is printed with its first sentence, however little room is left")
{
	for (SampleSize size : Samples()) {
		Explained e = SampleRun(size);
		e.run.warnings.assign(30, std::string(200, 'w'));
		e.lead.causes.push_back(Cause::Unknown);
		for (Cause cause : e.lead.causes) // takes the whole screen
			e.culprits[cause].clause = std::string(6000, 'c');
		for (Episode &episode : e.episodes)
			episode.evidence = {"the first fact", "another fact"};
		const std::string text = ExplainScreen(e, {});
		CHECK(contains(text, "the first fact"));
		CHECK_FALSE(contains(text, "another fact"));
	}
}

TEST_CASE("no episode is printed without its first sentence")
{
	Explained e = SampleRun(Samples()[0]);
	for (Episode &episode : e.episodes)
		episode.evidence = {std::string(500, 'x') + " the first fact"};
	const std::string text = ExplainScreen(e, {});
	size_t facts = 0, worst = 0;
	for (const std::string &line : forktail::analysis::Lines(text)) {
		facts += contains(line, "the first fact");
		worst += contains(line, ", worst ");
	}
	CHECK(facts == worst);
	CHECK(facts > 0);
}

TEST_CASE("the longest latency of each interval is stored, whichever pass sees it, in constant room")
{
	Peaks one, two, all;
	uint64_t seed = 7;
	std::vector<std::pair<uint64_t, uint64_t>> seen;
	for (int i = 0; i < 50'000; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		const uint64_t due = (seed >> 20) % 3'600'000'000'000, latency = 1 + (seed >> 40) % 1'000'000;
		(i % 2 ? one : two).Add(due, latency);
		all.Add(due, latency);
		seen.emplace_back(due, latency);
	}
	one.Merge(two);
	const uint64_t end = 3'600'000'000'000;
	CHECK(one.Over(0, end, 70) == all.Over(0, end, 70));
	// A column of the chart never shows less than the requests due in it, and the whole chart never more
	// than the maximum.
	const std::vector<uint64_t> columns = all.Over(0, end, 60);
	uint64_t most = 0;
	for (const auto &[due, latency] : seen) {
		CHECK(columns[due * 60 / end] >= latency);
		most = std::max(most, latency);
	}
	CHECK(*std::max_element(columns.begin(), columns.end()) == most);
	Peaks far;
	far.Add(UINT64_MAX, 5);
	far.Add(0, 6);
	CHECK(far.Over(0, UINT64_MAX, 2) == std::vector<uint64_t>{6, 5});
}

TEST_CASE("the width of text is its displayed width")
{
	setlocale(LC_CTYPE, "C.UTF-8");
	Style style;
	CHECK(DisplayWidth("naïve") == 5);
	CHECK(DisplayWidth("日本") == 4);
	CHECK(Ellipsized("redis-server", 8, style) == "redis...");
	style.unicode = true;
	CHECK(Ellipsized("日本語の名", 6, style) == "日本…");
	CHECK(DisplayWidth(PadLeft("日本", 10)) == 10);
	for (const std::string &line :
	     forktail::analysis::Lines(Wrap(std::string(95, 'a') + " b " + std::string(50, 'c'), 0, 2, 40)))
		CHECK(DisplayWidth(line) <= 40);
	CHECK(Wrap("not 30.0 ms, at 95 % of 3 servers", 0, 2, 12) ==
	      "not 30.0 ms,\n  at 95 % of\n  3 servers\n");
	CHECK(Wrap("it took 30.0 ms", 0, 2, 12) == "it took\n  30.0 ms\n");
	CHECK(Bar(0, 4, style) == "    ");
	CHECK(Bar(0.0001, 4, style) == "▏   ");
	CHECK(Bar(1, 4, style) == "████");
	style.unicode = false;
	CHECK(Bar(0.5, 4, style) == "##  ");
}
