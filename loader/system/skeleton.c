/* SPDX-License-Identifier: MIT */
/* The skeleton with the object that suits this kernel.
 *
 * Both objects have the same maps, variables and programs, so either fits the skeleton. */
#include "skeleton.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/events.h"
#include "forktail.skel.h"
#include "forktail_unpreempted.skel.h"

_Static_assert(sizeof(struct forktail_bpf__rodata) == sizeof(struct forktail_unpreempted_bpf__rodata) &&
		   sizeof(struct forktail_bpf__bss) == sizeof(struct forktail_unpreempted_bpf__bss),
	       "variables of both objects");

struct forktail_bpf *skeleton_open(bool disable_preemption)
{
	struct forktail_bpf *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	int err = forktail_bpf__create_skeleton(s);
	if (!err && disable_preemption)
		s->skeleton->data = (void *)forktail_unpreempted_bpf__elf_bytes(&s->skeleton->data_sz);
	if (!err)
		err = bpf_object__open_skeleton(s->skeleton, NULL);
	if (!err)
		return s;
	forktail_bpf__destroy(s);
	errno = -err;
	return NULL;
}

void skeleton_loaded(const struct forktail_bpf *s)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), bytes = (uintptr_t)s->skeleton->data,
			from = (bytes + page - 1) / page * page,
			to = (bytes + s->skeleton->data_sz) / page * page;
	if (from < to)
		madvise((void *)from, to - from, MADV_DONTNEED);
}
