/* SPDX-License-Identifier: MIT */
/* A connection that is never read while the program of reads is attached is not known then, so busy
 * connections are known first, and those are the ones whose requests need it. Short ones are known when they
 * are closed. */
#include "loader/requests/readers.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/reader_events.h"
#include "loader/requests/hook_switch.h"
#include "loader/system/restarts.h"
#include "readers.skel.h"
#include "recording/json/json_block.h"

enum {
	ON_NS = 100000000, /* attached for at least so long */
	READ_NS = 500,	   /* what it costs a read: the cost block of a recording has it */
	SHARE = 1000,	   /* it may take one part in this many of a CPU's time */
};
/* Switching takes milliseconds of the helper, so shorter pauses are not worth it. */
#define SHORTEST_OFF_NS 1000000000ull
#define LONGEST_OFF_NS 10000000000ull

_Static_assert((int)FT_READERS_CHANGES == (int)FT_READER_CHANGES, "of a socket, in both kinds of records");

/* The programs, as hook_switch_set() has them. */
enum { READS = 1, CLOSES = 2 };

struct readers {
	struct readers_bpf *skeleton;
	struct ring_buffer *ring;
	struct helper_process hooks;
	struct ft_writer *writer; /* during readers_tick */
	unsigned attached;
	bool gone; /* the helper that switches */
	struct restarts restarts;
	uint64_t since_ns, reads; /* when READS was attached or last found cheap, and their number then */
	uint64_t off_until_ns;	  /* when READS may be attached again */
};

static int on_reader(void *context, void *data, size_t bytes)
{
	struct readers *r = context;
	const struct ft_socket_reader *e = data;
	if (bytes < sizeof *e)
		return 0;
	const struct ft_socket s = {.before_ns = e->t_ns,
				    .seen_ns = e->t_ns,
				    .inode = e->inode,
				    .peer_inode = e->peer_inode,
				    .tgid = e->tgid,
				    .local_port = e->local_port,
				    .peer_port = e->peer_port,
				    .epoll = e->closed ? (uint32_t)FT_SOCKET_GONE : 0,
				    .reader = e->tid};
	ft_writer_record(r->writer, FT_BLOCK_SOCKET, &s);
	return 0;
}

static int start_switch(struct readers *r)
{
	const int programs[] = {bpf_program__fd(r->skeleton->progs.socket_read),
				bpf_program__fd(r->skeleton->progs.socket_closes)};
	return hook_switch_start(&r->hooks, programs, 2);
}

struct readers *readers_open(int targets_map, uint32_t pid_namespace)
{
	struct readers *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->hooks = (struct helper_process){.pid = 0, .socket = -1};
	r->skeleton = readers_bpf__open();
	int err = r->skeleton ? 0 : -errno;
	if (!err) {
		r->skeleton->rodata->pid_ns = pid_namespace;
		err = bpf_map__reuse_fd(r->skeleton->maps.targets, targets_map);
	}
	err = err ? err : readers_bpf__load(r->skeleton);
	if (!err) {
		r->ring = ring_buffer__new(bpf_map__fd(r->skeleton->maps.readers_ring), on_reader, r, NULL);
		err = r->ring ? start_switch(r) : -errno;
	}
	if (!err)
		return r;
	readers_close(r);
	errno = -err;
	return NULL;
}

static void switch_programs(struct readers *r, unsigned on, uint64_t now_ns)
{
	const int err = hook_switch_set(&r->hooks, on);
	if (err) { /* what is known stays known */
		json_t *note = json_note(now_ns, "missing");
		json_put_text(note, "what", "serving threads of further connections");
		json_put_text(note, "why", strerror(-err));
		write_json_note(r->writer, note);
		helper_process_lost(&r->hooks, &switch_helper); /* with it what it had attached */
		r->gone = true;
		restarts_ended(&r->restarts, now_ns);
		on = HOOKS_NONE;
	}
	r->attached = on;
	r->since_ns = now_ns;
	r->reads = r->skeleton->bss->reads;
}

/* Whether the helper that switches is there, perhaps again. */
static bool has_switch(struct readers *r, uint64_t now_ns)
{
	if (r->gone && restarts_due(&r->restarts, now_ns)) {
		r->gone = start_switch(r) != 0;
		if (r->gone)
			restarts_failed(&r->restarts, now_ns);
	}
	return !r->gone;
}

void readers_tick(struct readers *r, struct ft_writer *w, bool wanted, uint64_t now_ns)
{
	if (!r || !has_switch(r, now_ns))
		return;
	r->writer = w;
	ring_buffer__consume(r->ring);
	if (!(r->attached & READS)) {
		if (wanted && now_ns >= r->off_until_ns)
			switch_programs(r, READS | CLOSES, now_ns);
		else if (!wanted && r->attached)
			switch_programs(r, HOOKS_NONE, now_ns);
		return;
	}
	if (now_ns - r->since_ns < ON_NS)
		return;
	const uint64_t off_ns = (r->skeleton->bss->reads - r->reads) * READ_NS * SHARE;
	const bool cheap = off_ns <= now_ns - r->since_ns;
	if (wanted && cheap) {
		r->since_ns = now_ns;
		r->reads = r->skeleton->bss->reads;
	}
	if (wanted && (cheap || off_ns < SHORTEST_OFF_NS))
		return;
	r->off_until_ns = now_ns + (off_ns < LONGEST_OFF_NS ? off_ns : LONGEST_OFF_NS);
	switch_programs(r, wanted ? CLOSES : HOOKS_NONE, now_ns);
}

void readers_begin_segment(struct readers *r)
{
	if (!r)
		return;
	r->skeleton->bss->epoch++;
	r->off_until_ns = 0;
}

struct bpf_object *readers_programs(const struct readers *r)
{
	return r ? r->skeleton->obj : NULL;
}

void readers_close(struct readers *r)
{
	if (!r)
		return;
	helper_process_end(&r->hooks, true);
	ring_buffer__free(r->ring);
	readers_bpf__destroy(r->skeleton);
	free(r);
}
