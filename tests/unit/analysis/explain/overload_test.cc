// SPDX-License-Identifier: MIT
// What is an overload and what is none: by the rates of an open loop, and by who used all of its CPU.
#include "tests/support/catch.h"
#include "tests/support/explained.h"
#include "tests/unit/analysis/run_builder.h"

#include <functional>

#include "analysis/explain.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

constexpr uint64_t kSecond = 1'000 * ms;

// The log of a server that answers requests one after the other.
struct ServedLoad {
	RunBuilder b;
	uint64_t free = 0; // when the server has answered all requests so far

	// Requests due `every` ns in [from, to), of which each takes service(t) from when it is served at t.
	void Due(uint64_t from, uint64_t to, uint64_t every,
		 const std::function<uint64_t(uint64_t t)> &service)
	{
		for (uint64_t due = from; due < to; due += every) {
			const uint64_t begin = std::max(due, free);
			free = begin + service(begin);
			b.Request(due, begin, free);
		}
	}
	std::optional<Overload> Found(const char *arrival = "constant")
	{
		b.Loop(arrival);
		WholeLog log(b.run);
		const LogFacts facts = CountRequests(b.run, &log);
		return FindOverload(b.run, facts);
	}
};

uint64_t Fifth(uint64_t)
{
	return 200 * us; // 5,000/s
}

} // namespace

TEST_CASE("more is due than the server can answer, from the first second to the last")
{
	ServedLoad r;
	r.Due(0, 4 * kSecond, 100 * us, Fifth);
	const std::optional<Overload> o = r.Found();
	REQUIRE(o);
	CHECK(o->whole);
	CHECK(o->due_per_s > 9900);
	CHECK(o->due_per_s < 10100);
	CHECK(o->answered_per_s > 4900);
	CHECK(o->answered_per_s < 5100);
	// 10,000/s were due and 5,000/s answered until the period's end.
	const double backlog = static_cast<double>(o->period.until_ns - o->period.since_ns) / 1e9 * 5000;
	CHECK(static_cast<double>(o->backlog) > backlog - 100);
	CHECK(static_cast<double>(o->backlog) < backlog + 100);
}

TEST_CASE("the same requests are no overload of a closed loop")
{
	ServedLoad r;
	r.Due(0, 4 * kSecond, 100 * us, Fifth);
	CHECK(!r.Found("closed"));
}

