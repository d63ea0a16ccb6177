// SPDX-License-Identifier: MIT
// `forktail watch --once --json`: a second's figures for scripts (docs/reference/watch-and-metrics.md).
#pragma once

#include <string>
#include <vector>

#include "frame.h"

namespace forktail::live::watch
{

// One object with all servers, a line.
std::string OnceJson(const std::vector<Frame> &frames);

} // namespace forktail::live::watch
