// SPDX-License-Identifier: MIT
// Puts a run on Perfetto's tracks. Large data is written stretch by stretch.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/blame.h"
#include "analysis/explain.h"
#include "analysis/exports.h"
#include "analysis/run.h"
#include "analysis/timeline.h"
#include "common/json.h"
#include "formats.h"
#include "recording/recording.h"

namespace forktail::analysis::exports
{

// Field numbers of Perfetto's messages, as far as they are written here, by the file in google/perfetto's
// protos/perfetto/ that defines them. They never change, because Perfetto reads old traces by them.

// trace/trace.proto
enum Trace : uint32_t { kPacket = 1 };
// trace/trace_packet.proto
enum TracePacket : uint32_t {
	kClockSnapshot = 6,
	kTimestamp = 8,
	kSequenceId = 10,
	kTrackEvent = 11,
	kInternedData = 12,
	kSequenceFlags = 13,
	kDefaults = 59,
	kTrackDescriptor = 60,
	kPerfSample = 66,
};
enum SequenceFlags : uint32_t { kStateCleared = 1, kNeedsState = 2 };
// trace/trace_packet_defaults.proto
enum TracePacketDefaults : uint32_t { kDefaultClock = 58 };
// trace/clock_snapshot.proto, common/builtin_clock.proto
enum ClockSnapshot : uint32_t { kClocks = 1, kPrimaryClock = 2, kClockId = 1, kClockTime = 2 };
enum BuiltinClock : uint32_t { kRealtime = 1, kMonotonic = 3, kBoottime = 6 };
// trace/track_event/track_descriptor.proto
enum TrackDescriptor : uint32_t {
	kUuid = 1,
	kTrackName = 2,
	kProcess = 3,
	kThread = 4,
	kParentUuid = 5,
	kCounter = 8,
};
// trace/track_event/process_descriptor.proto, thread_descriptor.proto, counter_descriptor.proto
enum ProcessDescriptor : uint32_t { kProcessPid = 1, kProcessName = 6 };
enum ThreadDescriptor : uint32_t { kThreadPid = 1, kThreadTid = 2, kThreadName = 5 };
enum CounterDescriptor : uint32_t { kUnit = 3, kUnitName = 6 };
enum CounterUnit : int32_t { kUnitNs = 1, kUnitCount = 2, kUnitBytes = 3 };
// trace/track_event/track_event.proto
enum TrackEvent : uint32_t {
	kCategoryIids = 3,
	kAnnotations = 4,
	kType = 9,
	kNameIid = 10,
	kTrackUuid = 11,
	kName = 23,
	kCounterValue = 30,
	kDoubleCounterValue = 44,
	kFlowIds = 47,
};
enum EventType : int32_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounterEvent = 4 };
// trace/track_event/debug_annotation.proto
enum DebugAnnotation : uint32_t { kAnnotationNameIid = 1, kAnnotationUint = 3, kAnnotationText = 6 };
// trace/interned_data/interned_data.proto; entries have an iid and a name or text
enum InternedData : uint32_t {
	kCategories = 1,
	kEventNames = 2,
	kAnnotationNames = 3,
	kFunctionNames = 5,
	kFrames = 6,
	kCallstacks = 7,
	kMappingPaths = 17,
	kMappings = 19,
};
enum Entry : uint32_t { kIid = 1, kText = 2 };
// trace/profiling/profile_common.proto
enum Frame : uint32_t { kFrameFunction = 2, kFrameMapping = 3 };
enum Callstack : uint32_t { kFrameIds = 2 };
enum Mapping : uint32_t { kPathIds = 7 };
// trace/profiling/profile_packet.proto
enum PerfSample : uint32_t {
	kSampleCpu = 1,
	kSamplePid = 2,
	kSampleTid = 3,
	kSampleStack = 4,
	kSampleMode = 5
};
enum CpuMode : int32_t { kModeKernel = 1, kModeUser = 2 };

// A Perfetto trace, packet by packet: tracks, slices, counters and samples. Only a buffer of packets and the
// names are in memory. A name is written once and then referenced by number, up to a maximum.

// An argument of a slice, besides its name.
struct Argument {
	const char *name;
	uint64_t number = 0;
	std::string text = {}; // if not empty, the value
};

struct Slice {
	uint64_t track = 0;
	uint64_t start_ns = 0;
	std::string name = {};
	const char *category = "";
	std::vector<Argument> arguments = {};
	std::vector<uint64_t> flows = {};
};

class TraceFile
{
public:
	TraceFile() = default;
	~TraceFile();
	TraceFile(const TraceFile &) = delete;
	TraceFile &operator=(const TraceFile &) = delete;
	// Zero, or an errno, which stays set.
	int Open(const std::string &path);
	int Close();
	int error() const { return error_; }

