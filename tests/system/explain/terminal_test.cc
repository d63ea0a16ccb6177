// SPDX-License-Identifier: MIT
// `forktail explain` on a terminal and in a pipe: it fits on a screen for every run, views show everything
// about one item, and a missing item is refused with one message.
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/process.h"
#include "tests/support/sample_explanation.h"
#include "tests/support/tempdir.h"
#include "tests/support/text.h"

#include <algorithm>
#include <unistd.h>

#include "analysis/text.h"
#include "common/format.h"

using namespace forktail::analysis;
using namespace forktail::common;
using forktail::test::contains;
using forktail::test::parse_json;
using forktail::test::program;
using forktail::test::Result;
using forktail::test::TempDir;

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

// A run in a directory, made without a server.
struct Made {
	TempDir dir;
	std::string run = dir.path();

	Made()
	{
		REQUIRE(forktail::test::run({program("bench_explain_run"), run, "0.05", "5000"}).status == 0);
	}
	Result Explain(std::vector<std::string> more,
		       const std::vector<std::pair<std::string, std::string>> &environment = {}) const
	{
		std::vector<std::string> argv = {program("forktail"), "explain", run};
		argv.insert(argv.end(), more.begin(), more.end());
		return forktail::test::run(argv, forktail::test::Seconds(60), {environment, "", ""});
	}
	// On a terminal with this many columns.
	std::string OnTerminal(size_t columns, const std::string &before) const
	{
		return forktail::test::run({"script", "-qec",
					    "stty cols " + std::to_string(columns) + "; " + before + " " +
						program("forktail") + " explain " + run,
					    "/dev/null"})
		    .out;
	}
};

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

TEST_CASE("a terminal gets colours and its width; NO_COLOR and a pipe get no colours")
{
	Made made;
	const std::string utf8 = "LC_ALL=C.UTF-8 TERM=xterm";
	const std::string coloured = made.OnTerminal(72, utf8 + " NO_COLOR=");
	CHECK(contains(coloured, "\033[1m"));
	std::string plain = made.OnTerminal(72, utf8 + " NO_COLOR=1");
	std::erase(plain, '\r');
	REQUIRE(!plain.empty());
	CHECK(contains(plain, "█"));
	CHECK(Checked(plain, 72).size() <= kScreenLines + 2);
	const Result piped = made.Explain({}, {{"COLUMNS", "80"}, {"LC_ALL", "C"}});
	CHECK(piped.status == 0);
	CHECK(Checked(piped.out, 80).size() <= kScreenLines);
	CHECK_FALSE(contains(piped.out, "█"));
	CHECK_FALSE(contains(made.Explain({"--ascii"}, {{"LC_ALL", "C.UTF-8"}}).out, "█"));
	CHECK(contains(made.Explain({"--color=always"}, {{"NO_COLOR", "1"}}).out, "\033[1m"));
	CHECK_FALSE(contains(
	    made.OnTerminal(80, utf8 + " NO_COLOR= ") + made.Explain({"--color", "never"}).out, "\033[0;"));
}

TEST_CASE("a request's parts are shown, and sum to its latency")
{
	Made made;
	const nlohmann::json j = parse_json(made.Explain({"--json", "--requests"}).out);
	REQUIRE(!j["slow_requests"].empty());
	// One of those that waited for a fork, which takes 40 ms, but not the first.
	size_t at = 0;
	while (at + 1 < j["slow_requests"].size() && (j["slow_requests"][at]["latency_ns"] < 10'000'000 ||
						      j["slow_requests"][at]["latency_ns"] > 30'000'000))
		at++;
	const nlohmann::json &r = j["slow_requests"][at];
	const uint64_t latency = r["latency_ns"];
	const Result view = made.Explain({"--request", std::to_string(r["id"].get<uint64_t>())});
	INFO(view.out << view.err);
	REQUIRE(view.status == 0);
	CHECK(contains(view.out, FormatCount(latency) + " ns\n"));
	for (const char *word : {"\ndue ", "\nsent ", "\nanswered "})
		CHECK(contains(view.out, word));
	for (const nlohmann::json &part : r["parts"])
		CHECK(contains(view.out, "\n" + part["cause"].get<std::string>() + " "));

	// Requests ahead of it: sent before it, and not answered when it was due.
	auto end = [](const nlohmann::json &of) {
		return of["start_ns"].get<uint64_t>() + of["latency_ns"].get<uint64_t>();
	};
	size_t same = 0, others = 0;
	std::vector<uint64_t> ids; // those on its connection, the last due first
	for (const nlohmann::json &other : j["slow_requests"]) {
		if (other["start_ns"] > r["start_ns"] || end(other) <= r["start_ns"].get<uint64_t>() ||
		    other["id"] == r["id"] || other["sent_ns"] > r["sent_ns"] ||
		    (other["sent_ns"] == r["sent_ns"] && other["id"] > r["id"]))
			continue;
		if (other["connection"] != r["connection"]) {
			others++;
			continue;
		}
		same++;
		ids.insert(ids.begin(), other["id"].get<uint64_t>());
	}
	REQUIRE(others > 0);
	CHECK(contains(view.out, "\nAhead of it: " + Plural(same, "slow request", "slow requests") +
				     " on its connection, " + FormatCount(others) +
				     " on other connections of its thread\n"));
	for (size_t i = 0; i < std::min<size_t>(ids.size(), 12); i++)
		CHECK(contains(view.out, "\n" + PadLeft(std::to_string(ids[i]), 10) + " "));
	const Result first = made.Explain({"--request", j["slow_requests"][0]["id"].dump()});
	CHECK(contains(first.out, "No slow request was ahead of it."));

	CHECK(made.Explain({"--request", "4000000000"}).status == 3);
	CHECK(contains(made.Explain({"--request", "4000000000"}).err, "is not one of the "));
}

