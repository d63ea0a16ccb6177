// SPDX-License-Identifier: MIT
// Parts without time are dropped, and at a hop only causes inside a process are stored.
#include "blamed_requests.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

bool IsAtHop(Cause cause)
{
	return cause != Cause::ClientLate && cause != Cause::Network && cause != Cause::NoServer;
}

} // namespace

void AddPart(Cause cause, uint16_t hop, uint64_t direct_ns, uint64_t queued_ns, Sheet *sheet)
{
	if (direct_ns || queued_ns)
		sheet->parts.push_back({cause, IsAtHop(cause) ? hop : kNoHop, direct_ns, queued_ns});
}

void AddParts(const CauseTimes &direct, const std::array<uint64_t, kStallCauses> &queued, uint16_t hop,
	      Sheet *sheet)
{
	for (size_t c = 0; c < kCauses; c++) {
		Cause cause = static_cast<Cause>(c);
		AddPart(cause, hop, direct[c], IsStall(cause) ? queued[c] : 0, sheet);
	}
}

void AddRequest(SlowRequest *r, Sheet *sheet)
{
	r->part_count = static_cast<uint16_t>(sheet->parts.size() - r->first_part);
	std::sort(sheet->parts.begin() + r->first_part, sheet->parts.end(),
		  [](const Part &a, const Part &b) { return a.total_ns() > b.total_ns(); });
	sheet->requests.push_back(*r);
}

} // namespace forktail::analysis