	// `readings` of one host's clocks. All times after this call are of CLOCK_MONOTONIC.
	void Clocks(std::vector<ft_clock> readings);
	// Creates a track below an existing one (0: none) and returns its number.
	uint64_t Track(const std::string &name, uint64_t parent);
	uint64_t Process(uint32_t pid, const std::string &name);
	uint64_t Thread(uint32_t pid, uint32_t tid, const std::string &name);
	uint64_t Counter(const std::string &name, const std::string &unit, uint64_t parent);

	void Begin(const Slice &slice) { Event(kBegin, slice); }
	void Instant(const Slice &slice) { Event(kInstant, slice); }
	void End(uint64_t track, uint64_t t_ns);
	void Count(uint64_t track, uint64_t t_ns, double value);
	void Count(uint64_t track, uint64_t t_ns, uint64_t value);

	// Functions, each with its file, innermost first. Returns the number of the stack.
	uint64_t Stack(const std::vector<std::pair<std::string, std::string>> &frames);
	void Sample(uint64_t t_ns, uint32_t cpu, uint32_t pid, uint32_t tid, bool kernel, uint64_t stack);

private:
	// 0: the maximum of that kind is reached.
	uint64_t Intern(InternedData kind, const std::string &text);
	uint64_t FrameOf(const std::string &function, const std::string &module);
	uint64_t Define(const std::string &packet_of_descriptor);
	void Event(EventType type, const Slice &slice);
	template <class AddMore>
	void PutEvent(EventType type, uint64_t track, uint64_t t_ns, const AddMore &add_more);
	void Put(const std::string &packet);
	void Flush();

	FILE *file_ = nullptr;
	int error_ = 0;
	std::string out_;      // packets to be written
	std::string interned_; // to be written with the next packet
	uint64_t tracks_ = 0, stacks_ = 0;
	std::map<std::pair<uint32_t, std::string>, uint64_t> names_;
	std::map<uint32_t, uint64_t> counts_; // number of names, by kind
	std::map<std::pair<uint64_t, uint64_t>, uint64_t> frames_;
};

// Slices on tracks. Slices of one Perfetto track must nest. Overlapping slices go to sibling tracks of the
// same name, which the UI shows as one.

// Slices in the order of their start, each complete.
class Lanes
{
public:
	Lanes() = default;
	Lanes(std::string name, uint64_t parent) : name_(std::move(name)), parent_(parent) {}
	void Put(Slice slice, uint64_t end_ns, TraceFile *to)
	{
		auto lane = std::find_if(lanes_.begin(), lanes_.end(),
					 [&](const Lane &l) { return l.end_ns <= slice.start_ns; });
		if (lane == lanes_.end())
			lane = lanes_.insert(lane, {to->Track(name_, parent_), 0});
		lane->end_ns = std::max(end_ns, slice.start_ns);
		slice.track = lane->track;
		to->Begin(slice);
		to->End(lane->track, lane->end_ns);
	}

private:
	struct Lane {
		uint64_t track, end_ns;
	};
	std::string name_;
	uint64_t parent_ = 0;
	std::vector<Lane> lanes_ = {};
};

// Nesting slices in the order of their start, outer ones first: a thread's spans. Slices that do not nest go
// to `other`.
class Nest
{
public:
	Nest() = default;
	Nest(uint64_t track, const std::string &name) : track_(track), other_(name, track) {}
	void Put(Slice slice, uint64_t end_ns, TraceFile *to)
	{
		while (!ends_.empty() && ends_.back() <= slice.start_ns)
			Pop(to);
		if (!ends_.empty() && end_ns > ends_.back()) {
			other_.Put(std::move(slice), end_ns, to);
			return;
		}
		slice.track = track_;
		to->Begin(slice);
		ends_.push_back(end_ns);
	}
	void Finish(TraceFile *to)
	{
		while (!ends_.empty())
			Pop(to);
	}

private:
	void Pop(TraceFile *to)
	{
		to->End(track_, ends_.back());
		ends_.pop_back();
	}
	uint64_t track_ = 0;
	Lanes other_;
	std::vector<uint64_t> ends_ = {};
};

// Arrows in Perfetto's UI from slow requests to the spans that delayed them.

