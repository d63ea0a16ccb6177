// SPDX-License-Identifier: MIT
// Draws the latency sketch.
#include "sketch.h"

#include <algorithm>
#include <cmath>

#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

constexpr size_t kLabel = 9; // "  39.0 ms"
constexpr size_t kMaxColumns = 240;

// There is no log of event-loop iterations, so only slow ones are drawn.
std::vector<uint64_t> PeaksOf(const Explanation &e, uint64_t from_ns, uint64_t to_ns, size_t columns)
{
	if (!e.peaks.empty())
		return e.peaks.Over(from_ns, to_ns, columns);
	Peaks slow;
	for (const SlowRequest &r : e.blame.slow)
		slow.Add(r.due_ns, r.latency_ns);
	return slow.Over(from_ns, to_ns, columns);
}

// One cell, filled in eighths with Unicode blocks, otherwise in thirds.
std::string Cell(double filled, bool unicode)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const plain[] = {" ", ".", ":", "#"};
	filled = std::clamp(filled, 0.0, 1.0);
	if (unicode)
		return blocks[static_cast<size_t>(std::ceil(filled * 8))];
	return plain[static_cast<size_t>(std::ceil(filled * 3))];
}

std::string EpisodesLine(const Explanation &e, const std::vector<uint32_t> &worst, size_t columns)
{
	std::string line(columns, ' ');
	const double width =
	    static_cast<double>(std::max<uint64_t>(e.measured_ns, 1)) / static_cast<double>(columns);
	for (size_t i = std::min<size_t>(worst.size(), 9); i > 0;
	     i--) { // the worst last, so that it stays visible
		uint64_t start = e.episodes[worst[i - 1]].start_ns;
		double at = start <= e.first_ns ? 0 : static_cast<double>(start - e.first_ns) / width;
		line[std::min(static_cast<size_t>(at), columns - 1)] = static_cast<char>('0' + i);
	}
	line.erase(line.find_last_not_of(' ') + 1);
	return line;
}

} // namespace

std::vector<std::string> LatencySketch(const Explanation &e, const Style &style, size_t rows,
				       const std::vector<uint32_t> &worst)
{
	std::vector<std::string> lines;
	if (e.measured_ns == 0 || style.columns < 2 * kLabel)
		return lines;
	const size_t columns = std::min(style.columns - kLabel - 2, kMaxColumns);
	const std::vector<uint64_t> peaks = PeaksOf(e, e.first_ns, e.first_ns + e.measured_ns, columns);
	const uint64_t most = *std::max_element(peaks.begin(), peaks.end());
	if (most == 0)
		return lines;
	uint64_t least = most;
	for (uint64_t p : peaks)
		least = p ? std::min(least, p) : least;
	// One row is at least a factor of two, so that a run with even latency looks flat.
	const double top = std::log(static_cast<double>(most)),
		     bottom = std::min(std::log(static_cast<double>(least)) - std::log(1.5),
				       top - static_cast<double>(rows) * std::log(2));
	for (size_t row = 0; row < rows; row++) {
		double above = static_cast<double>(rows - 1 - row); // rows below this one
		double edge = bottom + (top - bottom) * (above + 1) / static_cast<double>(rows);
		std::string line =
		    PadLeft(common::FormatDuration(static_cast<uint64_t>(std::llround(std::exp(edge)))),
			    kLabel) +
		    (style.unicode ? " ▏" : " |");
		for (uint64_t p : peaks) {
			double height = p ? (std::log(static_cast<double>(p)) - bottom) / (top - bottom) *
						static_cast<double>(rows)
					  : 0;
			std::string cell = Cell(height - above, style.unicode);
			bool slow = p >= e.blame.threshold_ns && cell != " ";
			line += slow ? style.Alarming(cell) : cell;
		}
		while (line.back() == ' ')
			line.pop_back();
		lines.push_back(line);
	}
	if (!worst.empty())
		lines.push_back(PadLeft("episode", kLabel) + "  " + EpisodesLine(e, worst, columns));
	std::string from = common::FormatOffset(e.first_ns, e.zero_ns),
		    to = common::FormatOffset(e.first_ns + e.measured_ns, e.zero_ns);
	lines.push_back(PadLeft("longest", kLabel) + "  " + from +
			PadLeft(to, columns - std::min(columns, from.size())));
	return lines;
}

} // namespace forktail::analysis
