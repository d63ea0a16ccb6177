// SPDX-License-Identifier: MIT
// Who kept a thread from running, whatever it was about to do: freezers and tracers, in words.
#pragma once

#include <string>

#include "scene.h"

namespace forktail::analysis
{

// "the server's cgroup /docker/1f2e... (container web) was frozen for 300 ms (3 times)".
std::string FrozenSentence(const Scene &scene);
// "cgroup /docker/1f2e... (container web)"; "cgroup" if the recorder did not see which.
std::string FrozenGroupText(const Scene &scene);
// "was stopped 4,211 times by strace (pid 77), 300 ms in total".
std::string PtraceSentence(const Scene &scene);
// "strace (pid 77)", the one that stopped it longest; "a tracer" if that isn't known.
std::string TracerText(const Scene &scene);

} // namespace forktail::analysis
