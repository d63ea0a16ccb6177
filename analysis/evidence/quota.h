// SPDX-License-Identifier: MIT
// Describes CPU quotas of cgroups.
#pragma once

#include <string>

#include "scene.h"

namespace forktail::analysis
{

// "the cgroup /x had used up its CPU quota (20.0 ms of every 100 ms): the thread waited 80.0 ms, throttled 9
// times".
std::string QuotaSentence(const Scene &scene);
// The same as a clause of CulpritFinder, for the first line of an answer.
std::string QuotaClause(const Scene &scene);

} // namespace forktail::analysis
