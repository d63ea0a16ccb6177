/* SPDX-License-Identifier: MIT */
/* The kernel programs of requests (bpf/requests.bpf.c): which of them this kernel needs, when they are
 * attached, and how many connections they follow. */
#ifndef FORKTAIL_LOADER_REQUEST_HOOKS_H
#define FORKTAIL_LOADER_REQUEST_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/request_events.h"
#include "loader/system/helper_process.h"

struct requests_bpf;
struct bpf_object;

struct request_hooks {
	struct requests_bpf *skeleton; /* NULL: not loaded */
	struct helper_process switcher;
	uint32_t sample; /* one in this many connections is followed now */
	bool slices;	 /* they are attached for a part of each period only */
	bool on;	 /* all are attached */
	uint32_t on_ms;	 /* of each period */
	uint32_t period_ms;
	uint32_t epoch; /* the programs' last one */
	uint64_t runs, run_ns;
};

/* `period_ms`: of slices; 0: they are attached all of the time. */
void request_hooks_init(struct request_hooks *h, uint32_t sample, uint32_t period_ms);
/* Loads them, with the map of targets of another object. Negative errno: programs_log() says why. */
int request_hooks_load(struct request_hooks *h, int targets_map, uint32_t pid_namespace);
/* The ring of their events. */
int request_hooks_ring(const struct request_hooks *h);
/* A target listens on this TCP port. */
void request_hooks_serve(struct request_hooks *h, uint16_t port);
int request_hooks_attach(struct request_hooks *h);
/* With slices: attaches or detaches all. Returns 0 or a negative errno. */
int request_hooks_switch(struct request_hooks *h, bool on);
/* With slices: chooses on_ms so that they take 1 % of a CPU. The kernel's run-time statistics were on for so
 * long since the call before. */
void request_hooks_measured(struct request_hooks *h, uint64_t measured_ns);
/* From now on one in so many connections, a power of two, of those that are followed. */
void request_hooks_reduce(struct request_hooks *h, uint32_t sample);
uint64_t request_hooks_count(const struct request_hooks *h, enum ft_request_counter counter);
/* For their cost. NULL: not loaded. */
struct bpf_object *request_hooks_programs(const struct request_hooks *h);
void request_hooks_detach(struct request_hooks *h);
void request_hooks_close(struct request_hooks *h);

#endif
