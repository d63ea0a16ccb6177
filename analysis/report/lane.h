// SPDX-License-Identifier: MIT
// What the lanes of a report page draw: for each thread, CPU and disk, spans with exact times and, where
// there are too many or they are too short, equal slices of time with the share each cause had in them.
// Nothing is left out: a span that isn't kept becomes part of its slices.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/timeline/causes.h"
#include "samples.h"

namespace forktail::analysis::report
{

// Numbers of causes in lanes: those of a timeline, then what a disk does.
enum LaneCause : uint8_t {
	kDiskRead = kTimelineCauses,
	kDiskWrite,
	kDiskFlush,
	kDiskDiscard,
	kLaneCauses,
};
const char *LaneCauseName(int cause);
// How the page draws it, and what it says of it.
struct LaneCauseLook {
	const char *family; // FamilyName's
	const char *light, *dark;
	const char *meaning;
};
LaneCauseLook LaneCauseLookOf(int cause);

struct LaneLimits {
	size_t spans = 200'000;
	size_t cells = 100'000;
	size_t threads = 64;
	SampleLimits samples = {};
};

// An interval with one cause.
struct LaneSpan {
	uint64_t start_ns;
	uint64_t end_ns;
	uint8_t cause;
};
// `ns` of [start_ns, end_ns) went to the cause, evenly spread.
struct LaneShare {
	uint64_t start_ns;
	uint64_t end_ns;
	double ns;
	uint8_t cause;
};

struct Lane {
	size_t number; // LaneReducer's
	std::string group, name, note;
	std::vector<uint32_t> threads; // index into Run::threads; empty: a CPU's or a disk's
	std::string kind;	       // "serving", "thread", "child", "softirq", "disk": how it is drawn
	std::vector<std::pair<uint64_t, uint64_t>> life;
	std::vector<float> rate; // drawn behind: a value per step from the clock's begin on, or none
	uint64_t rate_step_ns = 0;
	std::string rate_name, rate_unit;
};

struct LaneRange {
	size_t first = 0;
	size_t count = 0;
};

struct ReportLanes {
	std::vector<Lane> lanes;		       // in the order the page shows them
	std::vector<LaneRange> spans, cells, rates;    // per lane
	std::vector<uint32_t> span_start, span_length; // ticks
	std::vector<uint8_t> span_cause;
	std::vector<uint16_t> span_detail; // index into details; 0, which is empty, when there are too many
	std::vector<uint32_t> cell_index;  // slice of cell_ns, counted from the clock's begin
	std::vector<uint8_t> cell_cause;
	std::vector<uint16_t> cell_share; // of the slice, 65535 is all of it
	std::vector<float> rate;
	std::vector<std::string> details; // [0] is empty
	uint64_t cell_ns = 0;
	size_t spans_total = 0;
	uint64_t shortest_ns = 0; // every span this long or longer is among span_*; 0: all are
	size_t threads_left_out = 0;
	ReportSamples samples;
};

} // namespace forktail::analysis::report