// Each of a request's largest few stall parts has an arrow to one span: of that cause, on that part's thread,
// with the most time in the range of the request's causes. The first stretch with such a span decides.
class Flows
{
public:
	// The arrow numbers of a request, by its index among the slow ones.
	std::vector<uint64_t> Of(const Explanation &e, size_t slow) const;
	// Finds the target spans that begin in a stretch.
	void Find(const Explanation &e, const Run &run, const Waits &waits, uint64_t from_ns, uint64_t to_ns);
	// The arrows to a span of that stretch, by its index in Run::spans.
	const std::vector<uint64_t> &To(uint32_t span) const;

private:
	static constexpr size_t kMost = 3; // per request
	uint32_t SpanOf(const Run &run, uint32_t thread, const Waits &waits, const SlowRequest &r,
			const Part &part, uint64_t from_ns, uint64_t to_ns) const;

	void FindReach(const Run &run);

	// By span: the latest end of its thread's spans up to it. Spans before the first that overlaps a
	// request's time can be skipped.
	std::vector<uint64_t> reach_ns_;
	std::vector<uint8_t> found_; // a bit for each part of a request
	std::unordered_map<uint32_t, std::vector<uint64_t>> to_;
};

// The cause that names a span. For off-CPU time it is what the thread was blocked in or waited for.
Cause CauseOfSpan(const Run &run, const Waits &waits, const Thread &thread, const ft_span &span);

namespace
{

constexpr size_t kShownFrames = 16; // frames of a span's stack, as an argument

std::string StackText(const std::vector<std::string> &stack)
{
	std::string text;
	for (size_t i = 0; i < stack.size() && i < kShownFrames; i++)
		text += (i ? " < " : "") + stack[i];
	return text;
}

bool IsInterruptOwner(uint8_t owner)
{
	return owner == FT_HARDIRQ || (owner >= FT_SOFTIRQ && owner - FT_SOFTIRQ < FT_SOFTIRQ_VECTORS);
}

class PerfettoExporter : public Exporter
{
public:
	explicit PerfettoExporter(std::string path) : path_(std::move(path)) {}
	bool Open(std::string *error)
	{
		if (to_.Open(path_) == 0)
			return true;
		*error = Why();
		return false;
	}
	Wants wants() const override { return {.blamed = false, .stretches = true, .windows = true}; }
	bool Begin(const Explanation &e) override;
	bool Stretch(const Explanation &e, const Run &run, uint64_t from_ns, uint64_t to_ns) override;
	bool Window(const Explanation &, const Run &run) override
	{
		seconds_.Add(run);
		return true;
	}
	bool End(const Explanation &e) override;

private:
	struct OfThread {
		uint64_t track = 0;
		Nest spans;
		Lanes iterations;
	};
	std::string Why() const { return "cannot write the trace " + path_ + ": " + strerror(to_.error()); }
	bool Ok() { return to_.error() == 0 || Fail(Why()); }
	void AddThreads(const Run &run);
	void AddRequests(const Explanation &e);
	Slice RequestSlice(const Explanation &e, size_t slow) const;
	void AddSeries(const Run &run);
	void AddDrops(const Run &run);
	void AddSpans(const Run &run, const Waits &waits, const Thread &thread, OfThread *to);
	void AddSamples(const Run &run, const Thread &thread);
	void AddDevices(const Run &run);
	void AddCpus(const Run &run);
	Lanes *At(std::map<uint32_t, Lanes> *all, uint32_t which, const std::string &name)
	{
		return &all->try_emplace(which, name, 0).first->second;
	}
	bool Begins(uint64_t t_ns) const { return t_ns >= from_ns_ && t_ns < to_ns_; }

