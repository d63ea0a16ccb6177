// SPDX-License-Identifier: MIT
// Blame computed together with the first pass from an estimated threshold. A right, too high or too low
// estimate changes only the number of passes over the log, never the result.
#include <array>
#include <map>
#include <random>

#include "analysis/explain/passes.h"
#include "analysis/passes.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// A log in windows, which counts the passes over it.
class Windows : public Log
{
public:
	Windows(Run *run, size_t each) : run_(run), all_(std::move(run->requests)), each_(each) {}
	int passes = 0;

	uint64_t Count() const override { return all_.size(); }
	void Rewind() override
	{
		next_ = 0;
		passes++;
	}
	bool Next() override
	{
		if (next_ >= all_.size())
			return false;
		Requests window;
		window.first = next_;
		for (const size_t end = std::min(all_.size(), next_ + each_); next_ < end; next_++) {
			window.due_ns.push_back(all_.due_ns[next_]);
			window.sent_ns.push_back(all_.sent_ns[next_]);
			window.end_ns.push_back(all_.end_ns[next_]);
			window.connection.push_back(all_.connection[next_]);
			window.op.push_back(all_.op[next_]);
			window.status.push_back(all_.status[next_]);
		}
		run_->requests = std::move(window);
		return true;
	}

private:
	Run *run_;
	Requests all_;
	size_t each_, next_ = 0;
};

// A server that is stopped for 4 ms in every 100, and a request each 100 us. The request takes as long as
// `calm` returns for its number, or until the server continues.
template <typename Calm> RunBuilder Stalling(int requests, Calm calm)
{
	RunBuilder b;
	const uint64_t length = static_cast<uint64_t>(requests) * 100 * us + 200 * ms;
	b.Thread(kServer, 0, length);
	for (uint64_t t = 50 * ms; t + 50 * ms < length; t += 100 * ms)
		b.Off(t / (100 * ms) % 2 ? FT_STOPPED : FT_FSYNC, t, t + 4 * ms, t + 4 * ms);
	for (int i = 0; i < requests; i++) {
		const uint64_t due = static_cast<uint64_t>(i) * 100 * us, into = due % (100 * ms);
		const uint64_t end =
		    std::max(into >= 50 * ms && into < 54 * ms ? due - into + 54 * ms : 0, due + calm(i));
		b.Request(due, due, end);
	}
	b.Loop("constant");
	b.Finish();
	return b;
}

struct Outcome {
	Blame blame;
	int passes;
};

Outcome BlameIn(RunBuilder b, size_t each, size_t kept, const Threshold &threshold)
{
	Windows log(&b.run, each);
	LogFacts facts = CountRequests(b.run, &log);
	BlameLimits limits;
	limits.kept = kept;
	Outcome out = {BlameLog(b.run, &log, std::move(facts), {b.Timeline()}, threshold, {}, {}, limits, {}),
		       0};
	out.passes = log.passes;
	return out;
}

// Each percentile without a cause, from the parts of all requests.
std::map<Cause, std::array<uint64_t, 4>> Without(const RunBuilder &b)
{
	const Blame all = BlameIn(b, SIZE_MAX / 2, 1'000'000, {1, 0}).blame;
	REQUIRE(all.slow.size() == all.count);
	std::map<Cause, std::array<uint64_t, 4>> without;
	for (const CauseRow &row : all.causes) {
		std::vector<uint64_t> left;
		for (size_t i = 0; i < all.slow.size(); i++)
			left.push_back(all.slow[i].latency_ns - PartOf(all, i, row.cause).total_ns());
		std::sort(left.begin(), left.end());
		const double points[] = {99, 99.9, 99.99, 100};
		for (size_t p = 0; p < 4; p++)
			without[row.cause][p] = left[Rank(left.size(), points[p]) - 1];
	}
	return without;
}

// Checks for which stalls the percentiles without them equal the ones computed by hand.
void CheckWithout(const Blame &blame, const std::map<Cause, std::array<uint64_t, 4>> &without)
{
	int stalls = 0;
	for (const CauseRow &row : blame.causes) {
		if (row.cause != Cause::Fsync && row.cause != Cause::Stopped)
			continue;
		INFO(CauseName(row.cause));
		const std::array<uint64_t, 4> &right = without.at(row.cause);
		CHECK(row.without.p99 == right[0]);
		CHECK(row.without.p99_9 == right[1]);
		CHECK(row.without.p99_99 == right[2]);
		CHECK(row.without.max == right[3]);
		stalls++;
	}
	CHECK(stalls == 2);
}

// A request of one part or two; `n` makes them differ.
void AddTo(Sheet *sheet, uint64_t latency_ns, uint64_t n)
{
	SlowRequest r = {};
	r.latency_ns = latency_ns;
	r.index = n;
	r.first_part = static_cast<uint32_t>(sheet->parts.size());
	const uint64_t fork = latency_ns * (n % 4) / 4;
	AddPart(Cause::Fork, 0, fork, 0, sheet);
	AddPart(Cause::Network, kNoHop, 0, latency_ns - fork, sheet);
	AddRequest(&r, sheet);
}

