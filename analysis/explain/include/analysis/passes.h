// SPDX-License-Identifier: MIT
// The passes over all requests: they count, find percentiles, the slowest and the leading cause, and what
// percentiles would be without a cause.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/blame.h"
#include "analysis/run.h"
#include "common/statistics.h"

namespace forktail::analysis
{

// One cell for each of many equal intervals of a run, in bounded memory. If a run needs more intervals than
// there are, the intervals become twice as long, as often as necessary. They begin at multiples of their
// length, so that the results of several workers join exactly.

// A cell's initial value says nothing, and cell.Merge(other) adds what another cell says.
template <typename Cell> class Intervals
{
public:
	static constexpr uint64_t kIntervals = 4096; // maximum number

	Cell &At(uint64_t t_ns)
	{
		const uint64_t at = t_ns >> shift_;
		if (at < first_ || at - first_ >= cells_.size())
			MakeRoom(t_ns);
		return cells_[(t_ns >> shift_) - first_];
	}
	void Merge(const Intervals &other)
	{
		while (shift_ < other.shift_)
			Double();
		for (size_t i = 0; i < other.cells_.size(); i++)
			At((other.first_ + i) << other.shift_).Merge(other.cells_[i]);
	}
	bool empty() const { return cells_.empty(); }
	size_t size() const { return cells_.size(); }
	uint64_t length_ns() const { return 1ull << shift_; }
	uint64_t begin_ns(size_t i) const { return (first_ + i) << shift_; }
	const Cell &operator[](size_t i) const { return cells_[i]; }

private:
	void MakeRoom(uint64_t t_ns)
	{
		if (cells_.empty())
			first_ = t_ns >> shift_;
		auto last = [&] { return first_ + std::max<uint64_t>(cells_.size(), 1) - 1; };
		while (std::max(t_ns >> shift_, last()) - std::min(t_ns >> shift_, first_) >= kIntervals)
			Double();
		const uint64_t at = t_ns >> shift_;
		if (at < first_) {
			cells_.insert(cells_.begin(), first_ - at, Cell());
			first_ = at;
		}
		if (at - first_ >= cells_.size())
			cells_.resize(at - first_ + 1);
	}
	void Double()
	{
		std::vector<Cell> doubled;
		const uint64_t first = first_ >> 1;
		for (size_t i = 0; i < cells_.size(); i++) {
			size_t to = ((first_ + i) >> 1) - first;
			if (to == doubled.size())
				doubled.emplace_back();
			doubled[to].Merge(cells_[i]);
		}
		cells_ = std::move(doubled);
		first_ = first;
		shift_++;
	}

	uint32_t shift_ = 20; // about 1 ms at first
	uint64_t first_ = 0;  // number of the first interval
	std::vector<Cell> cells_;
};

// How many requests were due, answered and given up in each of many equal intervals of a run.

struct LoadCounts {
	uint64_t due = 0;		   // were due in it
	uint64_t answered = 0, failed = 0; // were answered, or failed, in it

	void Merge(const LoadCounts &other)
	{
		due += other.due;
		answered += other.answered;
		failed += other.failed;
	}
};

using LoadCurve = Intervals<LoadCounts>;

// The longest latency in each of many equal intervals of a run.

class Peaks
{
public:
	void Add(uint64_t due_ns, uint64_t latency_ns) { peaks_.At(due_ns).Merge({latency_ns}); }
	void Merge(const Peaks &other) { peaks_.Merge(other.peaks_); }
	bool empty() const { return peaks_.empty(); }
	// The longest latency of requests due in each of `columns` equal parts of [from_ns, to_ns); 0: none.
	// An interval that overlaps several parts counts in each.
	std::vector<uint64_t> Over(uint64_t from_ns, uint64_t to_ns, size_t columns) const
	{
		std::vector<uint64_t> longest(columns);
		const double width = static_cast<double>(std::max<uint64_t>(to_ns - from_ns, 1)) /
				     static_cast<double>(columns);
		auto column_of = [&](uint64_t t_ns) {
			double column = t_ns <= from_ns ? 0 : static_cast<double>(t_ns - from_ns) / width;
			return std::min(static_cast<size_t>(column), columns - 1);
		};
		for (size_t i = 0; i < peaks_.size(); i++) {
			const uint64_t begin = peaks_.begin_ns(i), end = begin + (peaks_.length_ns() - 1);
			if (!peaks_[i].latency_ns || begin >= to_ns || end < from_ns)
				continue;
			size_t last = column_of(end);
			for (size_t c = column_of(begin); c <= last; c++)
				longest[c] = std::max(longest[c], peaks_[i].latency_ns);
		}
		return longest;
	}

private:
	struct Peak {
		uint64_t latency_ns = 0;
		void Merge(const Peak &other) { latency_ns = std::max(latency_ns, other.latency_ns); }
	};
	Intervals<Peak> peaks_;
};

// Percentiles: exact ones by selection, of values in memory or of values that are read repeatedly, and a fine
// histogram for millions of derived values.

using common::Rank;

// Sets p99 .. max of `count` values. The `top_count` largest are given (and reordered), which must include
// the rank of p99.
void TopPercentiles(uint64_t *top, size_t top_count, uint64_t count, Latencies *out);

// Counts values in buckets 1/2048 wide relative to the value: two values of a bucket differ by at most 0.05
// %.
struct LogHistogram {
	static constexpr int kBits = 11;
	std::vector<uint32_t> slots = std::vector<uint32_t>(static_cast<size_t>(64 - kBits + 1) << kBits);
	uint64_t count = 0;
	uint64_t max = 0;

