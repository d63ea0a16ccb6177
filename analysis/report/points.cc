// SPDX-License-Identifier: MIT
// The points of the page.
//
// Reduces any number of requests to what a screen can show. A point under others of its cause is not missed,
// but a lone one is. So if there are too many, each neighbourhood keeps equally many at most, and at least
// one.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/evidence.h"
#include "page_data.h"

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
template <typename Each> void ForOthers(const Explanation &e, Reading *reading, Each each)
{
	const Run &run = reading->run;
	const uint64_t below_ns = std::max(e.blame.threshold_ns, e.blame.kept_from_ns);
	if (e.blame.from_iterations) {
		reading->stretches.each([&](uint64_t from_ns, uint64_t to_ns) {
			for (const ft_span &s : run.iterations)
				if (s.start_ns >= from_ns && s.start_ns < to_ns && s.duration_ns < below_ns)
					each(s.start_ns, s.duration_ns);
		});
		return;
	}
	WholeLog whole(run);
	ForWindows(reading->log ? reading->log.get() : &whole, [&] {
		const Requests &q = run.requests;
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

ReportPoints CollectPoints(const Explanation &explanation, Reading *reading, const ReportClock &clock,
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
	ForOthers(explanation, reading, [&](uint64_t start_ns, uint64_t latency_ns) {
		grid.Add(start_ns, latency_ns);
		near.Add(start_ns, latency_ns);
	});
	while (grid.columns > 256 && grid.Used() > limits.cells)
		grid.Halve();
	CollectGrid(grid, &out);
	near.Collect(&out);
	return out;
}

// One pass is enough. A span that is shorter than the maximum number of others becomes part of intervals as
// soon as those are known, and intervals are stored so fine that all longer ones can be made of them.

namespace
{

constexpr uint64_t kFinestCellNs = 1'000'000; // a tally window: the resolution of short intervals
constexpr uint64_t kSlices = 100'000;	      // maximum per run: more than any screen has pixels
constexpr size_t kDetailBytes = 600;
constexpr size_t kDetails = 65'536; // limit of 16 bits

// The largest power of ten times the finest interval.
uint64_t PowerOf(uint64_t cell_ns)
{
	uint64_t power = kFinestCellNs;
	while (power * 10 <= cell_ns)
		power *= 10;
	return power;
}

// 1, 2, 5, 10, 20 ... times the finest.
uint64_t NextCell(uint64_t cell_ns)
{
	uint64_t power = PowerOf(cell_ns);
	return cell_ns / power == 2 ? power * 5 : cell_ns * 2;
}

struct Details {
	std::vector<std::string> texts = {""};
	std::vector<uint16_t> known; // by number in LaneTexts; 0: not yet used

	uint16_t Index(uint32_t number, const std::string &text)
	{
		if (text.empty())
			return 0;
		if (known[number] == 0 && texts.size() < kDetails) {
			known[number] = static_cast<uint16_t>(texts.size());
			texts.push_back(text);
		}
		return known[number];
	}
};

} // namespace

LaneCells::LaneCells(const ReportClock &clock, size_t limit)
    : begin_ns_(clock.begin_ns), length_ns_(clock.end_ns - clock.begin_ns), limit_(limit),
      shortest_ns_(kFinestCellNs)
{
	while (length_ns_ / shortest_ns_ > kSlices)
		shortest_ns_ = NextCell(shortest_ns_);
	uint64_t power = PowerOf(shortest_ns_);
	SetSlice(shortest_ns_ / power == 2 ? power : shortest_ns_); // intervals of 5 cannot be made of 2
}

// There are certainly too many if even the longest interval before the next power of ten, which holds this
// many of these, cannot make them few enough.
void LaneCells::SetSlice(uint64_t slice_ns)
{
	slice_ns_ = slice_ns;
	uint64_t last_ns = 5 * PowerOf(slice_ns);
	most_ = last_ns > length_ns_ ? SIZE_MAX : limit_ * (last_ns / slice_ns);
}

void LaneCells::Add(size_t lane, const LaneShare &s)
{
	if (s.end_ns <= s.start_ns || s.start_ns < begin_ns_)
		return;
	if (lane >= lanes_.size())
		lanes_.resize(lane + 1);
	double density = s.ns / static_cast<double>(s.end_ns - s.start_ns);
	uint64_t from = s.start_ns - begin_ns_, to = s.end_ns - begin_ns_;
	while (from < to) {
		uint64_t slice = from / slice_ns_;
		uint64_t until = std::min(to, (slice + 1) * slice_ns_);
		auto [cell, is_new] = lanes_[lane].try_emplace(slice * kLaneCauses + s.cause);
		cell->second += density * static_cast<double>(until - from);
		from = until;
		if (is_new && ++count_ > most_)
			Coarsen();
	}
}

// The intervals of each lane, lengthened by a factor.
std::vector<LaneCells::Slices> LaneCells::Merged(uint64_t factor) const
{
	std::vector<Slices> merged(lanes_.size());
	for (size_t i = 0; i < lanes_.size(); i++)
		for (const auto &[key, ns] : lanes_[i])
			merged[i][key / kLaneCauses / factor * kLaneCauses + key % kLaneCauses] += ns;
	return merged;
}

// Continues with the next power of ten.
void LaneCells::Coarsen()
{
	while (count_ > most_) {
		uint64_t next_ns = 10 * PowerOf(slice_ns_);
		lanes_ = Merged(next_ns / slice_ns_);
		SetSlice(next_ns);
		count_ = 0;
		for (const Slices &slices : lanes_)
			count_ += slices.size();
	}
}

uint64_t LaneCells::Settle()
{
	// Intervals twice as long are about half as many: repeated until they fit.
	uint64_t cell_ns = std::max(slice_ns_, shortest_ns_);
	for (;; cell_ns = NextCell(cell_ns)) {
		std::vector<Slices> merged = Merged(cell_ns / slice_ns_);
		size_t count = 0;
		for (const Slices &slices : merged)
			count += slices.size();
		if (count > limit_ && cell_ns <= length_ns_)
			continue;
		lanes_ = std::move(merged);
		slice_ns_ = cell_ns;
		return cell_ns;
	}
}

void LaneCells::Append(size_t lane, ReportLanes *out) const
{
	struct Cell {
		uint64_t key;
		uint16_t share;
	};
	std::vector<Cell> cells;
	if (lane < lanes_.size())
		for (const auto &[key, ns] : lanes_[lane]) {
			long share = std::lround(65535 * ns / static_cast<double>(slice_ns_));
			if (share > 0)
				cells.push_back({key, static_cast<uint16_t>(std::min(share, 65535l))});
		}
	std::sort(cells.begin(), cells.end(), [](const Cell &a, const Cell &b) { return a.key < b.key; });
	for (const Cell &cell : cells) {
		out->cell_index.push_back(static_cast<uint32_t>(cell.key / kLaneCauses));
		out->cell_cause.push_back(static_cast<uint8_t>(cell.key % kLaneCauses));
		out->cell_share.push_back(cell.share);
	}
}

uint32_t LaneTexts::Number(std::string text)
{
	if (text.size() > kDetailBytes)
		text.resize(kDetailBytes);
	auto [known, is_new] = known_.try_emplace(std::move(text), static_cast<uint32_t>(texts_.size()));
	if (is_new)
		texts_.push_back(&known->first);
	return known->second;
}

LaneReducer::LaneReducer(const ReportClock &clock, const LaneLimits &limits)
    : clock_(clock), limits_(limits), cells_(clock, limits.cells)
{
}

// Drops spans below the current minimum length, which can only grow.
void LaneReducer::Thin()
{
	if (kept_.size() <= limits_.spans)
		return;
	std::vector<uint64_t> lengths;
	lengths.reserve(kept_.size());
	for (const StoredSpan &k : kept_)
		lengths.push_back(k.span.end_ns - k.span.start_ns);
	auto last = lengths.begin() + static_cast<ptrdiff_t>(limits_.spans);
	std::nth_element(lengths.begin(), last, lengths.end(), std::greater<>());
	shortest_ns_ = *last + 1;
	std::erase_if(kept_, [&](const StoredSpan &k) {
		bool goes = k.span.end_ns - k.span.start_ns < shortest_ns_;
		if (goes)
			Slice(k.lane, k.span);
		return goes;
	});
	ForgetTexts();
}

// Drops texts of spans that were dropped, once they are about as many as the others.
void LaneReducer::ForgetTexts()
{
	std::vector<bool> used(texts_.size());
	for (const StoredSpan &k : kept_)
		used[k.text] = true;
	if (texts_.size() < 2 * static_cast<size_t>(std::count(used.begin(), used.end(), true)) + 1000)
		return;
	LaneTexts stay;
	for (StoredSpan &k : kept_)
		k.text = stay.Number(texts_.Text(k.text));
	texts_ = std::move(stay);
}

ReportLanes LaneReducer::Finish(std::vector<Lane> lanes)
{
	Thin();
	ReportLanes out;
	out.spans_total = total_;
	out.shortest_ns = shortest_ns_;
	out.cell_ns = cells_.Settle();
	std::vector<std::vector<uint32_t>> kept_of(lanes_);
	for (uint32_t i = 0; i < kept_.size(); i++)
		kept_of[kept_[i].lane].push_back(i);

	Details details;
	details.known.resize(texts_.size());
	for (const Lane &lane : lanes) {
		LaneRange spans = {out.span_start.size(), 0}, cells = {out.cell_index.size(), 0};
		for (uint32_t i : kept_of[lane.number]) {
			const StoredSpan &k = kept_[i];
			uint32_t start = clock_.Tick(k.span.start_ns);
			out.span_start.push_back(start);
			out.span_length.push_back(clock_.Tick(k.span.end_ns) - start);
			out.span_cause.push_back(k.span.cause);
			out.span_detail.push_back(details.Index(k.text, texts_.Text(k.text)));
		}
		cells_.Append(lane.number, &out);
		spans.count = out.span_start.size() - spans.first;
		cells.count = out.cell_index.size() - cells.first;
		out.spans.push_back(spans);
		out.cells.push_back(cells);
		out.rates.push_back({out.rate.size(), lane.rate.size()});
		out.rate.insert(out.rate.end(), lane.rate.begin(), lane.rate.end());
	}
	out.details = std::move(details.texts);
	out.lanes = std::move(lanes);
	return out;
}

// There may be more samples than a page can hold, as with requests. Samples around episodes, and separately
// the others, are then thinned to every second, fourth ..., and each represents the dropped ones too.

namespace
{

constexpr uint64_t kSixteenthNs = 1'000'000 / 16;
constexpr uint64_t kOldPeriodNs = 1'000'000; // period of old recordings that do not have it
constexpr size_t kActivities = 255;
constexpr size_t kStacks = 65'000, kFunctions = 65'000, kFrames = 400'000;
constexpr size_t kDepth = 96; // frames per stack; deeper calls are dropped
constexpr size_t kNameBytes = 160;

// Unique stacks, with their functions by number.
class StackTable
{
public:
	StackTable(const Run &run, ReportSamples *out) : run_(run), out_(*out)
	{
		out_.functions.push_back("other");
		out_.stack_first.push_back(0);
		Append({0}, 0);
	}
	uint16_t Number(uint32_t stack)
	{
		auto [known, is_new] = known_.try_emplace(stack, 0);
		if (is_new && stack < run_.stacks.size())
			known->second = Append(run_.stacks[stack]);
		return known->second;
	}

private:
	uint16_t Append(const std::vector<uint16_t> &frames, size_t kernel)
	{
		if (out_.stack_kernel.size() >= kStacks || out_.stack_frame.size() + frames.size() > kFrames)
			return 0;
		out_.stack_frame.insert(out_.stack_frame.end(), frames.begin(), frames.end());
		out_.stack_first.push_back(static_cast<uint32_t>(out_.stack_frame.size()));
		out_.stack_kernel.push_back(static_cast<uint8_t>(kernel));
		return static_cast<uint16_t>(out_.stack_kernel.size() - 1);
	}
	uint16_t Append(const Stack &stack)
	{
		std::vector<uint16_t> frames;
		for (size_t i = stack.frames.size(); i-- > 0 && frames.size() < kDepth;)
			frames.push_back(Function(stack.frames[i].function.empty()
						      ? "[" + stack.frames[i].module + "]"
						      : stack.frames[i].function));
		size_t user = frames.size();
		for (size_t i = stack.kernel.size(); i-- > 0 && frames.size() < 2 * kDepth;)
			frames.push_back(Function(stack.kernel[i]));
		if (frames.empty())
			return 0;
		return Append(frames, frames.size() - user);
	}
	uint16_t Function(std::string name)
	{
		if (name.size() > kNameBytes)
			name.resize(kNameBytes);
		auto known = functions_.find(name);
		if (known != functions_.end())
			return known->second;
		if (out_.functions.size() >= kFunctions)
			return 0;
		uint16_t number = static_cast<uint16_t>(out_.functions.size());
		out_.functions.push_back(name);
		return functions_[name] = number;
	}

	const Run &run_;
	ReportSamples &out_;
	std::unordered_map<uint32_t, uint16_t> known_; // Run's number -> the page's
	std::unordered_map<std::string, uint16_t> functions_;
};

} // namespace

SampleCollector::SampleCollector(const Explanation &explanation, const Run &run, const ReportClock &clock,
				 const SampleLimits &limits)
    : run_(run), clock_(clock),
      around_(Surroundings(explanation.episodes)), near_{limits.near}, far_{limits.far}
{
	for (int thread : explanation.serving)
		if (thread >= 0)
			threads_.push_back(static_cast<uint32_t>(thread));
	// Servers may share a thread, such as replicas in one process.
	std::sort(threads_.begin(), threads_.end());
	threads_.erase(std::unique(threads_.begin(), threads_.end()), threads_.end());
}

void SampleCollector::Thinned::Add(StoredSample sample)
{
	if (seen++ % stride)
		return;
	sample.length_ns *= stride;
	kept.push_back(sample);
	if (kept.size() <= limit)
		return;
	for (size_t i = 0; 2 * i < kept.size(); i++) {
		kept[i] = kept[2 * i];
		kept[i].length_ns *= 2;
	}
	kept.resize((kept.size() + 1) / 2);
	stride *= 2;
}

uint8_t SampleCollector::NumberOf(const std::string &activity)
{
	auto known = numbers_.find(activity);
	if (known != numbers_.end())
		return known->second;
	if (activities_.size() >= kActivities)
		return 0;
	uint8_t number = static_cast<uint8_t>(activities_.size());
	activities_.push_back(activity);
	return numbers_[activity] = number;
}

void SampleCollector::Add(uint64_t from_ns, uint64_t to_ns)
{
	const Run &run = run_;
	if (threads_.empty() || run.cpu_samples.empty())
		return;
	const Activities activities = ActivitiesOf(run);
	for (uint32_t number : threads_) {
		const Thread &thread = run.threads[number];
		const ft_cpu_sample *first = run.cpu_samples.data() + thread.first_cpu_sample;
		const ft_cpu_sample *end = first + thread.cpu_sample_count;
		const ft_cpu_sample *s = std::partition_point(
		    first, end, [&](const ft_cpu_sample &x) { return x.t_ns < from_ns; });
		for (; s < end && s->t_ns < to_ns; s++) {
			if (s->t_ns < clock_.begin_ns || s->t_ns > clock_.end_ns)
				continue;
			size_t index = static_cast<size_t>(s - run.cpu_samples.data());
			StoredSample kept = {s->t_ns,
					     s->period ? s->period * kSixteenthNs : kOldPeriodNs,
					     s->stack,
					     number,
					     NumberOf(activities.Of(index).name),
					     s->owner == FT_OWN_CODE};
			(IsInside(around_, s->t_ns) ? near_ : far_).Add(kept);
			total_++;
		}
	}
}

ReportSamples SampleCollector::Finish()
{
	ReportSamples out;
	out.total = total_;
	out.activities = activities_;
	std::vector<StoredSample> all = std::move(near_.kept);
	all.insert(all.end(), far_.kept.begin(), far_.kept.end());
	std::sort(all.begin(), all.end(), [](const StoredSample &a, const StoredSample &b) {
		return std::tie(a.thread, a.t_ns) < std::tie(b.thread, b.t_ns);
	});
	StackTable stacks(run_, &out);
	for (const StoredSample &s : all) {
		if (out.threads.empty() || out.threads.back().thread != s.thread)
			out.threads.push_back({s.thread, out.end.size(), 0});
		out.threads.back().count++;
		uint32_t end = clock_.Tick(s.t_ns);
		out.end.push_back(end);
		out.length.push_back(end - clock_.Tick(s.t_ns - std::min(s.length_ns, s.t_ns)));
		out.stack.push_back(stacks.Number(s.stack));
		out.activity.push_back(s.activity);
		out.own.push_back(s.own);
	}
	return out;
}

} // namespace forktail::analysis::report
