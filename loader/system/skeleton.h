/* SPDX-License-Identifier: MIT */
/* The skeleton of the main programs, with the object that suits this kernel (bpf/program.h). */
#ifndef FORKTAIL_LOADER_ATTACH_SKELETON_H
#define FORKTAIL_LOADER_ATTACH_SKELETON_H

#include <stdbool.h>

struct forktail_bpf;

/* In place of bpftool's forktail_bpf__open(): NULL and errno on failure. */
struct forktail_bpf *skeleton_open(bool disable_preemption);
/* Once it is loaded: its bytes, nearly a megabyte of this program's file, leave the process' memory. */
void skeleton_loaded(const struct forktail_bpf *s);

#endif
