// SPDX-License-Identifier: MIT
// Looks up causes by owner and by name.
#include "causes.h"

#include <array>
#include <cstring>

#include "recording/format.h"

namespace forktail::analysis
{

namespace
{

constexpr std::array<Cause, FT_OWNER_LIMIT> CausesOfOwners()
{
	std::array<Cause, FT_OWNER_LIMIT> causes = {};
	causes.fill(Cause::Unknown);
	for (int c = 0; c < kTimelineCauses; c++)
		if (kCauseTable[c].owner != kNoOwner)
			causes[kCauseTable[c].owner] = static_cast<Cause>(c);
	return causes;
}
constexpr std::array<Cause, FT_OWNER_LIMIT> kCauseOfOwner = CausesOfOwners();

} // namespace

const char *AccountName(Cause c)
{
	return c == Cause::ServerBusy ? "own-code" : CauseName(c);
}

const char *FamilyName(Family family)
{
	switch (family) {
	case Family::Memory:
		return "memory";
	case Family::Files:
		return "files";
	case Family::Cpu:
		return "cpu";
	case Family::Interrupts:
		return "interrupts";
	case Family::Outside:
		break;
	}
	return "outside";
}

Cause CauseOfOwner(uint32_t owner)
{
	return owner < kCauseOfOwner.size() ? kCauseOfOwner[owner] : Cause::Unknown;
}

Cause WaitCauseOf(uint8_t span_flags)
{
	if (span_flags & FT_SPAN_THROTTLED)
		return Cause::CpuQuota;
	return span_flags & FT_SPAN_KSOFTIRQD ? Cause::SoftirqDeferred : Cause::RunQueue;
}

bool CauseByName(const char *name, Cause *cause)
{
	for (int i = 0; i < kCauses; i++) {
		if (strcmp(kCauseTable[i].name, name) == 0) {
			*cause = static_cast<Cause>(i);
			return true;
		}
	}
	return false;
}

} // namespace forktail::analysis
