// SPDX-License-Identifier: MIT
// Head-of-line blocking, computed incrementally from one request to the next. It equals, hop by hop and to
// the nanosecond, the result of a walk over all requests that held the connection.
#include "analysis/blame.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/random_timeline.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

constexpr uint64_t kStart = 1000 * kMs, kLength = 60 * kMs;

// A proxy with instances behind it, the last of which was not recorded, and requests on a few connections.
struct Pipelines {
	Random random;
	forktail::analysis::Run run;
	Serving serving;
	Clients clients;
	std::vector<Timeline> timelines;
	std::vector<uint64_t> due_ns; // from when each request waited for its connection until it was sent

	explicit Pipelines(uint64_t seed) : random(seed)
	{
		run.connections.resize(Pick(random, 1, 3));
		run.behind.resize(Pick(random, 1, 7));
		for (size_t i = 0; i <= run.behind.size(); i++)
			timelines.push_back(RandomTimeline(random, kStart, kLength));
		// Batches that are answered together or one by one, some of them right after the previous
		// batch.
		std::vector<uint64_t> free_ns(run.connections.size(), kStart);
		const uint64_t pause = Pick(random, 0, 1) ? 0 : 200'000;
		while (*std::min_element(free_ns.begin(), free_ns.end()) < kStart + kLength) {
			uint32_t c = static_cast<uint32_t>(Pick(random, 0, run.connections.size() - 1));
			uint64_t sent = free_ns[c] + Pick(random, 0, pause), end = sent;
			for (uint64_t n = Pick(random, 1, 16); n; n--) {
				end += Pick(random, 0, 2) * Pick(random, 0, 60'000);
				Add(c, sent, end);
			}
			free_ns[c] = end;
			if (Pick(random, 0, 30) == 0)
				free_ns[c] += Pick(random, 0, 3 * kMs);
		}
	}
	void Add(uint32_t connection, uint64_t sent, uint64_t end)
	{
		Requests &q = run.requests;
		if (Pick(random, 0, 2000) == 0)
			end = Pick(random, sent, end); // answered before another one
		due_ns.push_back(sent - std::min(sent - kStart, Pick(random, 0, 20 * kMs)));
		q.due_ns.push_back(due_ns.back());
		q.sent_ns.push_back(sent);
		q.end_ns.push_back(end);
		q.connection.push_back(connection);
		q.op.push_back(0);
		q.status.push_back(Pick(random, 0, 100) ? FT_STATUS_OK : FT_STATUS_UNSENT);
		q.behind.push_back(static_cast<uint8_t>(Pick(random, 0, run.behind.size())));
	}
	Context Make()
	{
		Context context = {run, serving, clients, {}};
		context.servers.push_back({&timelines[0], {}, {}, 0});
		const RouteGrid grid = GridOf(kStart, kStart + kLength, 16);
		for (size_t b = 0; b + 1 < run.behind.size(); b++)
			context.proxy_paths.push_back(std::make_unique<ProxyPath>(ProxyPath{
			    BuildRoute(timelines[0], timelines[b + 1], grid, kStart, kStart + kLength),
			    {},
			    0,
			    static_cast<uint16_t>(b + 1)}));
		context.proxy_paths.resize(context.WaysOfServer());
		std::vector<uint32_t> last(run.connections.size(), kNoRequest);
		for (size_t i = 0; i < run.requests.size(); i++) {
			uint32_t &before = last[run.requests.connection[i]];
			context.in_front.push_back(before);
			if (run.requests.status[i] != FT_STATUS_UNSENT)
				before = static_cast<uint32_t>(i);
		}
		return context;
	}
};

void CheckSame(const Context &context, size_t i, uint64_t from, uint64_t to, HeadOfLine *head_of_line)
{
	HopTimes incremental, walked;
	CHECK(head_of_line->Add(context, i, from, to, &incremental) ==
	      WalkHeadOfLine(context, i, from, to, &walked));
	REQUIRE(incremental.hops.size() == walked.hops.size());
	for (size_t h = 0; h < incremental.hops.size(); h++) {
		REQUIRE(incremental.hops[h].hop == walked.hops[h].hop);
		REQUIRE(incremental.hops[h].direct == walked.hops[h].direct);
	}
}

} // namespace

TEST_CASE("the incremental head-of-line blocking equals a walk over all requests on the connection")
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		Pipelines pipelines(seed);
		const Context context = pipelines.Make();
		Random &random = pipelines.random;
		const uint64_t step = Pick(random, 1, 3) == 1 ? 60 : 2;
		HeadOfLine head_of_line;
		for (size_t i = 0; i < pipelines.run.requests.size(); i += Pick(random, 1, step)) {
			if (!context.ProxyPathOf(i))
				continue;
			uint64_t from = pipelines.due_ns[i], to = pipelines.run.requests.sent_ns[i];
			if (Pick(random, 0, 9) == 0)
				to = Pick(random, from, to);
			if (Pick(random, 0, 9) == 0)
				from = Pick(random, from, to);
			INFO("seed " << seed << ", request " << i << ", [" << from << ", " << to << ")");
			CheckSame(context, i, from, to, &head_of_line);
		}
	}
}

TEST_CASE("requests that hold a connection for seconds are added and removed too")
{
	constexpr uint64_t kLong = 6'000'000'000; // does not fit into 32 bits
	Pipelines pipelines(1);
	pipelines.run.requests = {};
	pipelines.run.behind.resize(2);
	pipelines.timelines.clear();
	for (Cause cause : {Cause::Network, Cause::Fork}) {
		Timeline t;
		t.pieces = {{kStart, 0, kNoMix, cause}, {kStart + 20 * kLong, kNoSpan, kNoMix, cause}};
		IndexTimeline(&t);
		pipelines.timelines.push_back(t);
	}
	for (uint64_t n = 0; n < 8; n++)
		pipelines.Add(0, kStart + n * kLong, kStart + (n + 1) * kLong);
	for (uint8_t &behind : pipelines.run.requests.behind)
		behind = 1;
	for (uint8_t &status : pipelines.run.requests.status)
		status = FT_STATUS_OK;
	const Context context = pipelines.Make();
	HeadOfLine head_of_line;
	for (size_t i = 4; i < 8; i++)
		CheckSame(context, i, kStart + (i - 4) * kLong + 1, kStart + i * kLong, &head_of_line);
	HopTimes all;
	head_of_line.Add(context, 7, kStart + 3 * kLong + 1, kStart + 7 * kLong, &all);
	CHECK(all.At(1).direct[static_cast<size_t>(Index(Cause::Fork))] == 4 * kLong - 1);
}
