// SPDX-License-Identifier: MIT
// `forktail watch --once --json`: the figures of a second for scripts (docs/reference/watch-and-metrics.md).
#pragma once

#include <string>
#include <vector>

#include "frame.h"

namespace forktail::live::watch
{

// One line with one object for all servers.
std::string OnceJson(const std::vector<Frame> &frames);

} // namespace forktail::live::watch
