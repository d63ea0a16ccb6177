// SPDX-License-Identifier: MIT
// The typed arrays of a report page: little-endian values in one buffer, each array aligned to 4 bytes, named
// in a JSON table. analysis/report/src/data.js reads them; docs/reference/report.md lists them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/explain.h"
#include "analysis/run.h"
#include "analysis/timeline.h"

namespace forktail::analysis::report
{

static_assert(std::endian::native == std::endian::little, "arrays are copied in memory order");

struct ReportArrays {
	std::string bytes;
	nlohmann::json table = nlohmann::json::object(); // name -> [type, offset in bytes, elements]

	// T is uint8_t, uint16_t, uint32_t or float.
	template <typename T> void Add(const char *name, const std::vector<T> &values)
	{
		constexpr const char *type = std::is_same_v<T, float>	   ? "f32"
					     : std::is_same_v<T, uint8_t>  ? "u8"
					     : std::is_same_v<T, uint16_t> ? "u16"
									   : "u32";
		static_assert(std::is_same_v<T, float> || std::is_same_v<T, uint8_t> ||
			      std::is_same_v<T, uint16_t> || std::is_same_v<T, uint32_t>);
		bytes.resize((bytes.size() + 3) & ~size_t{3});
		table[name] = {type, bytes.size(), values.size()};
		bytes.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
	}
};

// Standard base64 with padding (RFC 4648, section 4).
std::string Base64(const std::string &bytes);

// The page's unit of time: ticks after the first instant shown, fine enough that 32 bits hold the run. A tick
// is 14 ns for a minute and 0.84 us for an hour, below what a screen shows at any zoom.

struct ReportClock {
	uint64_t begin_ns = 0; // first instant shown
	uint64_t end_ns = 0;
	uint64_t zero_ns = 0; // the zero of "+12.304 s"
	uint64_t tick_ns = 1;

	ReportClock(uint64_t begin, uint64_t end, uint64_t zero)
	    : begin_ns(begin), end_ns(std::max(end, begin + 1)), zero_ns(zero),
	      tick_ns((end_ns - begin_ns) / UINT32_MAX + 1)
	{
	}
	uint64_t Clamp(uint64_t t_ns) const { return std::clamp(t_ns, begin_ns, end_ns); }
	uint32_t Tick(uint64_t t_ns) const
	{
		return static_cast<uint32_t>((Clamp(t_ns) - begin_ns) / tick_ns);
	}
	double Seconds(uint64_t t_ns) const
	{
		return static_cast<double>(static_cast<int64_t>(t_ns - zero_ns)) / 1e9;
	}
};

// The content of the latency chart: slow requests as points, all others as counts in a grid of time and
// latency, and those around episodes as points too.

constexpr int kBinsPerDecade = 20; // a bin is 12 % of latency wide

struct PointLimits {
	size_t points = 100'000;
	size_t cells = 100'000;
	size_t near = 40'000;
	size_t parts = 250'000;
	uint32_t columns = 4096; // maximum columns of time; halved until the cells fit
};

struct ReportPoints {
	// By time. A request's causes are between `since` and its end; `cause` is the one with most of its
	// time.
	std::vector<uint32_t> start, since;
	std::vector<float> latency_ns;
	std::vector<uint8_t> cause, op;
	size_t slow = 0; // total; those that are not points are in the grid

	// Further data of each, for search and for the request panel. `number` is that in the request log;
	// `connection` is an index into `connections`, `hop` one into `hops`, `behind` as in SlowRequest. An
	// iteration has only its hop.
	std::vector<uint32_t> number, sent, connection;
	std::vector<uint16_t> hop; // kNoHop: unknown
	std::vector<uint8_t> status, behind;
	// How long the answer waited unread, and the network time in each direction. NaN: unknown for this
	// request. Empty: unknown in this run.
	std::vector<float> unread_ns, way_ns, way_back_ns;
	// Of a kernel log: from the request's arrival at the server until it was read, and until the reply
	// was written, with NaN as above; sizes. Empty: no kernel log.
	std::vector<float> read_after_ns, written_after_ns;
	std::vector<uint32_t> request_bytes, answer_bytes;
	// The parts of all points in sequence, largest first: at most `parts_each` per point.
	std::vector<uint8_t> part_count, part_cause;
	std::vector<uint16_t> part_hop; // likewise
	std::vector<float> part_direct_ns, part_queued_ns;
	size_t parts_each = 0;
	std::vector<uint32_t> connections; // index into Run::connections, each once
	std::vector<uint16_t> hops;	   // as in blame.h, each once

	// Cells with requests, by column, then bin. Bin b begins at 10^((first_bin + b) / kBinsPerDecade) ns.
	uint32_t columns = 1;
	int first_bin = 0;
	std::vector<uint16_t> cell_column;
	std::vector<uint8_t> cell_bin;
	std::vector<uint32_t> cell_count;