TEST_CASE("requests that were never sent are a backlog, not answers")
{
	ServedLoad r;
	for (uint64_t due = 0; due < 4 * kSecond; due += 100 * us)
		if (due % (200 * us))
			r.b.Request(due, due, 6 * kSecond, 0, 0, FT_STATUS_UNSENT);
		else
			r.b.Request(due, due, due + 150 * us);
	const std::optional<Overload> o = r.Found();
	REQUIRE(o);
	CHECK(o->whole);
	CHECK(o->unsent == 20'000);
}

TEST_CASE("a server that keeps up is not overloaded")
{
	ServedLoad r;
	r.Due(0, 4 * kSecond, 210 * us, Fifth);
	CHECK(!r.Found());
}

TEST_CASE("a stall and the backlog that drains after it are no overload")
{
	ServedLoad r;
	const uint64_t length = GENERATE(400 * ms, 3000 * ms);
	bool stalled = false;
	r.Due(0, 8 * kSecond, 250 * us, [&](uint64_t t) -> uint64_t {
		if (stalled || t < 2 * kSecond)
			return 200 * us;
		stalled = true;
		return length;
	});
	CHECK(!r.Found());
}

TEST_CASE("a server that answers nothing any more is not overloaded")
{
	ServedLoad r;
	for (uint64_t due = 0; due < 6 * kSecond; due += kSecond / 1000)
		if (due < 3 * kSecond)
			r.b.Request(due, due, due + 100 * us);
		else
			r.b.Request(due, due, 6 * kSecond, 0, 0, FT_STATUS_UNSENT);
	CHECK(!r.Found());
}

TEST_CASE("the end of an overloaded server is no further overload")
{
	ServedLoad r;
	for (uint64_t due = 0; due < 6 * kSecond; due += 100 * us)
		if (due < 3 * kSecond && due % (200 * us) == 0)
			r.b.Request(due, due, due + 150 * us);
		else
			r.b.Request(due, due, 6 * kSecond, 0, 0, FT_STATUS_UNSENT);
	const std::optional<Overload> o = r.Found();
	REQUIRE(o);
	CHECK(o->period.until_ns <= kBase + 3 * kSecond + 300 * ms);
}

TEST_CASE("a disturbance that halves the server's speed for a while is no overload")
{
	ServedLoad r;
	r.Due(0, 8 * kSecond, 250 * us, [&](uint64_t t) -> uint64_t {
		return t >= 2 * kSecond && t < 5 * kSecond ? 400 * us : 150 * us;
	});
	CHECK(!r.Found());
}

TEST_CASE("a ramp overloads a server in its last part")
{
	ServedLoad r;
	r.Due(0, 4 * kSecond, 1000 * us, Fifth);
	r.Due(4 * kSecond, 8 * kSecond, 100 * us, Fifth);
	const std::optional<Overload> o = r.Found();
	REQUIRE(o);
	CHECK(!o->whole);
	CHECK(o->period.since_ns >= kBase + 4 * kSecond - 500 * ms);
	CHECK(o->period.until_ns >= kBase + 7 * kSecond);
	CHECK(o->due_per_s > 8500);
}

TEST_CASE("an overload has a first line if the server or the load generator used all of its CPU")
{
	const uint64_t server_ms = GENERATE(500, 3960), client_ms = GENERATE(500, 3960);
	Explained e;
	RunBuilder b;
	b.Thread(kServer, 0, 4 * kSecond);
	b.Thread(kServer + 50, 0, 4 * kSecond, FT_THREAD_MAIN | FT_THREAD_CLIENT, "load generator");
	b.Tally(FT_OWN_CODE, 0, 4 * kSecond, server_ms * ms);
	b.Tally(FT_OWN_CODE, 0, 4 * kSecond, client_ms * ms, 1, kServer + 50);
	e.run = b.Finish();
	e.serving = {static_cast<int>(b.ThreadIndex())};
	Clients clients;
	clients.timelines.emplace_back();
	clients.timelines[0].thread = b.ThreadIndex(kServer + 50);
	e.own_codes.resize(2);
	ActivityTime get;
	get.name = "command/GET";
	get.share = 0.4;
	e.own_codes[b.ThreadIndex()].activities.push_back(get);
	e.zero_ns = kBase;
	Overload o;
	o.period = {kBase, kBase + 4 * kSecond};
	o.whole = true;
	o.due_per_s = 400'000;
	o.answered_per_s = 85'423;
	o.backlog = 1'258'308;
	CpuTimes cpu(o.period);
	cpu.Add(e.run, 0, UINT64_MAX);
	FindLimit(e.serving, clients, cpu, &o);
	e.overload = o;
	const std::string text = OverloadText(e), note = OverloadNote(e);
	const std::string rates =
	    "400,000 requests/s were due, 85,423/s were answered: the backlog grew from the first "
	    "second to the last, to 1,258,308 requests";
	if (server_ms == 3960) {
		CHECK(o.limit == Overload::Server);
		CHECK(
		    text ==
		    rates +
			" (overload). redis-server (100) ran 99 % of a CPU (command/GET 40 %): it was at its "
			"limit.");
		CHECK(note.empty());
	} else if (client_ms == 3960) {
		CHECK(o.limit == Overload::Client);
		CHECK(text.starts_with(rates +
				       " (overload). The load generator's thread 150 ran 99 % of a CPU"));
	} else {
		CHECK(text.empty());
		CHECK(note.starts_with(rates));
	}
}
