// SPDX-License-Identifier: MIT
// See peers.h. The recorder reads the peer when the wait ends, and the program's stack when it begins.
#include "peers.h"

#include <algorithm>

#include "analysis/run/hosts.h"
#include "analysis/timeline/holders.h"
#include "common/format/units.h"
#include "own_code.h"
#include "suspensions.h"

namespace forktail::analysis
{

namespace
{

constexpr size_t kCallers = 4; // printed of a stack

const ft_span *LongestOf(const Scene &scene, Cause cause)
{
	const CauseTotal &total = scene.Total(cause);
	return total.longest == kNoSpan ? nullptr : &scene.run.spans[total.longest];
}

// "poll < anetResolve < connectWithMaster": the function that waited and the program's own that called it,
// innermost first, else the libraries'; "" if the stack is unknown.
std::string CallersText(const Scene &scene, const ft_span &s)
{
	const Run &run = scene.run;
	const ft_cpu_sample *first = run.cpu_samples.data() + scene.thread.first_cpu_sample,
			    *end = first + scene.thread.cpu_sample_count;
	const ft_cpu_sample *sample =
	    std::partition_point(first, end, [&](const ft_cpu_sample &x) { return x.t_ns < s.start_ns; });
	if (sample == end || sample->t_ns != s.start_ns || sample->owner != FT_PEER_WAIT || !sample->stack ||
	    sample->stack >= run.stacks.size())
		return "";
	const Stack &stack = run.stacks[sample->stack];
	const bool has_own = std::any_of(stack.frames.begin(), stack.frames.end(), [&](const StackFrame &f) {
		return !f.function.empty() && f.module == stack.program;
	});
	std::vector<std::string> names;
	for (const StackFrame &frame : stack.frames)
		if (!frame.function.empty() && (names.empty() || !has_own || frame.module == stack.program))
			names.push_back(frame.function);
	// Of libraries alone (the recorded stack ends before the program) the outermost tell most.
	if (names.size() > kCallers)
		names.erase(has_own ? names.begin() + kCallers : names.begin() + 1,
			    has_own ? names.end() : names.end() - (kCallers - 1));
	std::string text;
	for (const std::string &name : names)
		text += (text.empty() ? "" : " < ") + name;
	return text;
}

// " for an answer from 127.0.0.1:53 (udp)"; "" for an unknown peer.
std::string PeerText(const Scene &scene, const ft_span &s)
{
	const std::string peer = NameOf(scene.run, s);
	const bool sends = SyscallText(scene, s.syscall).find("send") != std::string::npos;
	return peer.empty() ? "" : (sends ? " to send to " : " for an answer from ") + peer;
}

const ft_span *IterationOf(const Scene &scene, const ft_span &s)
{
	const ft_span *first = scene.run.iterations.data() + scene.thread.first_iteration,
		      *end = first + scene.thread.iteration_count;
	const ft_span *after =
	    std::partition_point(first, end, [&](const ft_span &i) { return i.start_ns <= s.start_ns; });
	return after == first || SpanEnd(after[-1]) < SpanEnd(s) ? nullptr : after - 1;
}

std::string Doing(const Scene &scene, Cause cause)
{
	if (cause == Cause::ServerBusy)
		return "ran its own code for \1";
	if (cause == Cause::RunQueue)
		return "waited \1 for a CPU";
	return StallPhrase(scene, cause, "\1");
}

} // namespace

std::optional<StalledTarget> StalledTargetIn(const Scene &scene, uint64_t from_ns, uint64_t to_ns)
{
	std::optional<StalledTarget> longest;
	if (!scene.threads || to_ns <= from_ns)
		return longest;
	const Run &run = scene.run;
	for (uint32_t i = 0; i < run.threads.size(); i++) {
		const Thread &t = run.threads[i];
		if (!(t.flags & FT_THREAD_MAIN) || t.flags & (FT_THREAD_CHILD | FT_THREAD_CLIENT) ||
		    t.tgid == scene.thread.tgid || t.start_ns > from_ns || t.end_ns < from_ns)
			continue;
		CauseTimes times = {};
		AddTimes(scene.threads->Of(i), from_ns, to_ns, &times);
		for (int c = 0; c < kTimelineCauses; c++) {
			const Cause cause = static_cast<Cause>(c);
			const uint64_t ns = times[static_cast<size_t>(c)];
			if (cause == Cause::Idle || cause == Cause::Unknown || cause == Cause::Network ||
			    ns * 2 < to_ns - from_ns || (longest && longest->ns >= ns))
				continue;
			const Scene theirs = {run, scene.threads->Of(i), t, scene.landmarks, from_ns, to_ns};
			longest = {NameOfThread(run, t) + " " + Doing(theirs, cause), ns, t.tgid};
		}
	}
	return longest;
}

std::string StalledTarget::Sentence() const
{
	std::string sentence = text;
	return sentence.replace(sentence.find('\1'), 1, common::FormatDuration(ns));
}

std::string StalledTargetText(const Scene &scene, Cause waited)
{
	const ft_span *s = LongestOf(scene, waited);
	const auto target = s ? StalledTargetIn(scene, std::max(s->start_ns, scene.from_ns),
						std::min(SpanEnd(*s), scene.to_ns))
			      : std::nullopt;
	return target ? "; " + target->Sentence() + " meanwhile" : "";
}

std::string PeerSentence(const Scene &scene)
{
	const CauseTotal &total = scene.Total(Cause::PeerWait);
	const ft_span *s = LongestOf(scene, Cause::PeerWait);
	if (!s)
		return "short waits for peers inside event-loop iterations took " +
		       common::FormatDuration(static_cast<uint64_t>(total.tallied_ns));
	std::string text = "waited " + common::FormatDuration(total.ns) + " in " +
			   SyscallText(scene, s->syscall) + PeerText(scene, *s) + ", inside ";
	const ft_span *iteration = IterationOf(scene, *s);
	text += iteration ? "an event-loop iteration of " + common::FormatDuration(iteration->duration_ns)
			  : "an event-loop iteration";
	if (total.spans > 1)
		text += " (" + common::FormatCount(total.spans) + " waits, the longest " +
			common::FormatDuration(total.longest_ns) + ")";
	if (const std::string callers = CallersText(scene, *s); !callers.empty())
		text += "; called by " + callers;
	return text + StalledTargetText(scene, Cause::PeerWait);
}

std::string PeerMeanwhile(const Scene &scene)
{
	const ft_span *s = LongestOf(scene, Cause::PeerWait);
	const auto target = s ? StalledTargetIn(scene, s->start_ns, SpanEnd(*s)) : std::nullopt;
	if (!target)
		return "";
	std::string peer = NameOf(scene.run, *s);
	peer = peer.substr(0, peer.find(' '));
	const std::string port = "tcp:" + peer.substr(peer.rfind(':') + 1);
	for (const Target &t : scene.run.targets)
		if (t.pid == target->pid && std::ranges::find(t.listens, port) != t.listens.end())
			return "Meanwhile " + target->Sentence() + ".";
	return "";
}

std::string PeerClause(const Scene &scene)
{
	const ft_span *s = LongestOf(scene, Cause::PeerWait);
	const std::string what =
	    s ? " in " + SyscallText(scene, s->syscall) + PeerText(scene, *s) : std::string(" for peers");
	return NameOfThread(scene.run, scene.thread) + " waited \1" + what + ", inside event-loop iterations";
}

} // namespace forktail::analysis