// Values from..to, both for a first pass and as latencies.
struct Looked {
	std::vector<FirstLook> workers = std::vector<FirstLook>(1);
	LogHistogram latencies;

	void Add(uint64_t from, uint64_t to, uint64_t by)
	{
		for (uint64_t v = from; v <= to; v += by) {
			workers[0].bounds.calm.Add(v);
			latencies.Add(v);
		}
	}
};

} // namespace

TEST_CASE("a right estimate saves a pass, a too high one costs it, and neither changes the result")
{
	std::mt19937_64 random(5);
	std::vector<uint64_t> calm;
	for (int i = 0; i < 20'000; i++)
		calm.push_back(100 * us + random() % (50 * us));
	const RunBuilder even = Stalling(20'000, [&](int i) { return calm[static_cast<size_t>(i)]; });
	// Slower at first, by more than all stalls add later. At the end the slowest percent therefore begins
	// lower.
	const RunBuilder slower =
	    Stalling(20'000, [&](int i) { return calm[static_cast<size_t>(i)] * (i < 150 ? 10 : 1); });
	const Threshold p99 = {0, 99};

	const auto without_even = Without(even), without_slower = Without(slower);
	const Outcome guessed = BlameIn(even, 1000, 100'000, p99),
		      too_high = BlameIn(slower, 100, 100'000, p99),
		      whole = BlameIn(slower, 100'000, 100'000, p99);
	CheckWithout(guessed.blame, without_even);
	CheckWithout(too_high.blame, without_slower);
	CheckWithout(whole.blame, without_slower);
	CHECK(guessed.passes == whole.passes);
	CHECK(too_high.passes == guessed.passes + 1);

	// More slow requests than can be stored: the estimate is dropped, and another pass computes their
	// percentiles.
	const Outcome given_up = BlameIn(even, 1000, 50, p99);
	CheckWithout(given_up.blame, without_even);
	CHECK(given_up.passes > guessed.passes);
	CHECK(given_up.blame.slow_ns == guessed.blame.slow_ns);
}

TEST_CASE("the estimate is below the start of the slowest percent and below the threshold")
{
	Looked looked;
	looked.Add(1'000, 100'000, 10); // p99 is 99,010, p97 97,030
	SpeculativeBlame speculative(1000, looked.latencies, 500'000);
	const uint64_t from_ns = speculative.From(looked.workers);
	CHECK(from_ns < 99'010);
	CHECK(from_ns > 80'000);
	CHECK(SpeculativeBlame(1000, looked.latencies, 5'000).From(looked.workers) == 5'000);
	// With many values the estimate is closer, but never above the value that 97 % of all latencies do
	// not exceed.
	for (int i = 0; i < 200; i++)
		looked.Add(1'000, 100'000, 10);
	const uint64_t closer_ns = SpeculativeBlame(1000, looked.latencies, 500'000).From(looked.workers);
	CHECK(closer_ns > from_ns);
	CHECK(closer_ns <= 97'030);
}

TEST_CASE("requests that are stored and loaded again are unchanged")
{
	constexpr uint64_t kThreshold = 90'000;
	Looked looked;
	looked.Add(1'000, 100'000, 10);
	SpeculativeBlame speculative(100'000, looked.latencies, kThreshold);
	const uint64_t from_ns = speculative.From(looked.workers);
	std::vector<SlowRequest> told;
	std::vector<Part> parts;
	BlameLimits limits;
	limits.tell = [&](const SlowRequest &r, const Part *p) {
		told.push_back(r);
		parts.insert(parts.end(), p, p + r.part_count);
	};
	SlowestRequests slowest(limits, 10'000), plain(BlameLimits(), 10'000);
	slowest.SetThreshold(kThreshold);
	plain.SetThreshold(kThreshold);
	uint64_t slow = 0;
	for (int stretch = 0; stretch < 3; stretch++) {
		std::vector<Sheet> sheets(2);
		for (uint64_t n = 0; n < 200; n++) {
			const uint64_t latency_ns = from_ns + n * 77;
			AddTo(&sheets[n / 100], latency_ns, n);
			slow += latency_ns >= kThreshold;
		}
		std::vector<Sheet> same = sheets;
		for (Sheet &sheet : same)
			plain.Take(&sheet);
		speculative.Take(&sheets, &slowest);
		for (const Sheet &sheet : sheets)
			CHECK((sheet.requests.empty() && sheet.parts.empty()));
	}
	REQUIRE(speculative.Active());
	REQUIRE(slow > 100);
	CHECK(told.size() == slow);
	REQUIRE(speculative.PassTo(from_ns, &slowest));
	CHECK(told.size() == slow);
	size_t next = 0;
	for (const SlowRequest &r : told) {
		uint64_t sum = 0;
		for (size_t p = 0; p < r.part_count; p++, next++) {
			sum += parts[next].total_ns();
			CHECK(parts[next].hop == (parts[next].cause == Cause::Fork ? 0 : kNoHop));
		}
		CHECK(sum == r.latency_ns);
	}
	Blame blame, wanted;
	CHECK_FALSE(slowest.Again());
	CHECK_FALSE(plain.Again());
	slowest.Conclude(nullptr, &blame);
	plain.Conclude(nullptr, &wanted);
	REQUIRE(blame.causes.size() == 2);
	for (size_t c = 0; c < 2; c++) {
		CHECK(blame.causes[c].cause == wanted.causes[c].cause);
		CHECK(blame.causes[c].direct_ns == wanted.causes[c].direct_ns);
		CHECK(blame.causes[c].queued_ns == wanted.causes[c].queued_ns);
		CHECK(blame.causes[c].without.p99 == wanted.causes[c].without.p99);
		CHECK(blame.causes[c].without.p99_99 == wanted.causes[c].without.p99_99);
	}
}

TEST_CASE("an estimate that selects too many requests drops the faster ones, or is abandoned")
{
	constexpr size_t kMost = 100;
	Looked looked;
	looked.Add(1'000, 100'000, 10);
	SlowestRequests slowest(BlameLimits(), 10'000);
	slowest.SetThreshold(500'000);
	auto fill = [&](SpeculativeBlame *speculative, size_t requests, uint64_t latency_ns,
			size_t equal = 0) {
		std::vector<Sheet> sheets(1);
		for (size_t n = 0; n < requests; n++) {
			AddTo(&sheets[0], latency_ns, n);
			for (size_t e = 0; e < equal; e++)
				AddEqual(&sheets[0]);
		}
		speculative->Take(&sheets, &slowest);
	};

	// Requests selected by an earlier, lower estimate are dropped.
	SpeculativeBlame lower(kMost, looked.latencies, 500'000);
	Looked first;
	first.Add(1'000, 20'000, 10);
	const uint64_t low_ns = lower.From(first.workers);
	fill(&lower, 250, low_ns);
	const uint64_t high_ns = lower.From(looked.workers);
	REQUIRE(high_ns > low_ns);
	fill(&lower, 100, high_ns);
	CHECK(lower.Active());
	CHECK_FALSE(lower.PassTo(high_ns - 1, &slowest)); // some were not examined then
	CHECK(lower.PassTo(high_ns, &slowest));

	SpeculativeBlame many(kMost, looked.latencies, 500'000);
	const uint64_t from_ns = many.From(looked.workers);
	fill(&many, 2 * kMost, from_ns);
	fill(&many, kMost, 600'000);
	CHECK(many.Active());
	fill(&many, 1, 600'000);
	CHECK_FALSE(many.Active());
	CHECK_FALSE(many.PassTo(UINT64_MAX, &slowest));
	CHECK(many.From(looked.workers) == 500'000); // slow requests are still taken

	// Equal requests take no room.
	SpeculativeBlame equal(kMost, looked.latencies, 500'000);
	fill(&equal, 3 * kMost, equal.From(looked.workers), 15);
	CHECK(equal.Active());
}

TEST_CASE("equal requests count as often as they are in the log, whether or not they follow one another")
{
	constexpr int kRequests = 6000, kTimes = 3;
	auto blame = [](bool together) {
		std::mt19937_64 random(7);
		RunBuilder b;
		const uint64_t length = kRequests * 100 * us + 200 * ms;
		b.Thread(kServer, 0, length);
		for (uint64_t t = 50 * ms; t + 50 * ms < length; t += 100 * ms)
			b.Off(FT_STOPPED, t, t + 4 * ms, t + 4 * ms);
		for (int i = 0; i < kRequests; i += 2) {
			uint64_t due[2], end[2];
			for (int k = 0; k < 2; k++) {
				due[k] = static_cast<uint64_t>(i + k) * 100 * us;
				end[k] = due[k] + 100 * us + random() % (50 * us);
			}
			for (int n = 0; n < 2 * kTimes; n++) {
				const int k = together ? n / kTimes : n % 2;
				b.Request(due[k], due[k], end[k]);
			}
		}
		b.Loop("closed");
		b.Finish();
		return BlameIn(std::move(b), 1000, 100, {0, 90}).blame;
	};
	const Blame equal = blame(true), apart = blame(false);
	CHECK(equal.count == kRequests * kTimes);
	CHECK(equal.slow_count == apart.slow_count);
	CHECK(equal.slow_ns == apart.slow_ns);
	CHECK(equal.latencies.p50 == apart.latencies.p50);
	CHECK(equal.latencies.p99_9 == apart.latencies.p99_9);
	CHECK(equal.latencies.mean == apart.latencies.mean);
	REQUIRE(equal.causes.size() > 1);
	REQUIRE(equal.causes.size() == apart.causes.size());
	for (size_t c = 0; c < equal.causes.size(); c++) {
		CHECK(equal.causes[c].cause == apart.causes[c].cause);
		CHECK(equal.causes[c].requests == apart.causes[c].requests);
		CHECK(equal.causes[c].direct_ns == apart.causes[c].direct_ns);
		CHECK(equal.causes[c].queued_ns == apart.causes[c].queued_ns);
		CHECK(equal.causes[c].without.p99 == apart.causes[c].without.p99);
		CHECK(equal.causes[c].without.max == apart.causes[c].without.max);
	}
}
