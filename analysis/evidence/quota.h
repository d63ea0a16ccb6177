// SPDX-License-Identifier: MIT
// CPU quotas of cgroups in words.
#pragma once

#include <string>

#include "scene.h"

namespace forktail::analysis
{

// "the cgroup /x had used up its CPU quota (20.0 ms of every 100 ms): the thread waited 80.0 ms, throttled 9
// times".
std::string QuotaSentence(const Scene &scene);
// The same for an answer's first line, a clause of CulpritFinder's.
std::string QuotaClause(const Scene &scene);

} // namespace forktail::analysis