	std::string path_;
	TraceFile to_;
	Flows flows_;
	Seconds seconds_;
	std::map<uint32_t, uint64_t> processes_;
	std::vector<OfThread> threads_;
	std::map<uint32_t, Lanes> interrupts_, cpus_, devices_;
	std::map<uint32_t, uint64_t> stacks_; // stacks of the run that have been written
	uint64_t from_ns_ = 0, to_ns_ = 0;    // the current stretch
};

bool PerfettoExporter::Begin(const Explanation &e)
{
	to_.Clocks(e.run.clocks);
	AddThreads(e.run);
	AddRequests(e);
	AddSeries(e.run);
	AddDrops(e.run);
	return Ok();
}

void PerfettoExporter::AddThreads(const Run &run)
{
	for (const Thread &t : run.threads) {
		if (!processes_.count(t.tgid))
			processes_[t.tgid] =
			    to_.Process(t.tgid, t.comm + (SeveralHosts(run) ? " " + ShownTgid(run, t) : ""));
		std::string name = t.role.empty() || t.role == t.comm ? t.comm : t.comm + " (" + t.role + ")";
		if (SeveralHosts(run))
			name += " " + ShownTid(run, t);
		OfThread of;
		of.track = to_.Thread(t.tgid, t.tid, name);
		of.spans = Nest(of.track, "Overlapping spans");
		of.iterations = Lanes("Event loop", of.track);
		threads_.push_back(std::move(of));
	}
}

Slice PerfettoExporter::RequestSlice(const Explanation &e, size_t slow) const
{
	const Blame &b = e.blame;
	const SlowRequest &r = b.slow[slow];
	Slice slice = {.start_ns = r.due_ns, .category = "slow-request"};
	slice.name = b.from_iterations ? "iteration" : r.op < e.run.ops.size() ? e.run.ops[r.op] : "request";
	slice.arguments.push_back({"number", r.index, ""});
	slice.arguments.push_back({"status", r.status, ""});
	if (!b.from_iterations) {
		slice.arguments.push_back({"connection", r.connection, ""});
		slice.arguments.push_back({"sent_after_ns", r.sent_ns - r.due_ns, ""});
	}
	slice.arguments.push_back({"episode", r.episode + 1, ""});
	// A cause may occur at several hops.
	std::map<Cause, uint64_t> causes;
	for (size_t i = 0; i < r.part_count; i++)
		causes[b.parts[r.first_part + i].cause] += b.parts[r.first_part + i].total_ns();
	for (const auto &[cause, ns] : causes)
		slice.arguments.push_back({CauseName(cause), ns, ""});
	if (r.hop != kNoHop)
		slice.arguments.push_back(
		    {"served_by", 0, HopNameOf(e.run, e.hop_threads, r.hop, b.from_iterations).text()});
	slice.flows = flows_.Of(e, slow);
	return slice;
}

void PerfettoExporter::AddRequests(const Explanation &e)
{
	Lanes lanes(e.blame.from_iterations ? "Slow iterations" : "Slow requests", 0);
	for (size_t i = 0; i < e.blame.slow.size(); i++)
		lanes.Put(RequestSlice(e, i), e.blame.slow[i].end_ns(), &to_);
}

void PerfettoExporter::AddSeries(const Run &run)
{
	for (const Series &s : run.series) {
		std::string name = s.name;
		for (const auto &[label, value] : s.labels)
			name += " " + label + "=" + value;
		const auto pid = s.labels.find("pid");
		const auto process =
		    pid == s.labels.end()
			? processes_.end()
			: processes_.find(static_cast<uint32_t>(strtoul(pid->second.c_str(), nullptr, 10)));
		const uint64_t track =
		    to_.Counter(name, s.unit, process == processes_.end() ? 0 : process->second);
		for (const Sample &x : s.samples)
			to_.Count(track, x.t_ns, x.value);
	}
}

void PerfettoExporter::AddDrops(const Run &run)
{
	if (run.drops.empty())
		return;
	const uint64_t track = to_.Track("Dropped events", 0);
	for (const ft_drop &d : run.drops)
		to_.Instant({.track = track,
			     .start_ns = d.start_ns,
			     .name = "dropped",
			     .category = "drop",
			     .arguments = {{"count", d.count, ""},
					   {"source", d.source, ""},
					   {"detail", d.detail, ""},
					   {"until_ns", d.end_ns, ""}}});
}

void PerfettoExporter::AddSpans(const Run &run, const Waits &waits, const Thread &thread, OfThread *to)
{
	for (size_t i = thread.first_span; i < thread.first_span + thread.span_count; i++) {
		const ft_span &s = run.spans[i];
		if (!Begins(s.start_ns))
			continue;
		const Cause cause = CauseOfSpan(run, waits, thread, s);
		Slice slice = {.start_ns = s.start_ns, .name = AccountName(cause)};
		slice.category = FamilyName(InfoOf(cause).family);
		if (s.off_cpu)
			slice.arguments = {{"blocked_ns", s.blocked_ns, ""},
					   {"runnable_ns", s.runnable_ns, ""}};
		slice.arguments.push_back({"cpu", OwnCpu(run, s.cpu), ""});
		const std::string call = s.syscall < 0 ? "" : SyscallName(run, s.syscall);
		if (!call.empty())
			slice.arguments.push_back({"syscall", 0, call});
		if (const std::string name = NameOf(run, s); !name.empty())
			slice.arguments.push_back({"detail", 0, name});
		if (const Detail &detail = DetailOf(run, s); !detail.stack.empty())
			slice.arguments.push_back({"stack", 0, StackText(detail.stack)});
		const uint64_t end_ns = s.start_ns + s.duration_ns;
		if (IsInterruptOwner(s.owner) && !s.off_cpu) {
			Slice on_cpu = slice;
			on_cpu.category = "interrupt";
			on_cpu.arguments = {{"tid", OwnId(run, s.tid), ""}};
			At(&interrupts_, s.cpu, "CPU " + ShownCpu(run, s.cpu) + " interrupts")
			    ->Put(std::move(on_cpu), end_ns, &to_);
		}
		slice.flows = flows_.To(static_cast<uint32_t>(i));
		to->spans.Put(std::move(slice), end_ns, &to_);
	}
	for (size_t i = thread.first_iteration; i < thread.first_iteration + thread.iteration_count; i++) {
		const ft_span &s = run.iterations[i];
		if (Begins(s.start_ns))
			to->iterations.Put({.start_ns = s.start_ns,
					    .name = MayBeMany(s) ? "iterations" : "iteration",
					    .category = "event-loop"},
					   s.start_ns + s.duration_ns, &to_);
	}
}

void PerfettoExporter::AddSamples(const Run &run, const Thread &thread)
{
	for (size_t i = thread.first_cpu_sample; i < thread.first_cpu_sample + thread.cpu_sample_count; i++) {
		const ft_cpu_sample &s = run.cpu_samples[i];
		if (!Begins(s.t_ns))
			continue;
		uint64_t stack = 0;
		if (s.stack && s.stack < run.stacks.size()) {
			const auto known = stacks_.find(s.stack);
			if (known == stacks_.end()) {
				std::vector<std::pair<std::string, std::string>> frames;
				for (const std::string &f : run.stacks[s.stack].kernel)
					frames.push_back({f, "[kernel]"});
				for (const StackFrame &f : run.stacks[s.stack].frames)
					frames.push_back({f.function, f.module});
				stacks_[s.stack] = stack = frames.empty() ? 0 : to_.Stack(frames);
			} else {
				stack = known->second;
			}
		}
		to_.Sample(s.t_ns, s.cpu, thread.tgid, thread.tid, s.flags & FT_CPU_SAMPLE_KERNEL, stack);
	}
}

void PerfettoExporter::AddDevices(const Run &run)
{
	static const char *const kinds[] = {"read", "write", "discard", "flush", "other"};
	for (const ft_io &io : run.ios) {
		if (!Begins(io.start_ns))
			continue;
		const std::string device = DeviceName(run, io.dev);
		Slice slice = {.start_ns = io.start_ns, .category = "disk"};
		slice.name = kinds[std::min<size_t>(io.write, std::size(kinds) - 1)];
		slice.arguments = {
		    {"bytes", io.bytes, ""}, {"sector", io.sector, ""}, {"tid", OwnId(run, io.tid), ""}};
		slice.arguments.push_back({"error", io.error, ""});
		slice.arguments.push_back({"by", 0, common::VisibleName(io.comm)});
		At(&devices_, io.dev, "Disk " + device)
		    ->Put(std::move(slice), io.start_ns + io.duration_ns, &to_);
	}
}

// The CPU holders while a server's thread waited for the CPU.
void PerfettoExporter::AddCpus(const Run &run)
{
	for (const ft_cpu_slice &t : run.cpu_slices)
		if (t.tid && Begins(t.start_ns))
			At(&cpus_, t.cpu, "CPU " + ShownCpu(run, t.cpu) + " held by")
			    ->Put({.start_ns = t.start_ns,
				   .name = common::VisibleName(t.comm),
				   .category = "cpu",
				   .arguments = {{"tid", OwnId(run, t.tid), ""}}},
				  t.end_ns, &to_);
}

bool PerfettoExporter::Stretch(const Explanation &e, const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	from_ns_ = from_ns;
	to_ns_ = to_ns;
	const Waits waits(run);
	flows_.Find(e, run, waits, from_ns, to_ns);
	for (size_t i = 0; i < run.threads.size(); i++) {
		AddSpans(run, waits, run.threads[i], &threads_[i]);
		AddSamples(run, run.threads[i]);
	}
	AddDevices(run);
	AddCpus(run);
	return Ok();
}

bool PerfettoExporter::End(const Explanation &)
{
	for (OfThread &t : threads_)
		t.spans.Finish(&to_);
	const auto together = seconds_.Together();
	if (!together.empty()) {
		static const char *const names[] = {"Latency p50", "Latency p99", "Latency p99.9"};
		std::vector<uint64_t> tracks;
		for (const char *name : names)
			tracks.push_back(to_.Counter(name, "ns", 0));
		const uint64_t longest = to_.Counter("Latency max", "ns", 0);
		const uint64_t rate = to_.Counter("Requests per second", "requests", 0);
		for (const auto &[second, of] : together) {
			const uint64_t t_ns = second * Seconds::kNs;
			const std::vector<uint64_t> values = of.Percentiles({50, 99, 99.9});
			for (size_t i = 0; i < tracks.size(); i++)
				to_.Count(tracks[i], t_ns, values[i]);
			to_.Count(longest, t_ns, of.max_ns);
			to_.Count(rate, t_ns, of.count);
		}
	}
	to_.Close();
	return Ok();
}

} // namespace