TEST_CASE("an episode and a cause have separate views")
{
	Made made;
	const nlohmann::json j = parse_json(made.Explain({"--json"}).out);
	REQUIRE(!j["episodes"].empty());
	const Result episode = made.Explain({"--episode", "1"});
	REQUIRE(episode.status == 0);
	CHECK(episode.out.rfind("Episode 1 of ", 0) == 0);
	uint64_t worst_ns = 0, time_ns = 0;
	for (const nlohmann::json &e : j["episodes"])
		if (e["time_ns"] > time_ns) {
			time_ns = e["time_ns"];
			worst_ns = e["worst_ns"];
		}
	CHECK(contains(episode.out, FormatDuration(worst_ns) + "  ")); // among its worst requests
	const Result beyond = made.Explain({"--episode", std::to_string(j["episodes"].size() + 1)});
	CHECK(beyond.status == 3);
	CHECK(std::count(beyond.err.begin(), beyond.err.end(), '\n') == 1);
	CHECK(made.Explain({"--episode", "0"}).status == 3);

	const std::string cause = j["causes"][0]["cause"];
	const Result view = made.Explain({"--cause", cause});
	REQUIRE(view.status == 0);
	CHECK(view.out.rfind(cause + ": ", 0) == 0);
	CHECK(contains(view.out, FormatDuration(j["causes"][0]["time_ns"].get<uint64_t>())));
	CHECK(contains(made.Explain({"--cause", "ptrace"}).out, "It affected none of the "));
}

TEST_CASE("the line for scripts has the numbers of the JSON")
{
	Made made;
	const nlohmann::json j = parse_json(made.Explain({"--json"}).out);
	const std::string cause = j["causes"][0]["cause"];
	const Result line =
	    made.Explain({"--format", "{p99.9_ns} {max_ns} {requests} {cause} {" + cause + ".total_ns} {" +
					  cause + ".without.p99_ns} {ptrace.total_ns} {drops} {{}}"});
	REQUIRE(line.status == 0);
	CHECK(line.out ==
	      j["requests"]["latency_ns"]["p99.9"].dump() + " " + j["requests"]["latency_ns"]["max"].dump() +
		  " " + j["requests"]["count"].dump() + " " + cause + " " + j["causes"][0]["time_ns"].dump() +
		  " " + j["causes"][0]["what_if"]["p99"].dump() + " 0 " + j["drops"]["count"].dump() +
		  " {}\n");
	std::string error;
	for (const char *bad : {"{}", "{p99.8}", "{fork}", "{fork.weather}", "{fork.without.p50}", "{p99_h}",
				"{p99", "p99}", "{_ms}"}) {
		INFO(bad);
		CHECK_FALSE(CheckFormat(bad, &error));
		CHECK(!error.empty());
	}
	CHECK(CheckFormat("a{{b}}\\t{softirq/net_rx.share}{start}{run}", &error));
}

TEST_CASE("JSON is written into a file together with any view, and equals --json's")
{
	Made made;
	const std::string file = made.dir.file("explained.json");
	const std::string printed = made.Explain({"--json"}).out;
	for (const std::vector<std::string> &view : std::vector<std::vector<std::string>>{
		 {}, {"--all"}, {"--episode", "1"}, {"--format", "{p99_ms}"}}) {
		std::vector<std::string> with = view;
		with.insert(with.end(), {"--json-to", file});
		const Result alone = made.Explain(view), both = made.Explain(with);
		INFO(both.err);
		CHECK(both.status == 0);
		CHECK(both.out == alone.out);
		CHECK(forktail::test::read_file(file) == printed);
	}
	forktail::test::write_file(file, "");
	CHECK(made.Explain({"--requests", "--json-to", file}).status == 0);
	CHECK(forktail::test::read_file(file) == made.Explain({"--requests", "--json"}).out);

	// Unwritable output is one error message, and nothing is printed as if it had succeeded.
	const Result nowhere = made.Explain({"--json-to", made.dir.file("nowhere/a.json")});
	CHECK(nowhere.status == 3);
	CHECK(nowhere.out.empty());
	CHECK(nowhere.err ==
	      "forktail: cannot write " + made.dir.file("nowhere/a.json") + ": No such file or directory\n");
	if (access("/dev/full", W_OK) == 0) {
		const Result full = made.Explain({"--json-to", "/dev/full"});
		CHECK(full.status == 3);
		CHECK(full.err == "forktail: cannot write /dev/full: No space left on device\n");
	}
}