	static size_t Slot(uint64_t value)
	{
		int above = std::bit_width(value | ((1u << kBits) - 1)) - kBits;
		return (static_cast<size_t>(above) << kBits) + (value >> above);
	}
	static uint64_t Floor(size_t slot)
	{
		return static_cast<uint64_t>(slot & ((1u << kBits) - 1)) << (slot >> kBits);
	}
	void Add(uint64_t value, uint64_t times = 1)
	{
		slots[Slot(value)] += static_cast<uint32_t>(times);
		count += times;
		max = value > max ? value : max;
	}
	void Merge(const LogHistogram &other);
	// The slot of a rank (1..count), and the number of values in slots before it.
	size_t SlotOfRank(uint64_t rank, uint64_t *before) const;
	// The lowest value of the percentile's bucket; 0 if empty.
	uint64_t PercentileFloor(double percentile) const;
};

// The values of the ranks nq -+ 1.96 sqrt(nq(1-q)): the normal approximation of the binomial distribution of
// how many values are below a percentile (Conover, Practical Nonparametric Statistics, "quantile test").
PercentileRange RangeOf(const LogHistogram &sample, double percentile);

// The same for several histograms together.
uint64_t PercentileFloor(const std::vector<const LogHistogram *> &together, double percentile);

// Finds the exact values of some ranks. The values are read once for a histogram, and then again for those in
// the histogram's slots of the ranks. Few such values are stored; many are counted in finer slots in each
// further pass. Munro and Paterson, "Selection and sorting with limited storage" (1980), bound the number of
// passes; here it is usually one.
class RankFinder
{
public:
	// `ranks`: 1..all.count each. If all.count is 0, there is nothing to find.
	RankFinder(const LogHistogram &all, const std::vector<uint64_t> &ranks);
	// Whether all ranks are found.
	bool Done() const;
	void Add(uint64_t value, uint64_t times = 1)
	{
		if (value >= low_ && value <= high_)
			AddInside(value, times);
	}
	// Ends a pass over all values.
	void EndPass();
	// The value of ranks[i], in the constructor's order.
	uint64_t Value(size_t i) const { return wanted_[i].value; }

private:
	struct Wanted {
		uint64_t rank; // the rank among values in [low, high]
		uint64_t low, high;
		bool keep; // store values; else count by slots of 2^shift
		uint32_t shift;
		std::vector<uint64_t> values;
		std::vector<uint32_t> counts;
		bool known;
		uint64_t value;
	};
	void AddInside(uint64_t value, uint64_t times);
	void Narrow(Wanted *w, uint64_t low, uint64_t high, uint64_t rank, uint64_t count);
	void Cover();

