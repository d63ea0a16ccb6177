// SPDX-License-Identifier: MIT
// Which causes an answer speaks of: those without which a percentile would be lowest, alone or together.
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/passes.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// 10,000 requests of 1 ms, apart from those that a test adds.
struct Requests10k {
	Blame blame;

	Requests10k() { blame.threshold_ns = 2 * ms; }
	// `count` slow requests with parts of these causes.
	void Add(size_t count, const std::vector<Part> &parts)
	{
		for (size_t i = 0; i < count; i++) {
			SlowRequest r = {};
			r.first_part = static_cast<uint32_t>(blame.parts.size());
			r.part_count = static_cast<uint16_t>(parts.size());
			r.latency_ns = 0;
			for (const Part &part : parts) {
				r.latency_ns += part.total_ns();
				blame.parts.push_back(part);
			}
			blame.slow.push_back(r);
		}
	}
	uint64_t At(const NamedLatency &figure, const std::vector<Cause> &without)
	{
		return PercentileWithout(blame, figure, without);
	}
	Lead Found(bool exactly = false)
	{
		blame.count = 10'000;
		blame.latencies.p50 = 1 * ms;
		std::map<Cause, CauseRow> rows;
		uint64_t all_ns = 0;
		for (const NamedLatency &n : kLatencies)
			if (n.percentile >= kLowestWithout) {
				blame.latencies.*n.value = UINT64_MAX; // so that the threshold is the floor
				blame.latencies.*n.value = At(n, {});
			}
		for (const Part &part : blame.parts) {
			CauseRow &row = rows[part.cause];
			row.cause = part.cause;
			row.requests++;
			row.direct_ns += part.direct_ns;
			all_ns += part.direct_ns;
		}
		blame.causes.clear();
		for (auto &[cause, row] : rows) {
			row.share = static_cast<double>(row.direct_ns) / static_cast<double>(all_ns);
			for (const NamedLatency &n : kLatencies)
				if (n.percentile >= kLowestWithout)
					row.without.*n.value = At(n, {cause});
			blame.causes.push_back(row);
		}
		std::ranges::sort(blame.causes, std::greater(), &CauseRow::share);
		return FindLead(blame, UsualFigure(), exactly);
	}
};

Part Of(Cause cause, uint64_t ns)
{
	return {cause, kNoHop, ns, 0};
}

} // namespace

TEST_CASE("lead: the cause whose removal lowers the percentile most, not the one with most time")
{
	Requests10k run;
	run.Add(200, {Of(Cause::RunQueue, 10 * ms)});			      // 2 s in all
	run.Add(15, {Of(Cause::Fork, 40 * ms), Of(Cause::RunQueue, 3 * ms)}); // p99.9 is among these
	const Lead lead = run.Found();
	REQUIRE(lead.kind == Lead::Kind::Causes);
	CHECK(run.blame.causes[0].cause == Cause::RunQueue);
	CHECK(lead.causes == std::vector{Cause::Fork});
	CHECK(lead.without_ns == 10 * ms);
	CHECK_FALSE(lead.next.has_value());
}

TEST_CASE("lead: another cause that matters is named next")
{
	Requests10k run;
	run.Add(50, {Of(Cause::Fork, 30 * ms), Of(Cause::RunQueue, 10 * ms)});
	const Lead lead = run.Found();
	CHECK(lead.causes == std::vector{Cause::Fork});
	CHECK(lead.without_ns == 10 * ms);
	CHECK(lead.next == Cause::RunQueue);
	CHECK(lead.without_next_ns == 30 * ms);
}

TEST_CASE("lead: two stalls of different requests are taken away together")
{
	Requests10k run;
	run.Add(40, {Of(Cause::Fork, 30 * ms)});
	run.Add(40, {Of(Cause::Fsync, 29 * ms)});
	run.Add(20, {Of(Cause::PageIn, 3 * ms)});
	const Lead lead = run.Found();
	CHECK(lead.causes == std::vector{Cause::Fork, Cause::Fsync});
	CHECK(lead.without_ns == 3 * ms);
}

TEST_CASE("lead: a what-if that is not noticeably lower is not printed")
{
	Requests10k run;
	run.Add(100, {Of(Cause::ServerBusy, 3 * ms), Of(Cause::Fork, 100 * us)});
	run.blame.threshold_ns = 3 * ms;
	const Lead lead = run.Found();
	CHECK(lead.causes == std::vector{Cause::ServerBusy});
	CHECK(lead.without_ns == 0);
}

TEST_CASE("lead: where the percentile is a usual latency a higher one decides, unless it was asked for")
{
	Requests10k run;
	run.Add(8, {Of(Cause::Fork, 40 * ms)}); // fewer than 0.1 %
	run.Add(100, {Of(Cause::ServerBusy, 3 * ms)});
	Lead lead = run.Found();
	CHECK(std::string(lead.figure->name) == "p99.99");
	CHECK(lead.causes == std::vector{Cause::Fork});
	lead = run.Found(true);
	CHECK(std::string(lead.figure->name) == "p99.9");
	CHECK(lead.causes == std::vector{Cause::ServerBusy});
}

TEST_CASE("lead: time without a cause leads if it is the largest share or more than half")
{
	Requests10k run;
	run.Add(20, {Of(Cause::Unknown, 20 * ms), Of(Cause::Fork, 15 * ms), Of(Cause::Fsync, 10 * ms)});
	CHECK(run.Found().kind == Lead::Kind::Unattributed);
	CHECK(run.Found().Names(Cause::Unknown));
	Requests10k other;
	other.Add(20, {Of(Cause::Unknown, 20 * ms), Of(Cause::Fork, 25 * ms)});
	CHECK(other.Found().kind == Lead::Kind::Causes);
}

TEST_CASE("lead: the load generator's delays are beside the server's causes, never instead of them")
{
	Requests10k run;
	run.Add(100, {Of(Cause::ClientLate, 30 * ms), Of(Cause::RunQueue, 5 * ms)});
	const Lead lead = run.Found();
	CHECK(lead.late_first);
	CHECK(lead.causes == std::vector{Cause::RunQueue});
	Requests10k nothing;
	CHECK(nothing.Found().kind == Lead::Kind::None);
}
