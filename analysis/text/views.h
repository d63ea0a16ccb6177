// SPDX-License-Identifier: MIT
// One thing of an explanation in full: an episode, a request, a cause.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/explain/explanation.h"
#include "layout.h"

namespace forktail::analysis
{

// `number` counts from 1, the worst, as on the screen. False: *error says why there is none.
bool EpisodeView(const Explanation &e, const Style &style, size_t number, std::string *text,
		 std::string *error);
// `id` is the request's number in the log (of an iteration in the run), `slow_requests[].id` of the JSON.
bool RequestView(const Explanation &e, const Style &style, uint64_t id, std::string *text,
		 std::string *error);
// At most `episodes` of those that have it. A cause that no slow request met has a view too, which says so.
std::string CauseView(const Explanation &e, const Style &style, Cause cause, size_t episodes);

} // namespace forktail::analysis