std::unique_ptr<Exporter> MakePerfetto(const std::string &path, std::string *error)
{
	auto exporter = std::make_unique<PerfettoExporter>(path);
	if (!exporter->Open(error))
		return nullptr;
	return exporter;
}

Cause CauseOfSpan(const Run &run, const Waits &waits, const Thread &thread, const ft_span &span)
{
	if (span.off_cpu && span.runnable_ns > span.blocked_ns)
		return WaitCauseOf(run, span);
	return span.off_cpu ? waits.CauseOf(span, thread) : CauseOfOwner(span.owner);
}

std::vector<uint64_t> Flows::Of(const Explanation &e, size_t slow) const
{
	const SlowRequest &r = e.blame.slow[slow];
	std::vector<uint64_t> ids;
	for (size_t i = 0; i < std::min<size_t>(kMost, r.part_count); i++) {
		const Part &part = e.blame.parts[r.first_part + i];
		if (part.hop != kNoHop && IsStall(part.cause))
			ids.push_back(slow * kMost + i + 1);
	}
	return ids;
}

uint32_t Flows::SpanOf(const Run &run, uint32_t thread, const Waits &waits, const SlowRequest &r,
		       const Part &part, uint64_t from_ns, uint64_t to_ns) const
{
	if (thread >= run.threads.size())
		return kNoSpan;
	const Thread &t = run.threads[thread];
	const ft_span *first = run.spans.data() + t.first_span, *end = first + t.span_count;
	// A span that began long before may overlap the request's time, but not one before the stretch.
	uint64_t most = 0;
	uint32_t found = kNoSpan;
	const auto reach = reach_ns_.begin() + static_cast<ptrdiff_t>(t.first_span);
	const ft_span *reaching =
	    first +
	    (std::upper_bound(reach, reach + static_cast<ptrdiff_t>(t.span_count), r.since_ns) - reach);
	for (const ft_span *s = std::max(
		 reaching,
		 std::partition_point(first, end, [&](const ft_span &x) { return x.start_ns < from_ns; }));
	     s != end && s->start_ns < std::min(to_ns, r.end_ns()); ++s) {
		const uint64_t begin = std::max(s->start_ns, r.since_ns);
		const uint64_t stop = std::min(s->start_ns + s->duration_ns, r.end_ns());
		if (CauseOfSpan(run, waits, t, *s) == part.cause && stop > begin && stop - begin > most) {
			most = stop - begin;
			found = static_cast<uint32_t>(s - run.spans.data());
		}
	}
	return found;
}