	std::vector<Wanted> wanted_;
	uint64_t low_ = 1, high_ = 0; // range of all ranks not found yet
};

// The default percentile from which requests are slow.
constexpr double kUsualThreshold = 99;

// The percentiles of a run, and one more on request, of values that are read about twice.
class Percentiles
{
public:
	Percentiles(const LogHistogram &all, unsigned __int128 sum, double further)
	    : finder_(all, RanksOf(all.count, further))
	{
		found_.max = all.max;
		if (all.count)
			found_.mean = static_cast<double>(sum) / static_cast<double>(all.count);
	}
	void Add(uint64_t value, uint64_t times = 1) { finder_.Add(value, times); }
	// False: the values must be read once more.
	bool EndPass()
	{
		finder_.EndPass();
		return finder_.Done();
	}
	Latencies Result() const
	{
		Latencies l = found_;
		uint64_t *const to[] = {&l.p50, &l.p90, &l.p99, &l.p99_9, &l.p99_99};
		for (size_t i = 0; i < std::size(to); i++)
			*to[i] = finder_.Value(i);
		return l;
	}
	uint64_t Further() const { return finder_.Value(std::size(kPoints)); }

private:
	static constexpr double kPoints[] = {50, 90, 99, 99.9, 99.99};
	static std::vector<uint64_t> RanksOf(uint64_t count, double further)
	{
		std::vector<uint64_t> ranks;
		for (double p : kPoints)
			ranks.push_back(Rank(count, p));
		ranks.push_back(Rank(count, further));
		return ranks;
	}

	RankFinder finder_;
	Latencies found_;
};

// The first pass over a request log: what must be known about all its requests before any is blamed.

// One request of several, for the usual latency.
struct SampledRequest {
	uint64_t intended_ns, start_ns, arrived_ns, latency_ns;
	uint32_t connection;
	uint8_t op, behind;
};

// An operation's requests that a server answered in a period.
struct OperationCount {
	uint64_t requests = 0;
	// From the server's read to its answer, of those whose read the server's kernel saw.
	uint64_t served = 0, service_ns = 0;

	void Add(const OperationCount &other)
	{
		requests += other.requests;
		served += other.served;
		service_ns += other.service_ns;
	}
};
using OperationCounts = std::array<OperationCount, 256>; // by index into Run::ops

struct LogFacts {
	uint64_t count = 0;
	std::array<uint64_t, 256> by_status = {};
	uint64_t first_due_ns = UINT64_MAX, last_due_ns = 0, last_end_ns = 0;
	// Per Run::connections: the due time of its first request; UINT64_MAX: none.
	std::vector<uint64_t> first_due_of;
	std::vector<LastUse> last_use_of; // likewise, its last request in the order of the log
	LogHistogram latencies;		  // of answered requests
	unsigned __int128 latencies_ns = 0;
	// Requests through a proxy to an unknown server behind it, and whether that server is known for any.
	uint64_t behind_unknown = 0;
	bool behind = false;
	uint64_t joined = 0;	    // requests that a kernel log has too
	OperationCounts by_op = {}; // answered in the period that was given
	// Answers with a known arrival: the time up to it, and the time that they then waited unread.
	LogHistogram arrivals;
	unsigned __int128 arrivals_ns = 0;
	uint64_t unread_ns = 0, longest_unread_ns = 0;
	Peaks peaks;			    // of answered requests
	LoadCurve curve;		    // of all requests
	std::vector<Outage> outages;	    // by the ends of servers' processes, if they were looked for
	std::vector<SampledRequest> sample; // of answered requests, in order

	uint64_t answered() const { return latencies.count; }
};

// `period`: of `by_op`.
LogFacts CountRequests(const Run &run, Log *log, const TimeSpan &period = {0, 0});
// Adds the usual latencies and the first due times of connections from earlier requests.
void AddEarlier(LogFacts earlier, LogFacts *facts);

// Requests by client, connection, command and size: how many, how long they took, and what the slow ones met.
// One pass over the log counts them. Memory is bounded, whatever clients do: beyond a number of groups the
// rest is one group, and a group's latencies are a histogram.

struct RequestGroup {
	std::string name;
	uint32_t client = 0; // 1 + index into Run::request_clients; 0: not one client
	uint64_t requests = 0, errors = 0;
	Latencies latencies;		   // of answered requests: p50, p99, p99_9 and max
	uint64_t slow = 0;		   // slow requests
	uint64_t slow_ns = 0;		   // their time
	std::vector<HopCause> causes = {}; // of that time, largest first
};

// What requests may be grouped by. Clients, connections and sizes only if the log knows them.
enum class GroupBy { Client, Command, Connection, Size };
constexpr size_t kGroupings = 4;

// Counts requests, then slow requests, and makes the groups.
class RequestGroups
{
public:
	// `most`: groups of clients, further ones are together in "other"; five times as many of connections.
	explicit RequestGroups(size_t most = 1000) : most_(most) {}
	// Counts all requests of the log, by client and command and, if asked for, by what else.
	void Count(const Run &run, Log *log, std::optional<GroupBy> asked = {});
	void AddSlow(const Run &run, const SlowRequest &r, const Part *parts);
	// By p99.9, largest first. Empty: the log does not know, or it was not asked for.
	std::vector<RequestGroup> Result(const Run &run, GroupBy by) const;

private:
	struct Group {
		uint64_t requests = 0, errors = 0, slow = 0, slow_ns = 0;
		common::Histogram latencies;
		std::array<uint64_t, kCauses> by_cause = {};
	};
	struct Groups {
		std::vector<std::unique_ptr<Group>> all; // by number
		std::unique_ptr<Group> other;
		size_t count = 0; // of `all`
	};
	Group *GroupAt(GroupBy by, size_t number);
	template <typename Each>
	void ForGroups(const Run &run, uint8_t op, uint32_t connection, uint32_t request_bytes,
		       uint32_t answer_bytes, Each each);
	static RequestGroup ResultOf(const Group &group);

