// SPDX-License-Identifier: MIT
// The screen of `forktail watch`, without a terminal: everything important is visible at any size, no line is
// too wide, nothing depends on colour alone, and only ASCII is used where nothing else can be displayed.
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/text.h"

#include "live/watch.h"
#include "live/watch/sentences.h"

using namespace forktail::analysis;
using namespace forktail::live::watch;
using namespace forktail::live::watch;
using forktail::test::contains;
using forktail::test::parse_json;

namespace
{

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kAt = 1'795'420'800ull * kSecondNs; // 2026-11-23 08:00:00 UTC

// A second with a fork of 48 ms in it, and a running snapshot child.
Frame SampleFrame()
{
	Frame f;
	f.path = "/run/forktail";
	f.server = "redis-server:6379";
	f.pid = 4711;
	f.alive = true;
	f.servers = 2;
	f.has_second = true;
	f.age_ns = 2 * kSecondNs;
	Figures &s = f.second;
	s.start_ns = 1000 * kSecondNs;
	s.realtime_ns = kAt;
	s.accounted = true;
	s.iterations = 12'345;
	s.p50_ns = 40'000;
	s.p99_ns = 210'000;
	s.max_ns = 50 * kMs;
	s.threads = {{"redis-server",
		      true,
		      false,
		      {{Cause::ServerBusy, 300 * kMs, 0, 0, ""},
		       {Cause::Fork, 48 * kMs, 1, 48 * kMs, ""},
		       {Cause::CowCopy, 12 * kMs, 4'000, 90'000, ""},
		       {Cause::Idle, 640 * kMs, 0, 0, ""}}},
		     {"bio_aof_fsync", false, false, {{Cause::Fsync, 700 * kMs, 3, 0, ""}}},
		     {"snapshot child", false, true, {{Cause::ServerBusy, 900 * kMs, 0, 0, ""}}}};
	s.forks = 1;
	s.fork_ns = 48 * kMs;
	s.fsyncs = 3;
	s.fsync_ns = 700 * kMs;
	s.fsync_longest_ns = 400 * kMs;
	s.fsync_file = "appendonly.aof.1.incr.aof";
	s.taken = {{"stress", 20 * kMs}};
	f.worst = {{999 * kSecondNs,
		    50 * kMs,
		    0,
		    0,
		    12,
		    13,
		    false,
		    {{Cause::Fork, 48 * kMs}, {Cause::ServerBusy, 2 * kMs}},
		    "",
		    "copy_page_range",
		    "stress"},
		   "redis-server"};
	f.worst_realtime_ns = kAt - 5 * kSecondNs;
	f.strip.assign(71, 200'000);
	f.strip[3] = kNoIteration;
	f.strip[65] = 50 * kMs;
	f.chosen = 70;
	f.children = {{{0, 4800, "snapshot child", 999 * kSecondNs, 0}, 4 * kSecondNs}};
	f.health.recording = true;
	f.health.cost_known = true;
	f.health.cpu = 0.004;
	f.health.bpf = 0;
	f.health.rss_bytes = 20'000'000;
	f.health.span_ns = 600 * kSecondNs;
	f.health.bytes = 84'000'000;
	f.health.segments = 120;
	return f;
}

std::string All(const std::vector<Line> &lines)
{
	std::string text;
	for (const Line &line : lines)
		text += TextOf(line) + "\n";
	return text;
}

Style Drawn(bool unicode)
{
	Style style;
	style.unicode = unicode;
	return style;
}

} // namespace

TEST_CASE("watch: what matters is visible at any size, and no line is too wide")
{
	const Frame f = SampleFrame();
	for (auto [columns, rows] :
	     {std::pair<size_t, size_t>{80, 24}, {60, 15}, {200, 50}, {40, 10}, {81, 20}}) {
		const std::vector<Line> lines = LayOut(f, columns, rows, Drawn(true));
		const std::string text = All(lines);
		INFO(columns << "x" << rows << "\n" << text);
		CHECK(lines.size() == rows);
		for (const Line &line : lines)
			CHECK(WidthOf(line) <= columns);
		CHECK(contains(text, "redis-server"));
		CHECK(contains(text, "iterations 12,345"));
		CHECK(contains(text, "! fork"));
		CHECK(contains(text, "longest iteration of the minute: fork()"));
		CHECK(contains(text, "recorder CPU"));
		CHECK(contains(text, "q quit"));
	}
	// Even at the smallest size it is cut, and nothing is drawn outside.
	for (size_t rows = 1; rows < 10; rows++)
		for (size_t columns : {1u, 7u, 20u, 39u}) {
			const std::vector<Line> lines = LayOut(f, columns, rows, Drawn(true));
			CHECK(lines.size() <= rows);
			for (const Line &line : lines)
				CHECK(WidthOf(line) <= columns);
		}
}

TEST_CASE("watch: stalls come first, each with its time, and are clear without colour")
{
	const std::vector<Line> lines = LayOut(SampleFrame(), 80, 24, Drawn(true));
	const std::string text = All(lines);
	INFO(text);
	const size_t fork = text.find("! fork"), copies = text.find("! cow-copy"),
		     own = text.find("  own-code");
	CHECK(fork < copies);
	CHECK(copies < own);
	CHECK(own != std::string::npos);
	CHECK(contains(text, "48.0 ms"));
	CHECK(contains(text, "4,000x, longest 90.0 us"));
	CHECK_FALSE(contains(text, "! own-code"));
	CHECK_FALSE(contains(text, "\n  idle "));
	CHECK(contains(text, "idle 64 %"));
	CHECK(contains(text, "stalled 6 %"));
}

TEST_CASE("watch: the worst iteration has its evidence, children their progress")
{
	const std::string text = All(LayOut(SampleFrame(), 250, 40, Drawn(true)));
	INFO(text);
	CHECK(contains(text,
		       "50.0 ms at 07:59:55 UTC, redis-server, 12 reads, 13 writes: fork 48.0 ms (96 %)"));
	CHECK(contains(text, "; in copy_page_range; CPU held by stress"));
	CHECK(contains(text,
		       "snapshot child 4800: 2.00 s so far, the previous one took 4.00 s (50 % of that)"));
	CHECK(contains(text, "3 fsyncs in 700 ms, longest 400 ms of appendonly.aof.1.incr.aof"));
	CHECK(contains(text, "faults: 4,000 cow-copy in 12.0 ms"));
	CHECK(contains(text, "CPU held by stress 20.0 ms"));
	CHECK(contains(text, "bio_aof_fsync: fsync 700 ms"));
}

TEST_CASE("watch: the strip marks the displayed second, and shows what is unknown")
{
	Frame f = SampleFrame();
	f.chosen = 65;
	f.frozen = true;
	const std::vector<Line> lines = LayOut(f, 80, 24, Drawn(false));
	const std::string text = All(lines);
	INFO(text);
	CHECK(contains(TextOf(lines[0]), "FROZEN"));
	// Three rows, then the pointer under column 9 + 65.
	const std::string top = TextOf(lines[1]), bottom = TextOf(lines[3]), pointer = TextOf(lines[4]);
	CHECK(top.substr(0, 9) == " 50.0 ms ");
	REQUIRE(top.size() > 74);
	CHECK(top[74] == '#');
	CHECK(top.find('#') == 74);
	CHECK(bottom[9 + 3] == '?');
	CHECK(pointer.find('^') == 74);
	CHECK(contains(pointer, "08:00:00 UTC"));
	bool reversed = false;
	for (const Words &words : lines[1])
		reversed |= words.look == Look::Chosen && words.text == "#";
	CHECK(reversed);
}

TEST_CASE("watch: without Unicode everything is ASCII")
{
	Frame f = SampleFrame();
	f.worst.detail = std::string(300, 'x');
	for (size_t columns : {40u, 80u, 200u})
		for (const Line &line : LayOut(f, columns, 30, Drawn(false)))
			for (char c : TextOf(line))
				CHECK(static_cast<unsigned char>(c) < 0x80);
}

TEST_CASE("watch: nothing yet, a recorder that ended, records that were dropped")
{
	Frame empty;
	empty.waiting = "nothing is recorded in /run/forktail yet";
	std::string text = All(LayOut(empty, 80, 24, Drawn(true)));
	CHECK(contains(text, "nothing is recorded in /run/forktail yet"));
	CHECK(contains(text, "q quit"));

	Frame f = SampleFrame();
	f.alive = false;
	f.health.recording = false;
	f.health.quiet_ns = 42 * kSecondNs;
	f.health.dropped = 1'234;
	f.health.damaged = 1;
	f.second.dropped = 7;
	f.event = {0, 8 * 3600 * kSecondNs, "the recorder ended"};
	text = All(LayOut(f, 120, 30, Drawn(true)));
	INFO(text);
	CHECK(contains(text, "(ended)"));
	CHECK(contains(text, "no recorder: no data for 42.0 s"));
	CHECK(contains(text, "1,234 dropped"));
	CHECK(contains(text, "1 block lost"));
	CHECK(contains(text, "7 records were dropped in this second"));
	CHECK(contains(text, "the recorder ended"));

	f.second.threads.clear();
	CHECK(contains(All(LayOut(f, 80, 24, Drawn(true))), "no data for this second"));
}

TEST_CASE("watch: text output has no keys and no strip, JSON has all figures")
{
	const Frame f = SampleFrame();
	const std::string text = All(LayOutOnce(f, 80, Drawn(true)));
	INFO(text);
	CHECK(contains(text, "! fork"));
	CHECK_FALSE(contains(text, "q quit"));
	CHECK_FALSE(contains(text, "longest iteration per second"));

	const auto j = parse_json(OnceJson({f, f}));
	CHECK(j["format"] == 1);
	CHECK(j["at"] == 1'795'420'800.0);
	REQUIRE(j["servers"].size() == 2);
	const auto &server = j["servers"][0];
	CHECK(server["turns"]["max_ns"] == 50 * kMs);
	CHECK(server["causes"][0]["cause"] == "fork");
	CHECK(server["causes"][0]["stall"] == true);
	CHECK(server["causes"][2]["cause"] == "own-code");
	CHECK(server["stalled_ns"] == 60 * kMs);
	CHECK(server["worst_of_minute"]["cpu_had"] == "stress");
	CHECK(server["children"][0]["ns"] == 2 * kSecondNs);
	CHECK(server["cpu_taken"][0]["by"] == "stress");
	CHECK(j["recorder"]["recording"] == true);
	CHECK(j["ring"]["files"] == 120);
}

TEST_CASE("watch: a percentile is the smallest value that this share does not exceed")
{
	std::vector<uint64_t> all;
	CHECK(Percentile(&all, 0.5) == 0);
	for (uint64_t i = 100; i >= 1; i--)
		all.push_back(i);
	CHECK(Percentile(&all, 0.5) == 50);
	CHECK(Percentile(&all, 0.99) == 99);
	CHECK(Percentile(&all, 1) == 100);
	all = {7};
	CHECK(Percentile(&all, 0.99) == 7);
}

TEST_CASE("watch: help fits on a small screen")
{
	for (size_t columns : {40u, 80u}) {
		const std::vector<Line> lines = LayOutHelp(columns, 24);
		CHECK(contains(All(lines), "freeze"));
		for (const Line &line : lines)
			CHECK(WidthOf(line) <= columns);
	}
}
