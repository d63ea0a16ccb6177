// SPDX-License-Identifier: MIT
// A scene: a server thread and its surroundings in one interval. Sentences of evidence are made from it.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/run/run.h"
#include "analysis/timeline/thread_timelines.h"
#include "analysis/timeline/timeline.h"
#include "episodes.h"

namespace forktail::analysis
{

// One cause's share of the interval.
struct CauseTotal {
	uint64_t ns = 0;	 // of spans, clipped to the interval
	uint64_t spans = 0;	 // how many
	uint32_t last = kNoSpan; // the last span counted
	uint32_t longest = kNoSpan;
	uint64_t longest_ns = 0; // of the longest span, in the interval
	double tallied = 0;	 // number of short spans; a window partly inside counts in proportion
	double tallied_ns = 0;

	uint64_t all_ns() const { return ns + static_cast<uint64_t>(tallied_ns); }
	uint64_t times() const { return spans + static_cast<uint64_t>(std::llround(tallied)); }
};

// A CPU holder: a thread that ran while the server's thread waited for the CPU.
struct Holder {
	uint64_t ns = 0;
	std::string name = {};
	uint16_t cpu = 0; // of one of these waits
};

// Rare spans of the whole run that sentences use, by thread and start.
struct Landmarks {
	std::vector<uint32_t> forks, fsyncs;
};

struct Scene {
	const Run &run;
	const Timeline &timeline;
	const Thread &thread; // of the timeline
	const Landmarks &landmarks;
	uint64_t from_ns = 0;
	uint64_t to_ns = 0;
	std::array<CauseTotal, kTimelineCauses> totals = {};
	std::map<uint32_t, Holder> holders = {};	  // by tid; 0: the CPU was idle
	OwnCode own_code = {};				  // on-CPU time of the thread
	const Scene *client = nullptr;			  // the load thread of the worst request, if recorded
	const Activities *activities = nullptr;		  // of the run's samples
	const EpisodeAnswers *answers = nullptr;	  // of the episode
	const std::vector<Timeline> *timelines = nullptr; // of all hops
	ThreadTimelines *threads = nullptr;		  // of any thread

	const CauseTotal &Total(Cause cause) const { return totals[static_cast<size_t>(Index(cause))]; }
};

// Fills totals and holders.
void Gather(Scene *scene);
// On-CPU time of the scene's thread in an interval, by activity.
OwnCode OwnCodeIn(const Scene &scene, uint64_t from_ns, uint64_t to_ns);

inline uint64_t SpanEnd(const ft_span &s)
{
	return s.start_ns + s.duration_ns;
}

// "redis-server (9163)"; "memcached's mc-worker (6615)" if the process has another name than the thread.
std::string NameOfThread(const Run &run, const Thread &thread);
// "write()", a system call by number; "the kernel" for waits outside system calls (number < 0).
std::string SyscallText(const Scene &scene, int number);
// The number of the system call that a span of FT_FSYNC was in.
int SyncCall(const ft_span &s);
// The longest fsync of another thread of the process, or of its child, in [from, to): "; bio_aof_fsync (12)
// was in fdatasync() for 30.0 ms"; "" without one.
std::string OtherFsyncText(const Scene &scene, uint64_t from_ns, uint64_t to_ns);
// Whether the call of a fork's span created a thread, not a process.
bool MadeThread(const Scene &scene, const ft_span &fork);
// The child process of a fork; nullptr if it is not in the recording.
const Thread *ChildOf(const Scene &scene, const ft_span &fork);
// The longest of these frames that is on the scene's thread and overlaps the scene.
const ft_span *LongestFrame(const Scene &scene, const std::vector<uint32_t> &frames);
// The command that makes a server fork such a child: "BGSAVE", "BGREWRITEAOF"; "" for other children.
std::string ForkCommandOf(const Thread &child);
// A child of the scene's process that existed in the interval; nullptr without one.
const Thread *LiveChild(const Scene &scene);

} // namespace forktail::analysis
