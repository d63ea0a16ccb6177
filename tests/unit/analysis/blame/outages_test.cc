// SPDX-License-Identifier: MIT
// Outages: the time that requests wait while no server serves their keys is no-server, and the sums are
// right.
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/blame.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// The note as forktail-load writes it. 0: no first answer.
ServerReport Note(uint64_t last, uint64_t first)
{
	ServerReport r;
	r.t_ns = kBase + last;
	r.kind = "outage";
	r.text = "{\"t_ns\":" + std::to_string(kBase + last) +
		 ",\"kind\":\"outage\",\"server\":\"db1:6379\"," +
		 "\"last_ok_ns\":" + std::to_string(kBase + last) +
		 (first ? ",\"first_ok_ns\":" + std::to_string(kBase + first) : "") + "}";
	return r;
}

uint64_t Time(const Blame &blame, const SlowRequest &r, Cause cause)
{
	uint64_t ns = 0;
	for (uint32_t p = r.first_part; p < r.first_part + r.part_count; p++)
		if (blame.parts[p].cause == cause)
			ns += blame.parts[p].total_ns();
	return ns;
}

uint64_t Sum(const Blame &blame, const SlowRequest &r)
{
	uint64_t ns = 0;
	for (uint32_t p = r.first_part; p < r.first_part + r.part_count; p++)
		ns += blame.parts[p].total_ns();
	return ns;
}

} // namespace

TEST_CASE("how long a request was without a server")
{
	std::vector<Outage> outages = {{100 * ms, 200 * ms}, {150 * ms, 400 * ms}};
	CHECK(WithoutServer(outages, 0, 50 * ms, false) == 0);
	CHECK(WithoutServer(outages, 120 * ms, 210 * ms, false) == 80 * ms);  // waited for the first
	CHECK(WithoutServer(outages, 120 * ms, 401 * ms, false) == 250 * ms); // and during both: longest
	CHECK(WithoutServer(outages, 300 * ms, 301 * ms, false) == 0);	      // another server answered
	CHECK(WithoutServer(outages, 300 * ms, 301 * ms, true) == 1 * ms);    // failed during it
	CHECK(WithoutServer({{100 * ms, UINT64_MAX}}, 150 * ms, 250 * ms, true) == 100 * ms);
	CHECK(WithoutServer({{100 * ms, UINT64_MAX}}, 150 * ms, 250 * ms, false) == 0);
	// Of one server.
	CHECK(WithoutServer({{100 * ms, UINT64_MAX, 1}}, 150 * ms, 250 * ms, true, 1) == 100 * ms);
	CHECK(WithoutServer({{100 * ms, UINT64_MAX, 1}}, 150 * ms, 250 * ms, true, 0) == 0);
}

TEST_CASE("outages are read from the load generator's notes, and damaged notes are skipped")
{
	RunBuilder b;
	b.run.reports = {Note(10 * ms, 30 * ms), Note(50 * ms, 0), Note(90 * ms, 80 * ms)};
	ServerReport damaged = Note(10 * ms, 30 * ms), other = Note(10 * ms, 30 * ms);
	damaged.text = "{";
	other.kind = "slowlog";
	b.run.reports.push_back(damaged);
	b.run.reports.push_back(other);
	std::vector<Outage> outages = OutagesOf(b.run);
	REQUIRE(outages.size() == 2);
	CHECK(outages[0].begin_ns == kBase + 10 * ms);
	CHECK(outages[0].end_ns == kBase + 30 * ms);
	CHECK(outages[1].end_ns == UINT64_MAX);
}

TEST_CASE("time waiting for a failover is no-server, not the client's, the network's or unknown")
{
	RunBuilder b;
	// The server dies at 10 ms. The load generator has another one from 60 ms onwards.
	b.Thread(kServer, 0, 10 * ms);
	b.Off(FT_IDLE, 0, 10 * ms, 10 * ms);
	b.Loop("constant");
	b.run.reports = {Note(10 * ms, 60 * ms)};
	b.Request(5 * ms, 5 * ms, 6 * ms);			     // before
	b.Request(20 * ms, 58 * ms, 60 * ms, 1);		     // waited for it and was sent late
	b.Request(30 * ms, 30 * ms, 35 * ms, 2, 0, FT_STATUS_RESET); // failed during it
	b.Request(70 * ms, 70 * ms, 72 * ms, 1);		     // after
	b.Finish();
	Blame blame = b.Blame();
	REQUIRE(blame.slow.size() == 4);
	for (const SlowRequest &r : blame.slow)
		CHECK(Sum(blame, r) == r.latency_ns);
	CHECK(Time(blame, blame.slow[0], Cause::NoServer) == 0);
	CHECK(Time(blame, blame.slow[1], Cause::NoServer) == 40 * ms);
	CHECK(Time(blame, blame.slow[1], Cause::ClientLate) == 0);
	CHECK(Time(blame, blame.slow[2], Cause::NoServer) == 5 * ms);
	CHECK(Time(blame, blame.slow[3], Cause::NoServer) == 0);
	// Without the outage the longest answered request is one outside of it.
	for (const CauseRow &row : blame.causes)
		if (row.cause == Cause::NoServer)
			CHECK(row.without.max == 2 * ms);
}