void Flows::FindReach(const Run &run)
{
	reach_ns_.resize(run.spans.size());
	for (const Thread &t : run.threads) {
		uint64_t latest = 0;
		for (size_t i = t.first_span; i < t.first_span + t.span_count; i++) {
			latest = std::max(latest, run.spans[i].start_ns + run.spans[i].duration_ns);
			reach_ns_[i] = latest;
		}
	}
}

void Flows::Find(const Explanation &e, const Run &run, const Waits &waits, uint64_t from_ns, uint64_t to_ns)
{
	to_.clear();
	FindReach(run);
	found_.resize(e.blame.slow.size());
	for (size_t i = 0; i < e.blame.slow.size(); i++) {
		const SlowRequest &r = e.blame.slow[i];
		if (r.end_ns() <= from_ns || r.since_ns >= to_ns)
			continue;
		for (uint64_t id : Of(e, i)) {
			const size_t part = (id - 1) % kMost;
			if (found_[i] >> part & 1)
				continue;
			const Part &of = e.blame.parts[r.first_part + part];
			const uint32_t span =
			    SpanOf(run, e.hop_threads[of.hop], waits, r, of, from_ns, to_ns);
			if (span == kNoSpan)
				continue;
			found_[i] |= static_cast<uint8_t>(1u << part);
			to_[span].push_back(id);
		}
	}
}

const std::vector<uint64_t> &Flows::To(uint32_t span) const
{
	static const std::vector<uint64_t> none;
	const auto found = to_.find(span);
	return found == to_.end() ? none : found->second;
}

// All packets are one sequence, so that there is one dictionary.

