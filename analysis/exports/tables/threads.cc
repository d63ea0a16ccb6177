// SPDX-License-Identifier: MIT
// Rows of what threads did. A record that crosses the end of a stretch is counted where it begins.
#include <cstring>

#include "analysis/timeline/holders.h"
#include "analysis/timeline/waits.h"
#include "common/format/sanitize.h"
#include "filler.h"

namespace forktail::analysis::exports
{

namespace
{

// The sample period, in sixteenths of a millisecond, of old recordings that do not have it.
constexpr uint64_t kOldPeriod = 16;
constexpr size_t kStackFrames = 32; // frames of a span's stack

std::string SyscallText(const Run &run, int number)
{
	return number < 0 ? "" : SyscallName(run, number);
}

} // namespace

void Filler::AddSpan(const Explanation &e, uint32_t thread, const ft_span &s, Cause blocked)
{
	const Detail &detail = DetailOf(e.run, s);
	const std::string name = NameOf(e.run, s);
	const WaitHolder holder = HolderOf(e.run, s);
	const std::string syscall = SyscallText(e.run, s.syscall);
	const Cause cause = s.off_cpu ? blocked : CauseOfOwner(s.owner);
	Row(kSpans)
	    .Int(s.tid)
	    .Int(thread)
	    .Int(s.start_ns)
	    .Time(At(s.start_ns))
	    .Int(s.duration_ns)
	    .Name(static_cast<size_t>(Index(cause)))
	    .Name(s.off_cpu ? static_cast<size_t>(Index(WaitCauseOf(e.run, s))) : SIZE_MAX)
	    .Int(s.on_cpu_ns)
	    .Int(s.runnable_ns)
	    .Int(s.blocked_ns)
	    .Int(s.cpu)
	    .Int(s.depth)
	    .Bool(s.off_cpu)
	    .Bool(s.flags & FT_SPAN_UNFINISHED)
	    .TextOr(!syscall.empty(), syscall)
	    .TextOr(!name.empty(), name)
	    .TextOr(!detail.stack.empty(), StackText(detail, kStackFrames))
	    .Int(s.arg[0])
	    .Int(s.off_cpu ? holder.tid | holder.ns << 32 : s.arg[1]);
}

void Filler::AddTally(const Explanation &, uint32_t thread, const ft_tally &t)
{
	Row(kTallies)
	    .Int(t.tid)
	    .Int(thread)
	    .Int(t.start_ns)
	    .Time(At(t.start_ns))
	    .Int(t.end_ns)
	    .Name(static_cast<size_t>(Index(CauseOfOwner(t.owner))))
	    .Int(t.total_ns)
	    .Int(t.max_ns)
	    .Int(t.count);
}

void Filler::AddIteration(const Explanation &, uint32_t thread, const ft_span &iteration)
{
	Row(kIterations)
	    .Int(iteration.tid)
	    .Int(thread)
	    .Int(iteration.start_ns)
	    .Time(At(iteration.start_ns))
	    .Int(iteration.duration_ns)
	    .Bool(iteration.flags & FT_SPAN_SAMPLED)
	    .Int(iteration.arg[0])
	    .Int(iteration.arg[1]);
}

void Filler::AddSample(const Explanation &e, uint32_t, size_t index)
{
	const ft_cpu_sample &s = e.run.cpu_samples[index];
	const std::string syscall = SyscallText(e.run, s.syscall - 1);
	const bool own = s.owner == FT_OWN_CODE && index < e.activities.of_sample.size();
	Row(kSamples)
	    .Int(s.tid)
	    .Int(s.t_ns)
	    .Time(At(s.t_ns))
	    .Int((s.period ? s.period : kOldPeriod) * 1'000'000 / 16)
	    .Int(s.cpu)
	    .Name(static_cast<size_t>(Index(CauseOfOwner(s.owner))))
	    .TextOr(own, own ? e.activities.Of(index).name : "")
	    .IntOr(s.stack != 0, s.stack)
	    .Bool(s.flags & FT_CPU_SAMPLE_KERNEL)
	    .TextOr(!syscall.empty(), syscall);
}

bool Filler::AddStretch(const Explanation &e, uint64_t from_ns, uint64_t to_ns)
{
	const Run &run = e.run;
	const Waits waits(run);
	auto began = [&](uint64_t t_ns) { return t_ns >= from_ns && t_ns < to_ns; };
	for (uint32_t n = 0; n < run.threads.size() && ok_; n++) {
		const Thread &t = run.threads[n];
		for (size_t i = t.first_span; i < t.first_span + t.span_count; i++)
			if (began(run.spans[i].start_ns))
				AddSpan(e, n, run.spans[i], waits.CauseOf(run.spans[i], t));
		for (size_t i = t.first_tally; i < t.first_tally + t.tally_count; i++)
			if (began(run.tallies[i].start_ns))
				AddTally(e, n, run.tallies[i]);
		for (size_t i = t.first_iteration; i < t.first_iteration + t.iteration_count; i++)
			if (began(run.iterations[i].start_ns))
				AddIteration(e, n, run.iterations[i]);
		for (size_t i = t.first_cpu_sample; i < t.first_cpu_sample + t.cpu_sample_count; i++)
			if (began(run.cpu_samples[i].t_ns))
				AddSample(e, n, i);
	}
	for (const ft_io &io : run.ios)
		if (began(io.start_ns))
			Row(kDisk)
			    .Int(io.start_ns)
			    .Time(At(io.start_ns))
			    .Int(io.duration_ns)
			    .Text(DeviceName(run, io.dev))
			    .Int(io.sector)
			    .Int(io.bytes)
			    .Name(io.write)
			    .Bool(io.error)
			    .Int(io.tid)
			    .Text(common::VisibleName(io.comm));
	return ok_;
}

} // namespace forktail::analysis::exports
