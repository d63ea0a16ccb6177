// SPDX-License-Identifier: MIT
// Prints one part of an explanation in full: an episode, a request or a cause.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/explain/explanation.h"
#include "layout.h"

namespace forktail::analysis
{

// `number` counts from 1, the worst, as on the screen. False: *error is one sentence.
bool EpisodeView(const Explanation &e, const Style &style, size_t number, std::string *text,
		 std::string *error);
// `id`: the request's number in the log (or the iteration's in the run), `slow_requests[].id` in JSON.
bool RequestView(const Explanation &e, const Style &style, uint64_t id, std::string *text,
		 std::string *error);
// Lists at most `episodes` episodes with the cause. A cause that affected no slow request has a view too.
std::string CauseView(const Explanation &e, const Style &style, Cause cause, size_t episodes);

} // namespace forktail::analysis
