// SPDX-License-Identifier: MIT
// One pass is enough. A span that is shorter than the maximum number of others becomes part of intervals as
// soon as those are known, and intervals are stored so fine that all longer ones can be made of them.
#include "reduce.h"

#include <algorithm>
#include <cmath>

namespace forktail::analysis::report
{

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

} // namespace forktail::analysis::report
