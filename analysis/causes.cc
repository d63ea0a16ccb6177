// SPDX-License-Identifier: MIT
// Names of causes, and which cause an owner is.
#include "analysis/causes.h"

#include <cstring>

#include "recording/format.h"

namespace forktail
{

namespace
{

// In the order of enum Cause.
const char *const kNames[kTimelineCauses] = {
    "fork",
    "fsync",
    "cow-copy",
    "cow-reuse",
    "page-zero",
    "page-file",
    "page-in",
    "page-fault",
    "file-write",
    "file-read",
    "file-meta",
    "syscall",
    "reclaim",
    "compaction",
    "lock-wait",
    "sleep",
    "stopped",
    "run-queue",
    "cpu-quota",
    "hardirq",
    "softirq/hi",
    "softirq/timer",
    "softirq/net_tx",
    "softirq/net_rx",
    "softirq/block",
    "softirq/irq_poll",
    "softirq/tasklet",
    "softirq/sched",
    "softirq/hrtimer",
    "softirq/rcu",
    "softirq/deferred",
    "no-server",
    "server-busy",
    "client-late",
    "network",
    "unknown",
    "idle",
};

} // namespace

const char *CauseName(Cause c)
{
	return kNames[Index(c)];
}

const char *AccountName(Cause c)
{
	return c == Cause::ServerBusy ? "own-code" : CauseName(c);
}

Cause CauseOfOwner(uint32_t owner)
{
	constexpr uint32_t first = FT_SOFTIRQ, vectors = FT_SOFTIRQ_VECTORS;
	if (owner >= first && owner < first + vectors)
		return static_cast<Cause>(Index(Cause::SoftirqHi) + static_cast<int>(owner - first));
	switch (owner) {
	case FT_OWN_CODE:
		return Cause::ServerBusy;
	case FT_FORK:
		return Cause::Fork;
	case FT_FSYNC:
		return Cause::Fsync;
	case FT_COW_COPY:
		return Cause::CowCopy;
	case FT_COW_REUSE:
		return Cause::CowReuse;
	case FT_PAGE_ZERO:
		return Cause::PageZero;
	case FT_PAGE_FILE:
		return Cause::PageFile;
	case FT_PAGE_IN:
		return Cause::PageIn;
	case FT_FAULT_OTHER:
		return Cause::PageFault;
	case FT_RECLAIM:
		return Cause::Reclaim;
	case FT_COMPACTION:
		return Cause::Compaction;
	case FT_HARDIRQ:
		return Cause::Hardirq;
	case FT_RUN_QUEUE:
		return Cause::RunQueue;
	case FT_CPU_QUOTA:
		return Cause::CpuQuota;
	case FT_IDLE:
		return Cause::Idle;
	case FT_LOCK_WAIT:
		return Cause::LockWait;
	case FT_SLEEP:
		return Cause::Sleep;
	case FT_STOPPED:
		return Cause::Stopped;
	case FT_FILE_WRITE:
		return Cause::FileWrite;
	case FT_FILE_READ:
		return Cause::FileRead;
	case FT_FILE_META:
		return Cause::FileMeta;
	case FT_NETWORK:
		return Cause::Network;
	case FT_SYSCALL:
		return Cause::Syscall;
	default:
		return Cause::Unknown;
	}
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
		if (strcmp(kNames[i], name) == 0) {
			*cause = static_cast<Cause>(i);
			return true;
		}
	}
	return false;
}

} // namespace forktail
