// SPDX-License-Identifier: MIT
// The causes of a request's time. causes.def has one row for each; nothing else in the analysis lists them.
//
// Owners (recording/owners.h) are what the BPF programs account; causes are what a user reads. The two differ
// where a request sees more than a thread does: the client, the network, and a server that is busy with other
// commands.
#pragma once

#include <cstdint>
#include <iterator>

#include "recording/owners.h"

namespace forktail::analysis
{

enum class Cause : uint8_t {
#define CAUSE(id, ...) id,
#include "causes.def"
#undef CAUSE
};

// The family of a cause. On the page, causes of one family share a mark and a hue.
enum class Family : uint8_t { Memory, Files, Cpu, Interrupts, Outside };

enum class Kind : uint8_t {
	Stall,	  // the server thread could not run its own code although it had work, or could have had
	Other,	  // its own code, the client, the network, or unknown
	Timeline, // only on a thread's timeline, never a request's cause
};

// How evidence describes a cause: the function in evidence/sentences.cc, and the meaning of `words` for it.
enum class SentenceKind : uint8_t {
	None,
	Blocked, // words: a sentence, with % for the time and & for the call or fault; "": made of the call
		 // and the kernel stack
	Busy,
	Client,
	Faults, // words: "one|many"
	File,	// words: the preposition between the call and the file
	Fork,
	Frozen,
	Fsync,
	Interrupt,
	IoThread,
	Lock, // by lock holder; if unknown, as Blocked
	Held,
	Network,
	Peer,
	Ptrace,
	Quota,
	RunQueue,
	Unknown,
};

constexpr uint32_t kNoOwner = UINT32_MAX;

struct CauseInfo {
	const char *name;
	uint32_t owner; // enum ft_owner, or kNoOwner
	Family family;
	Kind kind;
	SentenceKind telling;
	const char *words;
	const char *light, *dark; // #rrggbb for a light and for a dark page
	const char *meaning;
	const char *thread, *seen_by; // columns of docs/reference/causes.md
};

inline constexpr CauseInfo kCauseTable[] = {
#define CAUSE(id, name, owner, family, kind, telling, words, light, dark, meaning, thread, seen_by)          \
	{name, owner,	Family::family, Kind::kind, SentenceKind::telling, words, light,                     \
	 dark, meaning, thread,		seen_by},
#include "causes.def"
#undef CAUSE
};

constexpr int CountOf(Kind kind)
{
	int count = 0;
	for (const CauseInfo &info : kCauseTable)
		count += info.kind == kind;
	return count;
}

constexpr int kTimelineCauses = static_cast<int>(std::size(kCauseTable));
constexpr int kCauses = kTimelineCauses - CountOf(Kind::Timeline); // causes of a request
constexpr int kStallCauses = CountOf(Kind::Stall);

constexpr int Index(Cause c)
{
	return static_cast<int>(c);
}
constexpr const CauseInfo &InfoOf(Cause c)
{
	return kCauseTable[Index(c)];
}
constexpr bool IsStall(Cause c)
{
	return InfoOf(c).kind == Kind::Stall;
}
constexpr bool IsInterrupt(Cause c)
{
	return InfoOf(c).family == Family::Interrupts;
}

// Arrays of only stalls, and of only request causes, are prefixes of the full arrays.
constexpr bool KindsAreInOrder()
{
	for (int i = 1; i < kTimelineCauses; i++)
		if (kCauseTable[i].kind < kCauseTable[i - 1].kind)
			return false;
	return true;
}
static_assert(KindsAreInOrder(),
	      "causes.def: stalls first, then what is none, then what is on timelines only");

// The stable name: "fork", "softirq/net_rx", "server-busy" ...
constexpr const char *CauseName(Cause c)
{
	return InfoOf(c).name;
}
// The same for a thread's account, where the thread's own code is "own-code" rather than "server-busy".
const char *AccountName(Cause c);
// "memory", "files" ...
const char *FamilyName(Family family);
// The cause of a recorded owner (enum ft_owner). Overlays, and owners of a newer recorder, are Unknown.
Cause CauseOfOwner(uint32_t owner);
// The cause of the runnable part of an off-CPU span with these flags (enum ft_span_flags).
Cause WaitCauseOf(uint8_t span_flags);
// True and *cause set if `name` is the stable name of a request cause.
bool CauseByName(const char *name, Cause *cause);

} // namespace forktail::analysis