	// Around episodes, where the grid is too coarse after zooming in: every near_stride-th request that
	// is not slow, by time.
	std::vector<uint32_t> near_start;
	std::vector<float> near_latency_ns;
	size_t near_stride = 1;
};

// The time near episodes: each episode, extended by its length and at least 5 ms. By time, not overlapping.
using TimeRange = std::pair<uint64_t, uint64_t>;
std::vector<TimeRange> Surroundings(const std::vector<Episode> &episodes);
bool IsInside(const std::vector<TimeRange> &intervals, uint64_t t_ns);

ReportPoints CollectPoints(const Explanation &explanation, Reading *reading, const ReportClock &clock,
			   const PointLimits &limits = {});

// The page's CPU samples: what each serving thread did and when, with stacks. The browser makes a lane and
// each episode's flame graph of them.

struct ReportSamples {
	struct Range {
		uint32_t thread; // index into Run::threads
		size_t first, count;
	};
	std::vector<Range> threads; // threads with samples
	// Per thread by time. A sample represents `length` before `end`; after thinning, the dropped ones'
	// time too.
	std::vector<uint32_t> end, length;   // ticks
	std::vector<uint16_t> stack;	     // of those below
	std::vector<uint8_t> activity;	     // index into activities
	std::vector<uint8_t> own;	     // 1: own code; 0: a separate cause, such as fork
	std::vector<std::string> activities; // [0] is "other", for activities beyond the maximum
	// Stack i has frames [stack_first[i], stack_first[i + 1]), outermost first. The last stack_kernel[i]
	// of them are kernel frames.
	std::vector<uint32_t> stack_first;
	std::vector<uint8_t> stack_kernel;
	std::vector<uint16_t> stack_frame;  // index into functions
	std::vector<std::string> functions; // [0] is "other"
	size_t total = 0;		    // before thinning
};

struct SampleLimits {
	size_t near = 60'000; // around episodes
	size_t far = 40'000;  // elsewhere
};

// Collects samples stretch by stretch.
class SampleCollector
{
public:
	SampleCollector(const Explanation &explanation, const Run &run, const ReportClock &clock,
			const SampleLimits &limits);
	void Add(uint64_t from_ns, uint64_t to_ns);
	ReportSamples Finish();

private:
	struct StoredSample {
		uint64_t t_ns;
		uint64_t length_ns;
		uint32_t stack;
		uint32_t thread;
		uint8_t activity;
		uint8_t own;
	};
	// Every stride-th of some samples.
	struct Thinned {
		size_t limit;
		size_t stride = 1, seen = 0;
		std::vector<StoredSample> kept = {};
		void Add(StoredSample sample);
	};
	uint8_t NumberOf(const std::string &activity);

	const Run &run_;
	const ReportClock &clock_;
	std::vector<uint32_t> threads_;
	std::vector<TimeRange> around_; // episodes
	Thinned near_, far_;
	std::vector<std::string> activities_ = {"other"};
	std::unordered_map<std::string, uint8_t> numbers_;
	size_t total_ = 0;
};

// The content of the lanes of a report page: for each thread, CPU and disk, spans with exact times. Where
// spans are too many or too short, a lane has equal intervals of time with each cause's share instead. No
// time is lost: a span that is not stored counts in its intervals.

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

// Fits lanes into a page while their content arrives, in any number of stretches. The longest spans are
// stored; the rest and all shares become intervals of time. Memory is bounded by the limits, not by the run.

// Sparse intervals of time: each lane's time by cause in them. They are lengthened when there are too many.
class LaneCells
{
public:
	LaneCells(const ReportClock &clock, size_t limit);
	void Add(size_t lane, const LaneShare &share);
	// Call it after everything was added. Returns the length of an interval.
	uint64_t Settle();
	void Append(size_t lane, ReportLanes *out) const;

private:
	using Slices = std::unordered_map<uint64_t, double>; // interval * kLaneCauses + cause -> ns
	std::vector<Slices> Merged(uint64_t factor) const;
	void SetSlice(uint64_t slice_ns);
	void Coarsen();

	const uint64_t begin_ns_, length_ns_;
	const size_t limit_;
	uint64_t shortest_ns_; // the minimum length of an interval
	uint64_t slice_ns_;    // of the intervals below, of which longer ones can be made
	size_t most_ = 0;      // the number from which they are lengthened
	size_t count_ = 0;
	std::vector<Slices> lanes_;
};

// Unique texts.
class LaneTexts
{
public:
	uint32_t Number(std::string text);
	const std::string &Text(uint32_t number) const { return *texts_[number]; }
	size_t size() const { return texts_.size(); }

private:
	std::unordered_map<std::string, uint32_t> known_;
	std::vector<const std::string *> texts_; // keys of known_, which do not move
};

class LaneReducer
{
public:
	LaneReducer(const ReportClock &clock, const LaneLimits &limits);
	// The number of a new lane.
	size_t NewLane() { return lanes_++; }
	void Add(size_t lane, const LaneShare &share) { cells_.Add(lane, share); }
	// Spans of a lane ascend. describe() returns a few lines about this one, or "".
	template <typename Describe> void Add(size_t lane, const LaneSpan &span, Describe describe)
	{
		total_++;
		if (span.end_ns - span.start_ns < shortest_ns_) {
			Slice(lane, span);
			return;
		}
		kept_.push_back({span, static_cast<uint32_t>(lane), texts_.Number(describe())});
		if (kept_.size() > limits_.spans + limits_.spans / 4)
			Thin();
	}
	// Call it after everything was added, with the lanes in the page's order and their numbers.
	ReportLanes Finish(std::vector<Lane> lanes);

private:
	struct StoredSpan {
		LaneSpan span;
		uint32_t lane;
		uint32_t text;
	};
	void Slice(size_t lane, const LaneSpan &s)
	{
		cells_.Add(lane, {s.start_ns, s.end_ns, static_cast<double>(s.end_ns - s.start_ns), s.cause});
	}
	void Thin();
	void ForgetTexts();

