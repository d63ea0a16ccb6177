/* SPDX-License-Identifier: MIT */
/* Opens a skeleton of bpftool with the object that suits this kernel (bpf/program.h). The objects of
 * NAME.skel.h and NAME_unpreempted.skel.h have the same maps, settings and programs, so either fits the
 * skeleton. */
#ifndef FORKTAIL_LOADER_ATTACH_SKELETON_H
#define FORKTAIL_LOADER_ATTACH_SKELETON_H

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* Defines NAME_open_skeleton(), which replaces NAME_bpf__open(): NULL and errno on failure. */
#define DEFINE_SKELETON_OPEN(name)                                                                           \
	_Static_assert(sizeof(struct name##_bpf__rodata) == sizeof(struct name##_unpreempted_bpf__rodata) && \
			   sizeof(struct name##_bpf__bss) == sizeof(struct name##_unpreempted_bpf__bss),     \
		       "variables of both objects");                                                         \
	static struct name##_bpf *name##_open_skeleton(bool disable_preemption)                              \
	{                                                                                                    \
		struct name##_bpf *s = calloc(1, sizeof *s);                                                 \
		if (!s)                                                                                      \
			return NULL;                                                                         \
		int err = name##_bpf__create_skeleton(s);                                                    \
		if (!err && disable_preemption)                                                              \
			s->skeleton->data =                                                                  \
			    (void *)name##_unpreempted_bpf__elf_bytes(&s->skeleton->data_sz);                \
		if (!err)                                                                                    \
			err = bpf_object__open_skeleton(s->skeleton, NULL);                                  \
		if (!err)                                                                                    \
			return s;                                                                            \
		name##_bpf__destroy(s);                                                                      \
		errno = -err;                                                                                \
		return NULL;                                                                                 \
	}

#endif
