// SPDX-License-Identifier: MIT
// See stacks.h.
#include "stacks.h"

#include <algorithm>

#include "analysis/run/hosts.h"
#include "analysis/timeline/holders.h"

namespace forktail::analysis::exports
{

namespace
{

constexpr uint64_t kOldPeriod = 16; // of samples without a period, in sixteenths of a millisecond

// One frame, without the characters that separate frames.
std::string Frame(std::string name)
{
	for (char &c : name)
		if (c == ';' || c == '\n')
			c = ':';
	return ";" + name;
}

// Kernel stacks without offsets, which would split one caller into several.
std::string KernelFrames(const std::vector<std::string> &innermost_first)
{
	std::string text;
	for (auto f = innermost_first.rbegin(); f != innermost_first.rend(); ++f)
		text += Frame(f->substr(0, f->find('+')) + "_[k]");
	return text;
}

std::string SpanFrames(const Run &run, const ft_span &s)
{
	const std::string call = s.syscall < 0 ? "" : SyscallName(run, s.syscall);
	std::string frames = call.empty() ? "" : Frame(call);
	return frames + KernelFrames(DetailOf(run, s).stack);
}

bool IsServers(const Thread &thread)
{
	return !(thread.flags & FT_THREAD_CLIENT);
}

} // namespace

std::string ThreadName(const Run &run, const Thread &t)
{
	return t.comm + (t.role.empty() || t.role == t.comm ? "" : "/" + t.role) + " " + ShownTid(run, t);
}

void Stacks::AddSample(const Run &run, uint32_t thread, const ft_cpu_sample &s)
{
	std::string frames;
	if (s.stack < run.stacks.size()) {
		const Stack &stack = run.stacks[s.stack];
		for (auto f = stack.frames.rbegin(); f != stack.frames.rend(); ++f)
			frames += Frame(f->function.empty() ? "[" + f->module + "]" : f->function);
		frames += KernelFrames(stack.kernel);
	}
	samples_[thread][frames] += s.period ? s.period : kOldPeriod;
}

void Stacks::AddThread(const Run &run, const Waits &waits, uint32_t thread, uint64_t from_ns, uint64_t to_ns)
{
	const Thread &t = run.threads[thread];
	auto began = [&](uint64_t t_ns) { return t_ns >= from_ns && t_ns < to_ns; };
	auto add = [&](Cause cause, const std::string &frames, uint64_t ns) {
		if (ns && cause != Cause::Idle && cause != Cause::ServerBusy)
			times_[{thread, AccountName(cause) + frames}] += ns;
	};
	for (size_t i = t.first_span; i < t.first_span + t.span_count; i++) {
		const ft_span &s = run.spans[i];
		if (!began(s.start_ns))
			continue;
		const std::string frames = SpanFrames(run, s);
		if (s.off_cpu) {
			add(waits.CauseOf(s, t), frames, s.blocked_ns);
			add(WaitCauseOf(run, s), frames, s.runnable_ns);
		} else {
			add(CauseOfOwner(s.owner), frames, s.on_cpu_ns + s.runnable_ns + s.blocked_ns);
		}
	}
	for (size_t i = t.first_tally; i < t.first_tally + t.tally_count; i++)
		if (const ft_tally &tally = run.tallies[i]; began(tally.start_ns))
			add(CauseOfOwner(tally.owner), ";[short]", tally.total_ns);
	for (size_t i = t.first_cpu_sample; i < t.first_cpu_sample + t.cpu_sample_count; i++)
		if (const ft_cpu_sample &s = run.cpu_samples[i]; began(s.t_ns) && s.owner == FT_OWN_CODE)
			AddSample(run, thread, s);
}

void Stacks::Add(const Explanation &e, uint64_t from_ns, uint64_t to_ns)
{
	const Waits waits(e.run);
	for (uint32_t i = 0; i < e.run.threads.size(); i++)
		if (IsServers(e.run.threads[i]))
			AddThread(e.run, waits, i, from_ns, to_ns);
}

std::map<std::pair<uint32_t, std::string>, uint64_t> Stacks::Result(const Explanation &e) const
{
	auto all = times_;
	const std::string own = AccountName(Cause::ServerBusy);
	for (const Account &a : e.accounts) {
		if (!IsServers(e.run.threads[a.thread]))
			continue;
		uint64_t left = a.by_cause[Index(Cause::ServerBusy)], weight = 0;
		const auto samples = samples_.find(a.thread);
		if (samples != samples_.end()) {
			for (const auto &[frames, w] : samples->second)
				weight += w;
			for (const auto &[frames, w] : samples->second) {
				const auto ns =
				    static_cast<uint64_t>(static_cast<unsigned __int128>(left) * w / weight);
				all[{a.thread, own + frames}] += ns;
				left -= ns;
				weight -= w;
			}
		} else if (left) {
			all[{a.thread, own}] += left;
		}
	}
	return all;
}

} // namespace forktail::analysis::exports