	const ReportClock &clock_;
	const LaneLimits limits_;
	size_t lanes_ = 0;
	size_t total_ = 0;
	uint64_t shortest_ns_ = 0; // shorter ones are dropped
	std::vector<StoredSpan> kept_;
	LaneTexts texts_;
	LaneCells cells_;
};

// The lanes of a report page.

// Makes the lanes of a run in one pass over it, within the limits.
ReportLanes MakeLanes(const Explanation &explanation, Reading *reading, const ReportClock &clock,
		      const LaneLimits &limits);

// Lanes of CPUs, from interrupts of recorded threads, and of disks, from block requests. Both take a run by
// stretches, in order; a record belongs to the stretch in which it begins.

// Interrupts of recorded threads on their CPU, drawn over the CPU's rate of all interrupts.
class InterruptLanes
{
public:
	InterruptLanes(const Run &run, const ReportClock &clock, LaneReducer *reducer)
	    : run_(run), clock_(clock), reducer_(*reducer)
	{
	}
	void Add(uint64_t from_ns, uint64_t to_ns);
	void Finish(std::vector<Lane> *lanes);

private:
	struct Cpu {
		Lane lane = {};
		size_t spans = 0;
		uint64_t last_end_ns = 0;
	};
	Cpu &CpuOf(uint64_t number);

	const Run &run_;
	const ReportClock &clock_;
	LaneReducer &reducer_;
	std::map<uint64_t, Cpu> cpus_;
};

class DiskLanes
{
public:
	DiskLanes(const Run &run, const ReportClock &clock, LaneReducer *reducer);
	void Add(uint64_t from_ns, uint64_t to_ns);
	void Finish(std::vector<Lane> *lanes);

private:
	// A time in which a disk had requests of one kind in progress.
	struct Busy {
		LaneSpan span;
		uint64_t requests = 0;
		uint64_t bytes = 0;
		uint64_t longest_ns = 0;
		std::map<std::string, uint64_t> issuers = {}; // comm -> bytes
	};
	struct Disk {
		Lane lane = {};
		std::optional<Busy> busy = {}; // the last one, which may continue
	};
	Disk &DiskOf(uint32_t dev, int kind);
	void AddRequest(const ft_io &io);
	void AddBusy(Disk *disk);
	static std::string Describe(const Busy &busy);

	const Run &run_;
	const ReportClock &clock_;
	LaneReducer &reducer_;
	const uint64_t step_ns_; // step of the rate
	std::map<std::pair<uint32_t, int>, Disk> disks_;
};

// The small charts of a report page: series on one axis, sampled at the same times.

struct MetricLine {
	std::string name;
	std::vector<float> values; // one per time; NaN: none
};

struct MetricChart {
	std::string name, unit;
	std::vector<uint32_t> times; // ticks
	std::vector<MetricLine> lines;
};

// Charts in the page's order, with at most `samples` per line. With more, each value is the mean of several.
std::vector<MetricChart> CollectMetrics(const Run &run, const ReportClock &clock, size_t samples = 6000);

// The parts that need no script. `Escaped`: text of a run as HTML.
using Fact = std::pair<std::string, std::string>; // label, text
std::string Escaped(const std::string &text);
std::string HeaderHtml(const Explanation &explanation, const std::string &title,
		       const std::vector<Fact> &facts, const std::vector<std::string> &warnings);
std::string CausesHtml(const Explanation &explanation);
std::string EpisodesHtml(const Explanation &explanation);

// Writes a page: a template made by build.mjs, with its parts inserted.
struct PagePart {
	std::string_view place; // "@HEADER@" in the template
	std::string html;
};

// Writes the page to `path` (replacing it), with this mode as far as the umask allows. `parts` are in the
// template's order; the data comes last. False: *error is one sentence for the user.
bool WritePage(std::string_view page, std::vector<PagePart> parts, const nlohmann::json &run,
	       const ReportArrays &arrays, uint32_t mode, const std::string &path, std::string *error);

} // namespace forktail::analysis::report
