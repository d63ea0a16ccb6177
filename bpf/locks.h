/* SPDX-License-Identifier: GPL-2.0-only */
/* Which thread a thread blocked in futex waits for: the lock holder according to its memory when the thread
 * goes to sleep, and the waker. Both are thread ids that the analysis has to check (a word of memory may
 * contain anything). Both are looked up for waits in futex only: other threads have no cost.
 *
 * The kernel does not know a lock's owner, but C libraries and servers store it near the word that is waited
 * on:
 *
 *   glibc's mutex        FUTEX_WAIT, two words further on (__owner)
 *   KeyDB's fastlock     FUTEX_WAIT_BITSET for one ticket's bit, 64 bytes before (m_pidOwner)
 *   locks that inherit   FUTEX_LOCK_PI, in the word itself, for the kernel's use
 *
 * glibc's condition variables and semaphores use FUTEX_WAIT_BITSET for all bits: they have no holder, so only
 * the thread's waker counts. */
#ifndef FORKTAIL_BPF_LOCKS_H
#define FORKTAIL_BPF_LOCKS_H

#include "state.h" /* first: libbpf's headers need the integer types */

#include "calls.h"
#include "ids.h"
#include "iteration.h"

enum futex_command {
	FUTEX_WAIT = 0,
	FUTEX_LOCK_PI = 6,
	FUTEX_WAIT_BITSET = 9,
	FUTEX_LOCK_PI2 = 13,
	FUTEX_COMMAND = 127, /* the rest are flags: private, which clock */
};

enum { GLIBC_OWNER = 8, KEYDB_OWNER = 64, FUTEX_TID = 0x3fffffff };

/* The current thread is about to wait in futex. */
static __noinline int note_lock(struct thread_state *st)
{
	struct pt_regs___user *regs = user_regs(current_task());
	u64 at = st->blocked_on;
	u32 owner = 0;
	switch (BPF_CORE_READ(regs, CALL_ARG1) & FUTEX_COMMAND) {
	case FUTEX_WAIT:
		at += GLIBC_OWNER;
		break;
	case FUTEX_WAIT_BITSET:
		if ((u32)BPF_CORE_READ(regs, CALL_ARG5) == ~0u)
			return 0;
		at -= KEYDB_OWNER;
		break;
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		break;
	default:
		return 0;
	}
	if (!bpf_probe_read_user(&owner, sizeof owner, (void *)at))
		st->lock_owner = at == st->blocked_on ? owner & FUTEX_TID : owner;
	return 0;
}

/* For a finished wait in futex: the owner's id in the lower half, the waker's in the upper half. In a
 * container the owner is known by its id in that namespace. Unless it is also the waker, the recorder can't
 * identify that thread. */
static __always_inline u64 lock_threads(const struct thread_state *st, struct task_struct *task)
{
	u32 owner = st->lock_owner, waker = st->lock_waker;
	if (owner && owner != waker && own_id_of(task) != st->tid)
		owner = 0;
	return owner | (u64)waker << 32;
}

#endif
