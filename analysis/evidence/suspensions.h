// SPDX-License-Identifier: MIT
// Describes suspensions of a thread: by a cgroup freezer, or by a tracer.
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
// "strace (pid 77)", the tracer that stopped the thread longest; "a tracer" if it is unknown.
std::string TracerText(const Scene &scene);

} // namespace forktail::analysis