namespace
{

using Message = protozero::pbf_writer;

constexpr size_t kBuffer = 1 << 20;
constexpr uint64_t kNames = 1 << 14; // most interned names of one kind; later ones are written in full
constexpr uint32_t kSequence = 1;
// Two recordings read the clocks of one host at almost the same time, each with its own error. If any clock
// went back, Perfetto would refuse the reading.
constexpr uint64_t kBetweenReadings = 1'000'000;

void AddClock(Message *snapshot, uint32_t id, uint64_t t_ns)
{
	Message clock(*snapshot, kClocks);
	clock.add_uint32(kClockId, id);
	clock.add_uint64(kClockTime, t_ns);
}

bool IsAfter(const ft_clock &c, const ft_clock &last)
{
	return c.monotonic_ns > last.monotonic_ns + kBetweenReadings && c.realtime_ns > last.realtime_ns &&
	       c.boottime_ns > last.boottime_ns;
}

} // namespace

TraceFile::~TraceFile()
{
	if (file_)
		fclose(file_);
}

int TraceFile::Open(const std::string &path)
{
	file_ = fopen(path.c_str(), "we");
	return error_ = file_ ? 0 : errno;
}

int TraceFile::Close()
{
	Flush();
	if (file_ && fclose(file_) != 0 && !error_)
		error_ = errno;
	file_ = nullptr;
	return error_;
}

void TraceFile::Flush()
{
	errno = 0;
	if (!error_ && fwrite(out_.data(), 1, out_.size(), file_) != out_.size())
		error_ = errno ? errno : EIO;
	out_.clear();
}

// Writes a packet with the names that were interned since the last one, and the sequence id.
void TraceFile::Put(const std::string &packet)
{
	std::string all = packet;
	Message message(all);
	if (!interned_.empty())
		message.add_message(kInternedData, interned_);
	interned_.clear();
	message.add_uint32(kSequenceId, kSequence);
	Message(out_).add_message(kPacket, all);
	if (out_.size() >= kBuffer)
		Flush();
}

void TraceFile::Clocks(std::vector<ft_clock> readings)
{
	std::string packet;
	{
		Message first(packet);
		first.add_uint32(kSequenceFlags, kStateCleared);
		Message defaults(first, kDefaults);
		defaults.add_uint32(kDefaultClock, kMonotonic);
	}
	Put(packet);
	std::sort(readings.begin(), readings.end(),
		  [](const ft_clock &a, const ft_clock &b) { return a.monotonic_ns < b.monotonic_ns; });
	if (readings.empty()) // a trace must define its clock
		readings.push_back({});
	const ft_clock *last = nullptr;
	for (const ft_clock &c : readings) {
		if (last && !IsAfter(c, *last))
			continue;
		last = &c;
		packet.clear();
		{
			Message message(packet);
			Message snapshot(message, kClockSnapshot);
			AddClock(&snapshot, kMonotonic, c.monotonic_ns);
			if (c.realtime_ns)
				AddClock(&snapshot, kRealtime, c.realtime_ns);
			if (c.boottime_ns)
				AddClock(&snapshot, kBoottime, c.boottime_ns);
			snapshot.add_uint32(kPrimaryClock, kMonotonic);
		}
		Put(packet);
	}
}

uint64_t TraceFile::Define(const std::string &descriptor)
{
	std::string text = descriptor, packet;
	Message(text).add_uint64(kUuid, ++tracks_);
	Message(packet).add_message(kTrackDescriptor, text);
	Put(packet);
	return tracks_;
}

uint64_t TraceFile::Track(const std::string &name, uint64_t parent)
{
	std::string text;
	Message message(text);
	message.add_string(kTrackName, name);
	if (parent)
		message.add_uint64(kParentUuid, parent);
	return Define(text);
}

uint64_t TraceFile::Process(uint32_t pid, const std::string &name)
{
	std::string text;
	{
		Message message(text);
		Message process(message, kProcess);
		process.add_uint32(kProcessPid, pid);
		process.add_string(kProcessName, name);
	}
	return Define(text);
}

uint64_t TraceFile::Thread(uint32_t pid, uint32_t tid, const std::string &name)
{
	std::string text;
	{
		Message message(text);
		Message thread(message, kThread);
		thread.add_uint32(kThreadPid, pid);
		thread.add_uint32(kThreadTid, tid);
		thread.add_string(kThreadName, name);
	}
	return Define(text);
}

uint64_t TraceFile::Counter(const std::string &name, const std::string &unit, uint64_t parent)
{
	std::string text;
	{
		Message message(text);
		message.add_string(kTrackName, name);
		if (parent)
			message.add_uint64(kParentUuid, parent);
		Message counter(message, kCounter);
		if (unit == "ns")
			counter.add_enum(kUnit, kUnitNs);
		else if (unit == "bytes")
			counter.add_enum(kUnit, kUnitBytes);
		else
			counter.add_string(kUnitName, unit);
	}
	return Define(text);
}

