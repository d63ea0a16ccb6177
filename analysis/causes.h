// SPDX-License-Identifier: MIT
// The causes a request's time is blamed on: their numbers inside the analysis, their stable names outside.
//
// Names are an interface (JSON, scripts, docs/causes.md): they are added to, never changed. The numbers are
// not: they only order things inside one program. Owners (recording/owners.h) are what the kernel programs
// account; causes are what a user reads. The two differ where a request sees more than a thread does: the
// client, the network, and the server being busy with other commands.
#pragma once

#include <cstdint>

namespace forktail
{

enum class Cause : uint8_t {
	Fork,
	Fsync,
	CowCopy,
	CowReuse,
	PageZero,
	PageFile,
	PageIn,
	PageFault, // a fault that ended but could not be told apart
	FileWrite,
	FileRead,
	FileMeta,
	Syscall,
	Reclaim,
	Compaction,
	LockWait,
	Sleep,
	Stopped,
	RunQueue,
	CpuQuota, // on no run queue: its cgroup had used up its quota
	Hardirq,
	SoftirqHi, // softirq vectors in the kernel's order
	SoftirqTimer,
	SoftirqNetTx,
	SoftirqNetRx,
	SoftirqBlock,
	SoftirqIrqPoll,
	SoftirqTasklet,
	SoftirqSched,
	SoftirqHrtimer,
	SoftirqRcu,
	SoftirqDeferred, // done by the kernel's thread for it, ksoftirqd, which had the CPU
	NoServer,	 // nobody served the request's key: an outage that the load generator saw
	// Not stalls:
	ServerBusy, // the server thread ran its own code
	ClientLate, // the load generator was late although a connection was free
	Network,    // the server waited for requests, or blocked on a socket
	Unknown,    // nothing recorded says what happened
	// Only on a thread's timeline, never a request's cause (there it is Network):
	Idle,
};

constexpr int kCauses = static_cast<int>(Cause::Idle); // what a request can be blamed on
constexpr int kTimelineCauses = kCauses + 1;	       // and Idle
constexpr int kStallCauses = static_cast<int>(Cause::ServerBusy);

constexpr int Index(Cause c)
{
	return static_cast<int>(c);
}
// Something that kept the server thread from running its own code although it had work, or could have had.
constexpr bool IsStall(Cause c)
{
	return Index(c) < kStallCauses;
}

// The stable name: "fork", "softirq/net_rx", "server-busy" ...
const char *CauseName(Cause c);
// The same for a thread's account, where the thread's own code is "own-code" rather than "server-busy".
const char *AccountName(Cause c);
// The cause of an owner as recorded (enum ft_owner); overlays and numbers of a newer recorder are Unknown.
Cause CauseOfOwner(uint32_t owner);
// The cause of the runnable part of an off-CPU span with these flags (enum ft_span_flags).
Cause WaitCauseOf(uint8_t span_flags);
// True and *cause set if `name` is a cause's stable name.
bool CauseByName(const char *name, Cause *cause);

} // namespace forktail