	size_t most_;
	std::array<bool, kGroupings> wanted_ = {};
	std::array<Groups, kGroupings> groups_;
};

// What the first line of an answer speaks of: one rule for explain, gate, page, snapshots and all other
// outputs.
//
// A cause with the largest share of the slow requests' time is not always the one to remove: two stalls that
// hit different requests have one percentile. So causes are ranked by what a percentile would be without
// them.

struct Lead {
	enum class Kind {
		None,	      // nothing was slow, or nothing was answered
		Unattributed, // most of the time, or more than any cause has
		Causes,
	};
	Kind kind = Kind::None;
	// The percentile by which causes are ranked; null for Kind::None.
	const NamedLatency *figure = nullptr;
	// The causes to name, by time. Several: the percentile is lower only without all of them. Without
	// client-late, unless that is the only one.
	std::vector<Cause> causes = {};
	uint64_t without_ns = 0;	// the percentile without these; 0: not noticeably lower
	std::optional<Cause> next = {}; // another one without which it would be noticeably lower
	uint64_t without_next_ns = 0;
	// The load generator's own delays, if they matter: an error of the measurement, not a cause to rank.
	bool late = false; // to be named beside the causes
	bool late_first =
	    false; // without them the percentile would be lowest; they took at least half of its time

	// Whether the answer speaks of what is behind a cause.
	bool Names(Cause cause) const;
};

// A percentile that changes by less than this share of it does not change noticeably.
constexpr double kNoticeable = 0.1;

// Ranks by `asked` (one of kLatencies, from kLowestWithout up). If that is a usual latency of the run and a
// higher one is not, ranks by that one, unless `exactly`.
Lead FindLead(const Blame &blame, const NamedLatency &asked, bool exactly = false);

// p99.9.
const NamedLatency &UsualFigure();

// The percentile of all answered requests if none had any time of these causes. At least the threshold of
// slow requests, because faster ones are not stored with their parts.
uint64_t PercentileWithout(const Blame &blame, const NamedLatency &figure, const std::vector<Cause> &causes);

// Blames all requests of a run, by passes over its log.

// Parses "1ms", "500us", "2s", "p99", "p99.9".
bool ParseThreshold(const std::string &text, Threshold *threshold, std::string *error);

// Blames requests (or, without a log, iterations) on the timelines. These are: one per entry of run.servers
// (at least one; an empty one makes all time Unknown), then one per entry of run.behind (an empty one makes
// time there Network), then the further threads that `serving` or the timelines' foreign time refer to. If
// load threads are known, time in which a request waited for one of them while the server was idle is
// ClientLate rather than Network.
Blame BlameRun(const Run &run, const std::vector<Timeline> &timelines, const Threshold &threshold,
	       const Clients &clients = {}, const Serving &serving = {});

// The same for a log that is read by windows, and whose requests were counted.
Blame BlameLog(const Run &run, Log *log, LogFacts facts, const std::vector<Timeline> &timelines,
	       const Threshold &threshold, const Clients &clients, const Serving &serving,
	       const BlameLimits &limits, const Stretches &stretches, const Earlier &earlier = {});
// Without a log: event-loop iterations.
Blame BlameIterations(const Run &run, const std::vector<Timeline> &timelines, const Threshold &threshold,
		      const BlameLimits &limits, const Stretches &stretches);

} // namespace forktail::analysis