uint64_t TraceFile::Intern(InternedData kind, const std::string &text)
{
	const auto found = names_.find({kind, text});
	if (found != names_.end())
		return found->second;
	uint64_t &count = counts_[kind];
	// Arguments and categories are few, and frames need interned names.
	if (kind == kEventNames && count >= kNames)
		return 0;
	const uint64_t id = names_[{kind, text}] = ++count;
	Message data(interned_);
	Message entry(data, kind);
	entry.add_uint64(kIid, id);
	entry.add_string(kText, text);
	return id;
}

template <class AddMore>
void TraceFile::PutEvent(EventType type, uint64_t track, uint64_t t_ns, const AddMore &add_more)
{
	std::string packet;
	{
		Message message(packet);
		message.add_uint64(kTimestamp, t_ns);
		message.add_uint32(kSequenceFlags, kNeedsState);
		Message event(message, kTrackEvent);
		event.add_enum(kType, type);
		event.add_uint64(kTrackUuid, track);
		add_more(event);
	}
	Put(packet);
}

void TraceFile::Event(EventType type, const Slice &slice)
{
	PutEvent(type, slice.track, slice.start_ns, [&](Message &event) {
		if (const uint64_t name = Intern(kEventNames, slice.name))
			event.add_uint64(kNameIid, name);
		else
			event.add_string(kName, slice.name);
		if (*slice.category)
			event.add_uint64(kCategoryIids, Intern(kCategories, slice.category));
		for (const Argument &a : slice.arguments) {
			Message argument(event, kAnnotations);
			argument.add_uint64(kAnnotationNameIid, Intern(kAnnotationNames, a.name));
			if (a.text.empty())
				argument.add_uint64(kAnnotationUint, a.number);
			else
				argument.add_string(kAnnotationText, a.text);
		}
		for (uint64_t flow : slice.flows)
			event.add_fixed64(kFlowIds, flow);
	});
}

void TraceFile::End(uint64_t track, uint64_t t_ns)
{
	PutEvent(kEnd, track, t_ns, [](Message &) {});
}

void TraceFile::Count(uint64_t track, uint64_t t_ns, double value)
{
	PutEvent(kCounterEvent, track, t_ns,
		 [&](Message &event) { event.add_double(kDoubleCounterValue, value); });
}

void TraceFile::Count(uint64_t track, uint64_t t_ns, uint64_t value)
{
	PutEvent(kCounterEvent, track, t_ns,
		 [&](Message &event) { event.add_int64(kCounterValue, static_cast<int64_t>(value)); });
}

uint64_t TraceFile::FrameOf(const std::string &function, const std::string &module)
{
	const uint64_t name = Intern(kFunctionNames, function);
	const uint64_t known = counts_[kMappingPaths];
	const uint64_t path = Intern(kMappingPaths, module); // a mapping for each path, with the same number
	if (path > known) {
		Message data(interned_);
		Message mapping(data, kMappings);
		mapping.add_uint64(kIid, path);
		mapping.add_uint64(kPathIds, path);
	}
	const auto [at, added] = frames_.try_emplace({name, path}, frames_.size() + 1);
	if (added) {
		Message data(interned_);
		Message frame(data, kFrames);
		frame.add_uint64(kIid, at->second);
		frame.add_uint64(kFrameFunction, name);
		frame.add_uint64(kFrameMapping, path);
	}
	return at->second;
}

uint64_t TraceFile::Stack(const std::vector<std::pair<std::string, std::string>> &frames)
{
	std::vector<uint64_t> ids;
	for (auto f = frames.rbegin(); f != frames.rend(); ++f) // outermost first
		ids.push_back(FrameOf(f->first, f->second));
	Message data(interned_);
	Message stack(data, kCallstacks);
	stack.add_uint64(kIid, ++stacks_);
	for (uint64_t id : ids)
		stack.add_uint64(kFrameIds, id);
	return stacks_;
}

void TraceFile::Sample(uint64_t t_ns, uint32_t cpu, uint32_t pid, uint32_t tid, bool kernel, uint64_t stack)
{
	std::string packet;
	{
		Message message(packet);
		message.add_uint64(kTimestamp, t_ns);
		message.add_uint32(kSequenceFlags, kNeedsState);
		Message sample(message, kPerfSample);
		sample.add_uint32(kSampleCpu, cpu);
		sample.add_uint32(kSamplePid, pid);
		sample.add_uint32(kSampleTid, tid);
		if (stack)
			sample.add_uint64(kSampleStack, stack);
		sample.add_enum(kSampleMode, kernel ? kModeKernel : kModeUser);
	}
	Put(packet);
}

} // namespace forktail::analysis::exports
