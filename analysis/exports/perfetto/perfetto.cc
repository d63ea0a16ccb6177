// SPDX-License-Identifier: MIT
// Puts a run on Perfetto's tracks: see perfetto.h. Large data is written stretch by stretch.
#include "perfetto.h"

#include <cstring>
#include <map>

#include "analysis/blame/hops.h"
#include "analysis/exports/seconds/seconds.h"
#include "analysis/run/hosts.h"
#include "common/format/sanitize.h"
#include "flows.h"
#include "trace_file.h"
#include "tracks.h"

namespace forktail::analysis::exports
{

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
	bool Stretch(const Explanation &e, uint64_t from_ns, uint64_t to_ns) override;
	bool Window(const Explanation &e) override
	{
		seconds_.Add(e.run);
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
		    {"served_by", 0, HopNameOf(e.run, e.timelines, r.hop, b.from_iterations).text()});
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

bool PerfettoExporter::Stretch(const Explanation &e, uint64_t from_ns, uint64_t to_ns)
{
	from_ns_ = from_ns;
	to_ns_ = to_ns;
	const Waits waits(e.run);
	flows_.Find(e, from_ns, to_ns);
	for (size_t i = 0; i < e.run.threads.size(); i++) {
		AddSpans(e.run, waits, e.run.threads[i], &threads_[i]);
		AddSamples(e.run, e.run.threads[i]);
	}
	AddDevices(e.run);
	AddCpus(e.run);
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

} // namespace forktail::analysis::exports
