// SPDX-License-Identifier: MIT
// What a blocked call was on, and why it waited: the file of an fsync, the pipe or terminal of a write and
// who should have read it, and the kernel function that tells a lock or a commit from a slow disk.
#include "scene.h"

#include <algorithm>

#include "analysis/run.h"
#include "analysis/timeline.h"

namespace forktail::analysis
{

namespace
{

// A file has the name of a set of waits if at least this part of their time was on it.
constexpr double kMainFile = 0.8;

// "(stdout)" after the number of a descriptor that every process has.
std::string DescriptorText(uint64_t fd)
{
	static const char *const known[] = {" (stdin)", " (stdout)", " (stderr)"};
	return "fd " + std::to_string(fd) + (fd < std::size(known) ? known[fd] : "");
}

// The look at the pipe of a wait: one during the wait, whose states are those of that time, or else the
// nearest at the same pipe. A FIFO's name has no inode: its descriptor may be another file at another time.
struct PipeLook {
	const PipeEnds *pipe = nullptr;
	bool meanwhile = false;
};

PipeLook LookAt(const Scene &scene, const ft_span &s, const std::string &name)
{
	const auto distance = [&](const PipeEnds &p) {
		return p.t_ns < s.start_ns ? s.start_ns - p.t_ns : p.t_ns - std::min(p.t_ns, SpanEnd(s));
	};
	PipeLook look;
	for (const PipeEnds &p : scene.run.pipes)
		if (p.pid == scene.thread.tgid && p.fd == s.arg[0] &&
		    (name.starts_with("pipe:") ? name == "pipe:[" + std::to_string(p.inode) + "]"
					       : distance(p) == 0) &&
		    (!look.pipe || distance(p) < distance(*look.pipe)))
			look = {&p, distance(p) == 0};
	return look;
}

bool IsStopped(const PipeEnd &end)
{
	return end.state == "T" || end.state == "t";
}

// "logger (123)", "sh (12) and tee (13)", "sh (12), tee (13) and 2 others".
std::string EndsText(const std::vector<PipeEnd> &ends)
{
	constexpr size_t most = 2;
	std::string text;
	for (size_t i = 0; i < ends.size() && i < most; i++)
		text += (i == 0			? ""
			 : i + 1 == ends.size() ? " and "
						: ", ") +
			ends[i].comm + " (" + std::to_string(ends[i].pid) + ")";
	const size_t others = ends.size() - std::min(ends.size(), most);
	return text +
	       (others == 0 ? "" : " and " + std::to_string(others) + (others == 1 ? " other" : " others"));
}

// " that logger (123) did not read", " whose reader logger (123) was stopped".
std::string PipeEndsText(const PipeLook &look, bool writes)
{
	if (!look.pipe)
		return "";
	const std::vector<PipeEnd> &ends = look.pipe->ends;
	const std::string end = writes ? "reader" : "writer";
	if (ends.empty())
		return " whose " + end + " the recorder cannot see";
	if (look.meanwhile && std::ranges::all_of(ends, IsStopped))
		return " whose " + end + (ends.size() > 1 ? "s " : " ") + EndsText(ends) +
		       (ends.size() > 1 ? " were" : " was") + " stopped";
	return (writes ? " that " : " to which ") + EndsText(ends) +
	       (writes ? " did not read" : " did not write");
}

} // namespace

const ft_span *WaitIn(const Run &run, const Thread &thread, const ft_span &s)
{
	if (s.off_cpu)
		return &s;
	const ft_span *first = run.spans.data() + thread.first_span, *end = first + thread.span_count,
		      *longest = nullptr;
	for (const ft_span *wait =
		 std::partition_point(first, end, [&](const ft_span &x) { return x.start_ns < s.start_ns; });
	     wait < end && wait->start_ns < SpanEnd(s); wait++)
		if (wait->off_cpu && wait->owner == s.owner && wait->detail &&
		    (!longest || wait->blocked_ns > longest->blocked_ns))
			longest = wait;
	return longest;
}

std::string FileOfSync(const Run &run, const Thread &thread, const ft_span &s)
{
	const ft_span *wait = WaitIn(run, thread, s);
	const std::string name = wait ? DetailOf(run, *wait).name : "";
	return name.empty() ? "" : " of " + name;
}

std::string FileOfSyncs(const Scene &scene)
{
	std::map<std::string, uint64_t> files;
	uint64_t all_ns = 0;
	for (uint32_t i : scene.landmarks.fsyncs) {
		const ft_span &s = scene.run.spans[i];
		if (s.tid != scene.thread.tid || s.start_ns >= scene.to_ns || SpanEnd(s) <= scene.from_ns)
			continue;
		files[FileOfSync(scene.run, scene.thread, s)] += s.duration_ns;
		all_ns += s.duration_ns;
	}
	const auto most =
	    std::ranges::max_element(files, {}, &std::pair<const std::string, uint64_t>::second);
	if (most == files.end() || most->first.empty())
		return "";
	return most->first + (static_cast<double>(most->second) < kMainFile * static_cast<double>(all_ns)
				  ? " and others"
				  : "");
}

std::string SpecialFileText(const Scene &scene, const ft_span &s)
{
	const std::string &name = DetailOf(scene.run, s).name;
	if (s.owner != FT_SYSCALL || !s.off_cpu || name.empty())
		return "";
	const bool writes = SyscallName(scene.run, s.syscall).find("write") != std::string::npos;
	std::string text = (writes ? " to " : " of ") + DescriptorText(s.arg[0]) + ", ";
	const bool fifo = name.starts_with("FIFO ");
	if (name.starts_with("pipe:"))
		text += "a pipe";
	else if (fifo || name.starts_with("terminal") || name.starts_with("device "))
		text += "the " + name;
	else
		text += name;
	if (name.starts_with("pipe:") || fifo)
		text += PipeEndsText(LookAt(scene, s, name), writes);
	return text;
}

std::string StackReasonText(const Detail &detail)
{
	const std::string stack = StackText(detail, 5);
	if (stack.empty())
		return "";
	const std::string reason = WaitReason(detail.stack);
	return reason.empty() ? "; kernel stack: " + stack
			      : "; it waited for " + reason + " (kernel stack: " + stack + ")";
}

std::string FileWaitText(const Scene &scene, const ft_span &s)
{
	if (std::string disk = DiskText(scene, s.start_ns, SpanEnd(s)); !disk.empty())
		return disk;
	const ft_span *wait = WaitIn(scene.run, scene.thread, s);
	const bool dropped = std::ranges::any_of(scene.run.drops, [&](const ft_drop &d) {
		return d.source == FT_DROP_RING && d.detail == FT_DROP_BLOCK_IO && d.start_ns < SpanEnd(s) &&
		       d.end_ns > s.start_ns;
	});
	return (wait ? StackReasonText(DetailOf(scene.run, *wait)) : "") +
	       (scene.run.ios.empty() || dropped ? "" : "; no block device was busy meanwhile");
}

} // namespace forktail::analysis
