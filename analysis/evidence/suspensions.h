// SPDX-License-Identifier: MIT
// Describes what kept a thread from running: a cgroup freezer, a tracer, or a CPU quota.
#pragma once

#include <string>

#include "scene.h"

namespace forktail::analysis
{

// "the server's cgroup /docker/1f2e... (container web) was frozen for 300 ms (3 times)".
std::string FrozenSentence(const Scene &scene);
// "cgroup /docker/1f2e... (container web)"; "cgroup" if it is unknown.
std::string FrozenGroupText(const Scene &scene);
// "was stopped 4,211 times by strace (pid 77), 300 ms in total".
std::string PtraceSentence(const Scene &scene);
// Whether a stall keeps a load thread from running. Interrupts take time on the CPU, but do not.
constexpr bool StallsClient(Cause cause)
{
	return IsStall(cause) && !IsInterrupt(cause);
}
// "was stopped by SIGSTOP for 30.0 ms": a stall of the scene's thread without its subject.
std::string StallPhrase(const Scene &scene, Cause cause, const std::string &duration);
// "strace (pid 77)", the tracer that stopped the thread longest; "a tracer" if it is unknown.
std::string TracerText(const Scene &scene);
// "the cgroup /x had used up its CPU quota (20.0 ms of every 100 ms): the thread waited 80.0 ms, throttled 9
// times".
std::string QuotaSentence(const Scene &scene);
// The same as a clause of CulpritFinder, for the first line of an answer.
std::string QuotaClause(const Scene &scene);

} // namespace forktail::analysis
