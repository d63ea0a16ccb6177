/* SPDX-License-Identifier: MIT */
/* Requests of the targets' clients, seen at the server's sockets (bpf/requests.bpf.c), as a request log in
 * the recording. docs/how-it-works/requests.md says what is exact and what is left out. */
#ifndef FORKTAIL_LOADER_REQUESTS_H
#define FORKTAIL_LOADER_REQUESTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct requests;

struct requests_wanted {
	bool wanted;
	bool keep; /* for a flight recorder */
	/* One in this many connections, a power of two, all of the time. 0: automatic: all of them, and one
	 * in 16 from 10,000 requests per second on; for a flight recorder all, for a part of the time, in
	 * which the programs take 1 % of a CPU. */
	uint32_t sample;
	bool hash_clients; /* store random bytes in place of a client's address, the same in this recording */
};

/* Starts the helper. Call it before anything is open that the helper should not have. NULL: see errno. */
struct requests *requests_start(const struct requests_wanted *wanted);
/* Loads the programs, which share the map of targets. Negative errno: programs_log() says why. */
int requests_load(struct requests *r, int targets_map, uint32_t pid_namespace);
/* A process is a target from now on, or may listen elsewhere now: its description (loader/targets), or NULL.
 * New servers are noted in `w`. NULL: no file is open yet, and its manifest will have them. */
void requests_target(struct requests *r, struct ft_writer *w, const json_t *described);
/* Adds the members of the manifest that describe the log: what was asked for, servers and operations. */
void requests_manifest(const struct requests *r, json_t *manifest);
int requests_attach(struct requests *r);
enum { REQUESTS_PERIOD_MS = 20000 };
/* With an automatic sample: attaches or detaches, or reduces the sample. Call it often, with the time in the
 * current period. */
void requests_tick(struct requests *r, struct ft_writer *w, uint32_t in_period_ms);
/* The kernel's run-time statistics were on for that long since the call before, and are off now. */
void requests_measured(struct requests *r, uint64_t measured_ns);
/* A descriptor that is readable when requests_take has something to do; -1: none. */
int requests_fd(const struct requests *r);
/* Appends what the helper found to the log. */
void requests_take(struct requests *r, struct ft_writer *w);
/* Hands the open block to the writer. */
void requests_flush(struct requests *r, struct ft_writer *w);
/* A new file begins: connections are written again, with their first request in it. */
void requests_begin_segment(struct requests *r);
/* Detaches, and writes what is left and a note of what was left out. */
void requests_stop(struct requests *r, struct ft_writer *w);
void requests_close(struct requests *r);

struct requests_figures {
	uint64_t requests, dropped_events;
	pid_t helper;
	uint64_t helper_cpu_ns;
};
struct requests_figures requests_so_far(const struct requests *r);
struct bpf_object;
/* The programs, for their cost. NULL: not loaded. */
struct bpf_object *requests_programs(const struct requests *r);

#ifdef __cplusplus
}
#endif

#endif
