// SPDX-License-Identifier: MIT
// A part of a run, as users give it: --since, --until, --around.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "run.h"

namespace forktail::analysis
{

// A time as a user writes it.
struct Instant {
	enum Kind : uint8_t {
		FromBegin, // "+12.5s": after the due time of the run's first request
		BeforeEnd, // "-5m": before the run's end
		Realtime,  // "2026-11-22T20:15:03.5", "1795378503.5": ns since 1970, UTC
		TimeOfDay, // "20:15:03": ns since midnight, UTC, of the day the run began (or the next)
	};
	Kind kind = FromBegin;
	uint64_t ns = 0;
};
// False: it has none of these forms.
bool ParseInstant(const std::string &text, Instant *instant);

// The requested part of a run: requests due in [since, until).
struct PartAsked {
	std::optional<Instant> since, until;
	uint64_t before_ns = 0, after_ns = 0; // extends the part in both directions
	bool any() const { return since || until; }
};
// Parses the options' texts; "": not given. `around` is "T" or "T,WIDTH". False: *error is one sentence.
bool ParsePart(const std::string &since, const std::string &until, const std::string &around, PartAsked *part,
	       std::string *error);

// [since_ns, until_ns) by the run's clock.
struct TimeSpan {
	uint64_t since_ns = 0, until_ns = UINT64_MAX;
};
// Finds the requested part of a run that lasts from begin_ns to end_ns. Returns 0, or an exit status with
// *error as one sentence. 2: since is not before until; 3: the time is unknown, or the run has nothing in the
// part.
int FindPart(const PartAsked &asked, const Run &run, uint64_t begin_ns, uint64_t end_ns, TimeSpan *part,
	     std::string *error);
// "the run lasts from +0.000 s to +60.0 s (2026-11-22T20:15:03 to 2026-11-22T20:16:03 UTC)"
std::string SpanText(const Run &run, uint64_t begin_ns, uint64_t end_ns);

} // namespace forktail::analysis
