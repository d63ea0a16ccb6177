// SPDX-License-Identifier: MIT
// Fits lanes into a page: keeps the longest spans, turns the rest and all mixes into slices of time.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "lanes.h"

namespace forktail
{

namespace
{

constexpr uint64_t kFinestCellNs = 1'000'000; // a tally window: what is known of short intervals
constexpr uint64_t kSlices = 100'000;	      // of a run at most: more than any screen has pixels
constexpr size_t kDetailBytes = 600;
constexpr size_t kDetails = 65'536; // what 16 bits count

// The length below which spans have to go so that at most `limit` stay.
uint64_t ShortestKept(const std::vector<Lane> &lanes, size_t total, size_t limit)
{
	if (total <= limit)
		return 0;
	std::vector<uint64_t> lengths;
	lengths.reserve(total);
	for (const Lane &lane : lanes)
		for (const LaneSpan &s : lane.spans)
			lengths.push_back(s.end_ns - s.start_ns);
	auto last = lengths.begin() + static_cast<ptrdiff_t>(limit);
	std::nth_element(lengths.begin(), last, lengths.end(), std::greater<>());
	return *last + 1;
}

// Slices of one lane, sparse.
struct Slicer {
	uint64_t begin_ns, cell_ns;
	std::unordered_map<uint64_t, double> ns; // slice * kLaneCauses + cause

	void Add(uint64_t start_ns, uint64_t end_ns, uint64_t part_ns, uint8_t cause)
	{
		if (end_ns <= start_ns || start_ns < begin_ns)
			return;
		double density = static_cast<double>(part_ns) / static_cast<double>(end_ns - start_ns);
		uint64_t from = start_ns - begin_ns, to = end_ns - begin_ns;
		while (from < to) {
			uint64_t slice = from / cell_ns;
			uint64_t until = std::min(to, (slice + 1) * cell_ns);
			ns[slice * kLaneCauses + cause] += density * static_cast<double>(until - from);
			from = until;
		}
	}
};

// What is to be sliced of a lane: its mixes and the spans that are not kept.
void SliceLane(const Lane &lane, uint64_t shortest_ns, Slicer *slicer)
{
	for (const LaneShare &s : lane.shares)
		slicer->Add(s.start_ns, s.end_ns, s.ns, s.cause);
	for (const LaneSpan &s : lane.spans)
		if (s.end_ns - s.start_ns < shortest_ns)
			slicer->Add(s.start_ns, s.end_ns, s.end_ns - s.start_ns, s.cause);
}

// 1, 2, 5, 10, 20 ... times the finest.
uint64_t NextCell(uint64_t cell_ns)
{
	uint64_t power = kFinestCellNs;
	while (power * 10 <= cell_ns)
		power *= 10;
	return cell_ns / power == 2 ? power * 5 : cell_ns * 2;
}

void AppendCells(const Slicer &slicer, ReportLanes *out)
{
	struct Cell {
		uint64_t key;
		uint16_t share;
	};
	std::vector<Cell> cells;
	cells.reserve(slicer.ns.size());
	for (const auto &[key, ns] : slicer.ns) {
		long share = std::lround(65535 * ns / static_cast<double>(slicer.cell_ns));
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

struct Details {
	std::vector<std::string> texts = {""};
	std::unordered_map<std::string, uint16_t> known;

	uint16_t Index(std::string text)
	{
		if (text.empty())
			return 0;
		if (text.size() > kDetailBytes)
			text.resize(kDetailBytes);
		if (auto found = known.find(text); found != known.end())
			return found->second;
		if (texts.size() == kDetails)
			return 0;
		uint16_t index = static_cast<uint16_t>(texts.size());
		known.emplace(text, index);
		texts.push_back(std::move(text));
		return index;
	}
};

} // namespace

ReportLanes ReduceLanes(std::vector<Lane> lanes, const ReportClock &clock, const LaneLimits &limits)
{
	ReportLanes out;
	for (const Lane &lane : lanes)
		out.spans_total += lane.spans.size();
	out.shortest_ns = ShortestKept(lanes, out.spans_total, limits.spans);

	// Slices twice as long are about half as many: try until they fit.
	std::vector<Slicer> slicers;
	out.cell_ns = kFinestCellNs;
	while ((clock.end_ns - clock.begin_ns) / out.cell_ns > kSlices)
		out.cell_ns = NextCell(out.cell_ns);
	for (;; out.cell_ns = NextCell(out.cell_ns)) {
		slicers.clear();
		size_t cells = 0;
		for (const Lane &lane : lanes) {
			slicers.push_back({clock.begin_ns, out.cell_ns, {}});
			SliceLane(lane, out.shortest_ns, &slicers.back());
			cells += slicers.back().ns.size();
		}
		if (cells <= limits.cells || out.cell_ns > clock.end_ns - clock.begin_ns)
			break;
	}

	Details details;
	for (size_t i = 0; i < lanes.size(); i++) {
		Lane &lane = lanes[i];
		LaneRange spans = {out.span_start.size(), 0}, cells = {out.cell_index.size(), 0};
		for (const LaneSpan &s : lane.spans) {
			if (s.end_ns - s.start_ns < out.shortest_ns)
				continue;
			uint32_t start = clock.Tick(s.start_ns);
			out.span_start.push_back(start);
			out.span_length.push_back(clock.Tick(s.end_ns) - start);
			out.span_cause.push_back(s.cause);
			out.span_detail.push_back(lane.describe ? details.Index(lane.describe(s))
								: uint16_t{0});
		}
		AppendCells(slicers[i], &out);
		spans.count = out.span_start.size() - spans.first;
		cells.count = out.cell_index.size() - cells.first;
		out.spans.push_back(spans);
		out.cells.push_back(cells);
		out.rates.push_back({out.rate.size(), lane.rate.size()});
		out.rate.insert(out.rate.end(), lane.rate.begin(), lane.rate.end());
		lane.spans = {};
		lane.shares = {};
	}
	out.details = std::move(details.texts);
	out.lanes = std::move(lanes);
	return out;
}

} // namespace forktail
