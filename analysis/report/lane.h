// SPDX-License-Identifier: MIT
// The content of the lanes of a report page: for each thread, CPU and disk, spans with exact times. Where
// spans are too many or too short, a lane has equal intervals of time with each cause's share instead. No
// time is lost: a span that is not stored counts in its intervals.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/timeline/causes.h"
#include "samples.h"

namespace forktail::analysis::report
{

// The numbers of causes in lanes: those of a timeline, then a disk's states.
enum LaneCause : uint8_t {
	kDiskRead = kTimelineCauses,
	kDiskWrite,
	kDiskFlush,
	kDiskDiscard,
	kLaneCauses,
};
const char *LaneCauseName(int cause);
// The page's colours and text for a cause.
struct LaneCauseLook {
	const char *family; // of FamilyName
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
// `ns` of [start_ns, end_ns) belong to the cause, spread evenly.
struct LaneShare {
	uint64_t start_ns;
	uint64_t end_ns;
	double ns;
	uint8_t cause;
};

struct Lane {
	size_t number; // number in LaneReducer
	std::string group, name, note;
	std::vector<uint32_t> threads; // index into Run::threads; empty: a CPU's or a disk's
	std::string kind;	       // "serving", "thread", "child", "softirq", "disk": how it is drawn
	std::vector<std::pair<uint64_t, uint64_t>> life;
	std::vector<float> rate; // drawn behind the lane: a value per step from the clock's begin, or none
	uint64_t rate_step_ns = 0;
	std::string rate_name, rate_unit;
};

struct LaneRange {
	size_t first = 0;
	size_t count = 0;
};

struct ReportLanes {
	std::vector<Lane> lanes;		       // in the page's order
	std::vector<LaneRange> spans, cells, rates;    // per lane
	std::vector<uint32_t> span_start, span_length; // ticks
	std::vector<uint8_t> span_cause;
	std::vector<uint16_t> span_detail; // index into details; 0, the empty one, if there are too many
	std::vector<uint32_t> cell_index;  // number of the interval of cell_ns, from the clock's begin
	std::vector<uint8_t> cell_cause;
	std::vector<uint16_t> cell_share; // share of the interval; 65535 is all of it
	std::vector<float> rate;
	std::vector<std::string> details; // [0] is empty
	uint64_t cell_ns = 0;
	size_t spans_total = 0;
	uint64_t shortest_ns = 0; // span_* has all spans of at least this length; 0: all
	size_t threads_left_out = 0;
	ReportSamples samples;
};

} // namespace forktail::analysis::report
