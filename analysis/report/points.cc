// SPDX-License-Identifier: MIT
// Reduces any number of requests to what a screen can show. A point under others of its cause is not missed,
// but a lone one is. So if there are too many, each neighbourhood keeps equally many at most, and at least
// one.
#include "points.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace forktail::analysis::report
{

namespace
{

constexpr int kBins = 13 * kBinsPerDecade; // 1 ns to 10,000 s
constexpr uint32_t kNeighbourhoods = 2048; // columns of time, for thinning

int BinOf(uint64_t latency_ns)
{
	if (latency_ns == 0)
		return 0;
	int bin = static_cast<int>(std::log10(static_cast<double>(latency_ns)) * kBinsPerDecade);
	return std::clamp(bin, 0, kBins - 1);
}

Cause MainCause(const Blame &blame, const SlowRequest &s)
{
	return s.part_count ? blame.parts[s.first_part].cause : Cause::Unknown;
}

// Selects the slow requests that become points: all, or the first few of each neighbourhood of time, latency
// and cause.
std::vector<bool> ChoosePoints(const Blame &blame, const ReportClock &clock, size_t limit)
{
	std::vector<bool> chosen(blame.slow.size(), true);
	if (blame.slow.size() <= limit)
		return chosen;
	std::unordered_map<uint64_t, uint32_t> seen;
	std::vector<uint32_t> rank(blame.slow.size());
	std::vector<size_t> ranked; // number of points by rank
	for (size_t i = 0; i < blame.slow.size(); i++) {
		const SlowRequest &s = blame.slow[i];
		uint64_t place = uint64_t{clock.Tick(s.due_ns)} * kNeighbourhoods >> 32;
		uint64_t key = (place * kBins + static_cast<uint64_t>(BinOf(s.latency_ns))) * kCauses +
			       static_cast<uint64_t>(Index(MainCause(blame, s)));
		rank[i] = seen[key]++;
		if (rank[i] >= ranked.size())
			ranked.resize(rank[i] + 1);
		ranked[rank[i]]++;
	}
	// Whole ranks while they fit, and the first ones of the next rank.
	size_t left = limit;
	uint32_t whole = 0;
	while (whole < ranked.size() && ranked[whole] <= left)
		left -= ranked[whole++];
	for (size_t i = 0; i < rank.size(); i++) {
		if (rank[i] < whole)
			continue;
		chosen[i] = rank[i] == whole && left > 0;
		if (chosen[i])
			left--;
	}
	return chosen;
}

// Requests per (column, bin), dense.
struct Grid {
	const ReportClock &clock;
	uint32_t columns;
	std::vector<uint32_t> counts;

	Grid(const ReportClock &c, uint32_t n) : clock(c), columns(n), counts(size_t{n} * kBins) {}
	void Add(uint64_t start_ns, uint64_t latency_ns)
	{
		double at = static_cast<double>(clock.Clamp(start_ns) - clock.begin_ns) /
			    static_cast<double>(clock.end_ns - clock.begin_ns);
		uint32_t column = std::min(columns - 1, static_cast<uint32_t>(at * columns));
		counts[size_t{column} * kBins + static_cast<size_t>(BinOf(latency_ns))]++;
	}
	size_t Used() const
	{
		return counts.size() - static_cast<size_t>(std::count(counts.begin(), counts.end(), 0u));
	}
	void Halve()
	{
		columns /= 2;
		for (uint32_t c = 0; c < columns; c++)
			for (size_t b = 0; b < kBins; b++)
				counts[size_t{c} * kBins + b] =
				    counts[size_t{2 * c} * kBins + b] + counts[size_t{2 * c + 1} * kBins + b];
		counts.resize(size_t{columns} * kBins);
	}
};

void CollectGrid(const Grid &grid, ReportPoints *out)
{
	out->columns = grid.columns;
	int first = kBins, last = 0;
	for (size_t i = 0; i < grid.counts.size(); i++) {
		if (grid.counts[i] == 0)
			continue;
		first = std::min(first, static_cast<int>(i % kBins));
		last = std::max(last, static_cast<int>(i % kBins));
	}
	if (first == kBins)
		return;
	// A byte holds 256 bins, 12.8 decades of latency. Latencies beyond count in the last bin.
	out->first_bin = first;
	for (size_t i = 0; i < grid.counts.size(); i++) {
		if (grid.counts[i] == 0)
			continue;
		out->cell_column.push_back(static_cast<uint16_t>(i / kBins));
		out->cell_bin.push_back(
		    static_cast<uint8_t>(std::min(255, static_cast<int>(i % kBins) - first)));
		out->cell_count.push_back(grid.counts[i]);
	}
}

// Calls each(start_ns, latency_ns) for every request, or iteration, that is not slow, or not among the stored
// slow ones.
template <typename Each> void ForOthers(const Explanation &e, Each each)
{
	const uint64_t below_ns = std::max(e.blame.threshold_ns, e.blame.kept_from_ns);
	if (e.blame.from_iterations) {
		e.stretches.each([&](uint64_t from_ns, uint64_t to_ns) {
			for (const ft_span &s : e.run.iterations)
				if (s.start_ns >= from_ns && s.start_ns < to_ns && s.duration_ns < below_ns)
					each(s.start_ns, s.duration_ns);
		});
		return;
	}
	WholeLog whole(e.run);
	ForWindows(e.log ? e.log.get() : &whole, [&] {
		const Requests &q = e.run.requests;
		for (size_t i = q.lead; i < q.size(); i++)
			if (q.Latency(i) < below_ns && q.status[i] != FT_STATUS_UNSENT)
				each(q.due_ns[i], q.Latency(i));
	});
}

// Requests around episodes as single points; every stride-th if there are too many.
class NearPoints
{
public:
	NearPoints(const Explanation &e, const ReportClock &clock, size_t limit)
	    : clock_(clock), limit_(limit), around_(Surroundings(e.episodes))
	{
	}
	void Add(uint64_t start_ns, uint64_t latency_ns)
	{
		if (!IsInside(around_, start_ns) || seen_++ % stride_)
			return;
		found_.push_back({clock_.Tick(start_ns), static_cast<float>(latency_ns)});
		if (found_.size() <= limit_)
			return;
		// Too many: keep every second one, and of the next ones too.
		for (size_t i = 0; 2 * i < found_.size(); i++)
			found_[i] = found_[2 * i];
		found_.resize((found_.size() + 1) / 2);
		stride_ *= 2;
	}
	void Collect(ReportPoints *out)
	{
		std::sort(found_.begin(), found_.end(),
			  [](const Near &a, const Near &b) { return a.start < b.start; });
		for (const Near &n : found_) {
			out->near_start.push_back(n.start);
			out->near_latency_ns.push_back(n.latency_ns);
		}
		out->near_stride = stride_;
	}

private:
	struct Near {
		uint32_t start;
		float latency_ns;
	};
	const ReportClock &clock_;
	const size_t limit_;
	const std::vector<TimeRange> around_;
	std::vector<Near> found_;
	size_t seen_ = 0, stride_ = 1;
};

// The number of parts per point so that all fit, at least one.
size_t PartsEach(const Blame &blame, const std::vector<bool> &chosen, size_t limit)
{
	constexpr size_t most = 16;
	std::vector<size_t> sizes(most + 1); // number of points with this many parts; the last entry: or more
	for (size_t i = 0; i < blame.slow.size(); i++)
		if (chosen[i])
			sizes[std::min<size_t>(blame.slow[i].part_count, most)]++;
	for (size_t each = most; each > 1; each--) {
		size_t parts = 0;
		for (size_t k = 0; k <= most; k++)
			parts += sizes[k] * std::min(k, each);
		if (parts <= limit)
			return each;
	}
	return 1;
}

// Numbers values in the order of their first use.
template <typename T> class Numbering
{
public:
	explicit Numbering(std::vector<T> *values) : values_(*values) {}
	T Of(T value)
	{
		auto [known, is_new] = known_.try_emplace(value, static_cast<T>(values_.size()));
		if (is_new)
			values_.push_back(value);
		return known->second;
	}

private:
	std::vector<T> &values_;
	std::unordered_map<T, T> known_;
};

// Makes the marks of slow requests, with all their data.
class MarkMaker
{
public:
	MarkMaker(const Blame &blame, const ReportClock &clock, ReportPoints *out)
	    : blame_(blame), clock_(clock), out_(*out), connections_(&out->connections), hops_(&out->hops)
	{
	}
	void Add(const SlowRequest &s)
	{
		out_.start.push_back(clock_.Tick(s.due_ns));
		out_.since.push_back(clock_.Tick(s.since_ns));
		out_.latency_ns.push_back(static_cast<float>(s.latency_ns));
		out_.cause.push_back(static_cast<uint8_t>(Index(MainCause(blame_, s))));
		out_.op.push_back(s.op);
		out_.hop.push_back(Hop(s.hop));
		AddParts(s);
		if (blame_.from_iterations)
			return;
		out_.number.push_back(static_cast<uint32_t>(std::min<uint64_t>(s.index, UINT32_MAX)));
		out_.sent.push_back(clock_.Tick(std::max(s.sent_ns, s.due_ns)));
		out_.connection.push_back(connections_.Of(s.connection));
		out_.status.push_back(s.status);
		out_.behind.push_back(s.behind);
		bool on_the_way = s.arrived && (s.way.request_ns || s.way.answer_ns);
		known_ |= s.arrived || on_the_way;
		out_.unread_ns.push_back(s.arrived ? static_cast<float>(s.unread_ns) : NAN);
		out_.way_ns.push_back(on_the_way ? static_cast<float>(s.way.request_ns) : NAN);
		out_.way_back_ns.push_back(on_the_way ? static_cast<float>(s.way.answer_ns) : NAN);
		AddSeen(s);
	}
	void Finish()
	{
		if (!known_)
			for (std::vector<float> *none : {&out_.unread_ns, &out_.way_ns, &out_.way_back_ns})
				none->clear();
		if (seen_)
			return;
		for (std::vector<float> *none : {&out_.read_after_ns, &out_.written_after_ns})
			none->clear();
		for (std::vector<uint32_t> *none : {&out_.request_bytes, &out_.answer_bytes})
			none->clear();
	}

private:
	// What the server's kernel saw of it.
	void AddSeen(const SlowRequest &s)
	{
		seen_ |= s.request_bytes != 0;
		for (const auto &[t_ns, to] : {std::pair{s.read_ns, &out_.read_after_ns},
					       std::pair{s.written_ns, &out_.written_after_ns}})
			to->push_back(t_ns ? static_cast<float>(t_ns - s.sent_ns) : NAN);
		out_.request_bytes.push_back(s.request_bytes);
		out_.answer_bytes.push_back(s.answer_bytes);
	}
	uint16_t Hop(uint16_t hop) { return hop == kNoHop ? kNoHop : hops_.Of(hop); }
	void AddParts(const SlowRequest &s)
	{
		size_t count = std::min<size_t>(s.part_count, out_.parts_each);
		out_.part_count.push_back(static_cast<uint8_t>(count));
		for (size_t k = 0; k < count; k++) {
			const Part &part = blame_.parts[s.first_part + k];
			out_.part_cause.push_back(static_cast<uint8_t>(Index(part.cause)));
			out_.part_hop.push_back(Hop(part.hop));
			out_.part_direct_ns.push_back(static_cast<float>(part.direct_ns));
			out_.part_queued_ns.push_back(static_cast<float>(part.queued_ns));
		}
	}

	const Blame &blame_;
	const ReportClock &clock_;
	ReportPoints &out_;
	Numbering<uint32_t> connections_;
	Numbering<uint16_t> hops_;
	bool known_ = false, seen_ = false;
};

} // namespace

std::vector<TimeRange> Surroundings(const std::vector<Episode> &episodes)
{
	std::vector<TimeRange> intervals;
	for (const Episode &e : episodes) {
		uint64_t from = std::min(e.since_ns, e.start_ns);
		uint64_t margin = std::max<uint64_t>((e.end_ns - from) / 2, 5'000'000);
		intervals.push_back({from - std::min(from, margin), e.end_ns + margin});
	}
	std::sort(intervals.begin(), intervals.end());
	std::vector<TimeRange> joined;
	for (const TimeRange &i : intervals) {
		if (joined.empty() || i.first > joined.back().second)
			joined.push_back(i);
		else
			joined.back().second = std::max(joined.back().second, i.second);
	}
	return joined;
}

bool IsInside(const std::vector<TimeRange> &intervals, uint64_t t_ns)
{
	auto after = std::upper_bound(intervals.begin(), intervals.end(), t_ns,
				      [](uint64_t t, const TimeRange &i) { return t < i.first; });
	return after != intervals.begin() && t_ns <= (after - 1)->second;
}

ReportPoints CollectPoints(const Explanation &explanation, const ReportClock &clock,
			   const PointLimits &limits)
{
	const Blame &blame = explanation.blame;
	ReportPoints out;
	out.slow = std::max<uint64_t>(blame.slow_count, blame.slow.size());
	Grid grid(clock, limits.columns);

	std::vector<bool> chosen = ChoosePoints(blame, clock, limits.points);
	out.parts_each = PartsEach(blame, chosen, limits.parts);
	MarkMaker marks(blame, clock, &out);
	for (size_t i = 0; i < blame.slow.size(); i++) {
		if (chosen[i])
			marks.Add(blame.slow[i]);
		else
			grid.Add(blame.slow[i].due_ns, blame.slow[i].latency_ns);
	}
	marks.Finish();
	NearPoints near(explanation, clock, limits.near);
	ForOthers(explanation, [&](uint64_t start_ns, uint64_t latency_ns) {
		grid.Add(start_ns, latency_ns);
		near.Add(start_ns, latency_ns);
	});
	while (grid.columns > 256 && grid.Used() > limits.cells)
		grid.Halve();
	CollectGrid(grid, &out);
	near.Collect(&out);
	return out;
}

} // namespace forktail::analysis::report
