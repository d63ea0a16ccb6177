// SPDX-License-Identifier: MIT
// Reduces any number of requests to what a screen can show. A point that lies under others of its cause is
// not missed, a lone one is: so where there are too many, each neighbourhood keeps as many as the crowded
// ones, and all keep at least one.
#include "points.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace forktail
{

namespace
{

constexpr int kBins = 13 * kBinsPerDecade; // 1 ns to 10,000 s
constexpr uint32_t kNeighbourhoods = 2048; // of time, for thinning

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

uint8_t Share(uint64_t part_ns, uint64_t whole_ns)
{
	if (whole_ns == 0)
		return 0;
	double share = static_cast<double>(part_ns) / static_cast<double>(whole_ns);
	return static_cast<uint8_t>(std::lround(255 * std::min(1.0, share)));
}

// Which slow requests become points: all, or the first few of each neighbourhood of time, latency and cause.
std::vector<bool> ChoosePoints(const Blame &blame, const ReportClock &clock, size_t limit)
{
	std::vector<bool> chosen(blame.slow.size(), true);
	if (blame.slow.size() <= limit)
		return chosen;
	std::unordered_map<uint64_t, uint32_t> seen;
	std::vector<uint32_t> rank(blame.slow.size());
	std::vector<size_t> ranked; // how many have a rank
	for (size_t i = 0; i < blame.slow.size(); i++) {
		const SlowRequest &s = blame.slow[i];
		uint64_t place = uint64_t{clock.Tick(s.start_ns)} * kNeighbourhoods >> 32;
		uint64_t key = (place * kBins + static_cast<uint64_t>(BinOf(s.latency_ns))) * kCauses +
			       static_cast<uint64_t>(Index(MainCause(blame, s)));
		rank[i] = seen[key]++;
		if (rank[i] >= ranked.size())
			ranked.resize(rank[i] + 1);
		ranked[rank[i]]++;
	}
	// Whole ranks while they fit; of the next one the first so many.
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
	// A byte holds 256 bins, 12.8 decades of latency; a longer range ends in its last bin.
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

// The time an episode is looked at: itself and as much again around it, at least 5 ms.
using Interval = std::pair<uint64_t, uint64_t>;
std::vector<Interval> Surroundings(const std::vector<Episode> &episodes)
{
	std::vector<Interval> intervals;
	for (const Episode &e : episodes) {
		uint64_t from = std::min(e.since_ns, e.start_ns);
		uint64_t margin = std::max<uint64_t>((e.end_ns - from) / 2, 5'000'000);
		intervals.push_back({from - std::min(from, margin), e.end_ns + margin});
	}
	std::sort(intervals.begin(), intervals.end());
	std::vector<Interval> joined;
	for (const Interval &i : intervals) {
		if (joined.empty() || i.first > joined.back().second)
			joined.push_back(i);
		else
			joined.back().second = std::max(joined.back().second, i.second);
	}
	return joined;
}

bool IsInside(const std::vector<Interval> &intervals, uint64_t t_ns)
{
	auto after = std::upper_bound(intervals.begin(), intervals.end(), t_ns,
				      [](uint64_t t, const Interval &i) { return t < i.first; });
	return after != intervals.begin() && t_ns <= (after - 1)->second;
}

// Calls each(start_ns, latency_ns) for every request, or iteration, that is not slow, or not among the slow
// ones that are kept.
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
				each(q.intended_ns[i], q.Latency(i));
	});
}

// Those around episodes, one by one; every stride-th where they are too many.
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
		// Too many: every second of them, from now on too.
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
	const std::vector<Interval> around_;
	std::vector<Near> found_;
	size_t seen_ = 0, stride_ = 1;
};

} // namespace

ReportPoints CollectPoints(const Explanation &explanation, const ReportClock &clock,
			   const PointLimits &limits)
{
	const Blame &blame = explanation.blame;
	ReportPoints out;
	out.slow = std::max<uint64_t>(blame.slow_count, blame.slow.size());
	Grid grid(clock, limits.columns);

	std::vector<bool> chosen = ChoosePoints(blame, clock, limits.points);
	for (size_t i = 0; i < blame.slow.size(); i++) {
		const SlowRequest &s = blame.slow[i];
		if (!chosen[i]) {
			grid.Add(s.start_ns, s.latency_ns);
			continue;
		}
		out.start.push_back(clock.Tick(s.start_ns));
		out.since.push_back(clock.Tick(s.since_ns));
		out.latency_ns.push_back(static_cast<float>(s.latency_ns));
		auto part = [&](uint16_t k) {
			return k < s.part_count ? blame.parts[s.first_part + k] : Part{};
		};
		out.cause.push_back(static_cast<uint8_t>(Index(part(0).cause)));
		out.share.push_back(Share(part(0).total_ns(), s.latency_ns));
		out.cause2.push_back(static_cast<uint8_t>(Index(part(1).cause)));
		out.share2.push_back(Share(part(1).total_ns(), s.latency_ns));
		out.op.push_back(s.op);
	}
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

} // namespace forktail
