/* SPDX-License-Identifier: MIT */
/* Turns ring buffer events into records in order of arrival; readers of the recording interpret them. The
 * details of a span (a name and a kernel stack) repeat, because the same few waits happen again and again.
 * Each distinct detail is written once, as a detail block, and spans refer to its number. Their number is
 * limited: a service that opens a new file for everything would fill memory otherwise. */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/hash.h"
#include "loader/attach.h"
#include "loader/output.h"
#include "loader/samples.h"
#include "loader/system.h"
#include "recording/json_block.h"

enum {
	DETAILS_MAX = 20000,
	SLOW_ITERATION_NS = 1000000,
	PEER_BYTES = 64, /* "[" an address of IPv6 "]:65535 (udp)" */
};
_Static_assert((int)PEER_BYTES >= (int)FT_NAME_BYTES && sizeof(struct ft_peer) <= FT_NAME_BYTES &&
		   sizeof(struct ft_special_file) == FT_NAME_BYTES,
	       "a detail's name");

/* The key is the name, the number of frames and so many of the stack. */
struct span_detail {
	char name[PEER_BYTES];
	uint64_t frames;
	uint64_t stack[FT_STACK_FRAMES];
	uint32_t id;
	UT_hash_handle hh;
};

static size_t key_bytes(const struct span_detail *t)
{
	return offsetof(struct span_detail, stack) + t->frames * sizeof *t->stack;
}

static void write_detail(struct drain *d, const struct span_detail *t)
{
	json_t *stack = json_array();
	for (uint32_t i = 0; i < t->frames; i++) {
		char text[160];
		symbol_name(t->stack[i], text, sizeof text);
		json_array_append_new(stack, json_string(text));
	}
	write_json_definition(d->writer, FT_BLOCK_DETAIL,
			      json_pack("{s:i, s:o, s:o}", "id", (int)t->id, "name",
					json_text(t->name, strnlen(t->name, sizeof t->name)), "stack",
					stack));
}

/* Writes the note once. Later spans have a detail only if it is already known. */
static void note_full(struct drain *d)
{
	if (d->details_full)
		return;
	d->details_full = true;
	json_t *note = json_note(ft_now_ns(), "missing");
	json_put_text(note, "what",
		      "file names and kernel stacks of waits seen for the first time after this");
	json_put_text(note, "why", "there are more than 20,000 distinct ones");
	write_json_note(d->writer, note);
}

/* Returns the id of a detail, which is written if it is new. Returns 0 for an empty detail, beyond the limit,
 * or without memory. */
static uint32_t detail_id(struct drain *d, const struct span_detail *wanted)
{
	if (!wanted->name[0] && !wanted->frames)
		return 0;
	struct span_detail *t;
	HASH_FIND(hh, d->details, wanted, key_bytes(wanted), t);
	if (t)
		return t->id;
	if (d->detail_count == DETAILS_MAX) {
		note_full(d);
		return 0;
	}
	t = malloc(sizeof *t);
	if (!t)
		return 0;
	*t = *wanted;
	t->id = ++d->detail_count;
	HASH_ADD_KEYPTR(hh, d->details, t, key_bytes(t), t);
	if (!hash_added(t)) {
		free(t);
		return 0;
	}
	write_detail(d, t);
	return t->id;
}

/* Whether a CPU slice has been written as far as it is known, because overlapping waits see the same slices.
 * The slices of a CPU are in a ring, so the place in the ring identifies the slice. */
static bool slice_is_written(struct drain *d, uint32_t cpu, unsigned place, const struct ft_cpu_slice *slice)
{
	if (!d->slices_written)
		d->slices_written = calloc(FT_MAX_CPUS, sizeof *d->slices_written);
	if (!d->slices_written) /* writing it twice is harmless */
		return false;
	struct slice_extent *last = &d->slices_written[cpu % FT_MAX_CPUS][place];
	if (last->start_ns == slice->start_ns && last->end_ns >= slice->end_ns)
		return true;
	*last = (struct slice_extent){slice->start_ns, slice->end_ns};
	return false;
}

/* Writes a slice that ends at *until_ns, where the one before it ends then. */
static void write_slice(struct drain *d, uint32_t cpu, unsigned place, const struct cpu_slice *holder,
			uint64_t *until_ns)
{
	if (!holder->start_ns || holder->start_ns >= *until_ns)
		return;
	struct ft_cpu_slice slice = {
	    .start_ns = holder->start_ns, .end_ns = *until_ns, .tid = holder->tid, .cpu = (uint16_t)cpu};
	memcpy(slice.comm.raw, holder->comm, sizeof slice.comm.raw);
	if (!slice_is_written(d, cpu, place, &slice))
		ft_writer_record(d->writer, FT_BLOCK_CPU_SLICE, &slice);
	*until_ns = holder->start_ns;
}

/* Writes which threads held the CPU in [wake, end): the slices before the waiter's own, as far back as the
 * CPU's ring reaches. */
static void write_slices(struct drain *d, const struct ft_event_span_detail *e, uint64_t end_ns)
{
	uint64_t until_ns = end_ns;
	for (unsigned back = 1; back < FT_CPU_SLICES && until_ns > e->wake_ns; back++) {
		unsigned place = (e->newest - back) & (FT_CPU_SLICES - 1);
		write_slice(d, e->queue_cpu, place, &e->slices[place], &until_ns);
	}
}

/* Of a wait that is longer than that. */
static void drain_slices(struct drain *d, const struct ft_event_slices *e)
{
	uint64_t until_ns = e->until_ns;
	for (unsigned place = FT_CPU_SLICES; place-- > 0;)
		write_slice(d, e->cpu, place, &e->slices[place], &until_ns);
}

/* "127.0.0.1:53 (udp)", "unix socket of process 812"; "" for an unknown peer. */
static void peer_text(const struct ft_peer *peer, char *text, size_t bytes)
{
	char address[INET6_ADDRSTRLEN];
	text[0] = 0;
	if (peer->family == AF_UNIX && peer->pid)
		snprintf(text, bytes, "unix socket of process %u", peer->pid);
	else if ((peer->family == AF_INET || peer->family == AF_INET6) && peer->port &&
		 inet_ntop(peer->family, peer->address, address, sizeof address))
		snprintf(text, bytes, peer->family == AF_INET ? "%s:%u%s" : "[%s]:%u%s", address, peer->port,
			 peer->datagram ? " (udp)" : "");
}

/* "pipe:[4711]" as in /proc/PID/fd, "FIFO log.fifo", "terminal pts/3", "device kmsg"; the name of others; ""
 * without a file. */
static void special_file_text(const struct ft_special_file *file, char *text, size_t bytes)
{
	enum { CONSOLES = 4, TTYS = 5, PTYS = 136, MINOR_BITS = 20 };
	const unsigned major = (unsigned)(file->number >> MINOR_BITS),
		       minor = (unsigned)file->number & ((1u << MINOR_BITS) - 1);
	const int length = (int)strnlen(file->name, sizeof file->name);
	text[0] = 0;
	if (S_ISFIFO(file->mode) && !length)
		snprintf(text, bytes, "pipe:[%llu]", (unsigned long long)file->number);
	else if (S_ISCHR(file->mode) && major == PTYS)
		snprintf(text, bytes, "terminal pts/%u", minor);
	else if (S_ISCHR(file->mode) && (major == TTYS || major == CONSOLES))
		snprintf(text, bytes, "terminal %.*s", length, file->name);
	else if (file->mode)
		snprintf(text, bytes, "%s%.*s",
			 S_ISFIFO(file->mode)  ? "FIFO "
			 : S_ISCHR(file->mode) ? "device "
					       : "",
			 length, file->name);
}

static void add_detail(struct drain *d, const struct ft_event_span_detail *e, struct ft_span *s)
{
	struct span_detail t = {.frames = 0};
	if (e->span.owner == FT_PEER_WAIT) {
		struct ft_peer peer;
		memcpy(&peer, e->name, sizeof peer);
		peer_text(&peer, t.name, sizeof t.name);
	} else if (e->span.owner == FT_SYSCALL) {
		struct ft_special_file file;
		memcpy(&file, e->name, sizeof file);
		special_file_text(&file, t.name, sizeof t.name);
	} else if (e->span.owner != FT_PTRACED)
		memcpy(t.name, e->name, sizeof e->name);
	else if (e->name[0])
		suspensions_traced(&d->suspensions, d->writer, e);
	if (e->stack_bytes > 0) {
		t.frames = (uint64_t)e->stack_bytes / sizeof *t.stack;
		memcpy(t.stack, e->stack, (size_t)e->stack_bytes);
	}
	if (e->wake_ns) {
		s->queue_cpu = (uint16_t)(1 + e->queue_cpu);
		write_slices(d, e, s->start_ns + s->duration_ns);
	}
	s->detail = detail_id(d, &t);
}

/* The owner of a lock is four bytes of the process' memory. They are written only if they are the id of a
 * thread that may hold the lock. */
static uint64_t threads_of_lock(const struct drain *d, const struct ft_event_span *e)
{
	uint32_t owner = (uint32_t)e->arg[1];
	if (!owner || threads_are_mates(d->threads, owner, e->tid))
		return e->arg[1];
	return e->arg[1] ^ owner;
}

static struct ft_span span_of(const struct ft_event_span *e)
{
	return (struct ft_span){.start_ns = e->start_ns,
				.duration_ns = e->duration_ns,
				.on_cpu_ns = e->on_cpu_ns,
				.runnable_ns = e->runnable_ns,
				.blocked_ns = e->blocked_ns,
				.arg = {e->arg[0], e->arg[1]},
				.tid = e->tid,
				.cpu = e->cpu,
				.owner = e->owner,
				.depth = e->depth,
				.syscall = e->syscall,
				.flags = e->flags,
				.off_cpu = e->off_cpu};
}

static void drain_span(struct drain *d, const struct ft_event_span *e, size_t bytes)
{
	struct ft_span s = span_of(e);
	if (e->owner == FT_LOCK_WAIT && e->off_cpu)
		s.arg[1] = threads_of_lock(d, e);
	if (e->type == FT_EVENT_SPAN_DETAIL && bytes >= sizeof(struct ft_event_span_detail))
		add_detail(d, (const struct ft_event_span_detail *)e, &s);
	if (e->owner == FT_FROZEN)
		suspensions_frozen(&d->suspensions, d->writer, d->threads, e);
	if (e->owner == FT_ITERATION && e->duration_ns >= SLOW_ITERATION_NS)
		d->slow = true;
	ft_writer_record(d->writer, FT_BLOCK_SPAN, &s);
	d->spans++;
}

static void drain_open(struct drain *d, const struct ft_event_span *e)
{
	if (!grow(&d->open, &d->open_room, d->open_count, sizeof *d->open))
		return;
	d->open[d->open_count++] = span_of(e);
}

void drain_write_open(struct drain *d)
{
	for (size_t i = 0; i < d->open_count; i++)
		ft_writer_record(d->writer, FT_BLOCK_OPEN, &d->open[i]);
}

static void drain_tally(struct drain *d, const struct ft_event_tally *e)
{
	for (uint32_t owner = 0; owner < FT_OWNER_LIMIT; owner++) {
		const struct ft_tally_entry *n = &e->entry[owner];
		if (!n->count && !n->total_ns)
			continue;
		struct ft_tally t = {.start_ns = e->start_ns,
				     .end_ns = e->end_ns,
				     .total_ns = n->total_ns,
				     .max_ns = n->max_ns,
				     .count = n->count,
				     .tid = e->tid,
				     .owner = owner};
		ft_writer_record(d->writer, FT_BLOCK_TALLY, &t);
	}
	d->tallies++;
}

static void drain_io(struct drain *d, const struct ft_event_io *e)
{
	/* The kernel's numbers: 0 read, 1 write, 2 flush, 3 discard. */
	static const uint8_t kinds[] = {0, 1, 3, 2};
	struct ft_io io = {.start_ns = e->start_ns,
			   .duration_ns = e->duration_ns,
			   .sector = e->sector,
			   .bytes = e->bytes,
			   .dev = e->dev,
			   .tid = e->tid,
			   .write = e->op < sizeof kinds ? kinds[e->op] : 4,
			   .error = e->error};
	memcpy(io.comm.raw, e->comm, sizeof io.comm.raw);
	ft_writer_record(d->writer, FT_BLOCK_IO, &io);
	d->io++;
}

static void drain_writes(struct drain *d, const struct ft_event_writes *e)
{
	struct ft_writes w = {
	    .start_ns = e->start_ns, .end_ns = e->end_ns, .bytes = e->bytes, .dev = e->dev, .tgid = e->tgid};
	memcpy(w.comm.raw, e->comm, sizeof w.comm.raw);
	ft_writer_record(d->writer, FT_BLOCK_WRITES, &w);
}

static void drain_counters(struct drain *d, const struct ft_event_counters *e)
{
	const struct ft_counters c = {.t_ns = e->end_ns,
				      .duration_ns = (uint32_t)e->duration_ns,
				      .tid = e->tid,
				      .cycles = (uint32_t)e->value[FT_CYCLES],
				      .instructions = (uint32_t)e->value[FT_INSTRUCTIONS],
				      .cache_misses = (uint32_t)e->value[FT_CACHE_MISSES],
				      .cpu = e->cpu,
				      .flags =
					  (e->counted >> FT_CACHE_MISSES & 1 ? FT_COUNTED_MISSES : 0) |
					  (e->counters == FT_COUNTERS_SOFTWARE ? FT_COUNTED_SOFTWARE : 0)};
	/* More than fits is a second without a sample: samples were lost. */
	if ((e->duration_ns | e->value[FT_CYCLES] | e->value[FT_INSTRUCTIONS] | e->value[FT_CACHE_MISSES]) <=
	    UINT32_MAX)
		ft_writer_record(d->writer, FT_BLOCK_COUNTERS, &c);
}

static void drain_loop(struct drain *d, const struct ft_event_loop *e)
{
	struct ft_loop l = {.t_ns = e->t_ns, .tid = e->tid, .tgid = e->tgid, .epoll = e->epoll};
	threads_loop(d->threads, &l, d->writer);
	sockets_watch(d->sockets, (pid_t)e->tgid, e->epoll);
}

void drain_event(void *context, const void *event, size_t bytes)
{
	struct drain *d = context;
	switch (*(const uint32_t *)event) {
	case FT_EVENT_SPAN:
	case FT_EVENT_SPAN_DETAIL:
		drain_span(d, event, bytes);
		break;
	case FT_EVENT_OPEN:
		drain_open(d, event);
		break;
	case FT_EVENT_TALLY:
		drain_tally(d, event);
		break;
	case FT_EVENT_IO:
		drain_io(d, event);
		break;
	case FT_EVENT_SAMPLE_STACK:
		/* Others are of short iterations. */
		d->slow |= !((const struct ft_event_sample *)event)->brief;
		samples_add(d->samples, event, bytes);
		break;
	case FT_EVENT_SAMPLE:
		samples_add(d->samples, event, bytes);
		break;
	case FT_EVENT_COUNTERS:
		drain_counters(d, event);
		break;
	case FT_EVENT_WRITES:
		drain_writes(d, event);
		break;
	case FT_EVENT_SLICES:
		drain_slices(d, event);
		break;
	case FT_EVENT_PIPE:
		target_files_ask_pipe(d->files, event);
		break;
	case FT_EVENT_LOOP:
		drain_loop(d, event);
		break;
	case FT_EVENT_THREAD_BEGIN:
		threads_begin(d->threads, event, d->writer);
		break;
	case FT_EVENT_THREAD_END:
		threads_end(d->threads, event, d->writer);
		samples_thread_ended(d->samples, event);
		break;
	}
}

static void on_lost_end(void *context, const struct ft_event_thread *e)
{
	drain_event(context, e, sizeof *e);
}

void drain_sweep(struct drain *d)
{
	threads_sweep(d->threads, on_lost_end, d);
}

void drain_begin_segment(struct drain *d)
{
	hash_free_all(struct span_detail, d->details);
	d->detail_count = 0;
	d->details_full = false;
	free(d->slices_written); /* zeroing it would take memory for CPUs that are not there */
	d->slices_written = NULL;
	d->spans = d->tallies = d->io = 0;
	suspensions_begin_segment(&d->suspensions, d->writer);
}

void drain_free(struct drain *d)
{
	hash_free_all(struct span_detail, d->details);
	suspensions_free(&d->suspensions);
	free(d->slices_written);
	d->slices_written = NULL;
	free(d->open);
	d->open = NULL;
	d->open_count = d->open_room = 0;
}

/* Losses are counters that only grow. The growth between two reads becomes a record. */

/* What the slots after those of spans count. */
static const struct {
	uint32_t source, detail;
} drop_slots[FT_DROP_SLOTS] = {
    [FT_DROP_SLOT_TALLY] = {FT_DROP_RING, FT_DROP_TALLY},
    [FT_DROP_SLOT_IO] = {FT_DROP_RING, FT_DROP_BLOCK_IO},
    [FT_DROP_SLOT_IO_TABLE] = {FT_DROP_IO, 0},
    [FT_DROP_SLOT_THREAD_EVENT] = {FT_DROP_RING, FT_DROP_THREAD_EVENT},
    [FT_DROP_SLOT_THREAD_STATE] = {FT_DROP_THREAD, 0},
    [FT_DROP_SLOT_DEPTH] = {FT_DROP_STACK, 0},
    [FT_DROP_SLOT_SAMPLE] = {FT_DROP_RING, FT_DROP_CPU_SAMPLE},
    [FT_DROP_SLOT_WRITES] = {FT_DROP_RING, FT_DROP_WRITES},
    [FT_DROP_SLOT_UNWIND] = {FT_DROP_UNWIND, 0},
    [FT_DROP_SLOT_REQUESTS] = {FT_DROP_RING, FT_DROP_REQUESTS},
    [FT_DROP_SLOT_TCP] = {FT_DROP_RING, FT_DROP_TCP},
};

void losses_begin(struct losses *l, uint64_t now_ns)
{
	*l = (struct losses){.drops_ns = now_ns, .missed_ns = now_ns};
}

void losses_dropped(struct losses *l, struct ft_writer *w, const uint64_t drops[FT_DROP_SLOTS],
		    uint64_t now_ns)
{
	for (uint32_t i = 0; i < FT_DROP_SLOTS; i++) {
		if (drops[i] == l->drops[i])
			continue;
		bool span = i < FT_DROP_SLOT_TALLY;
		struct ft_drop d = {.start_ns = l->drops_ns,
				    .end_ns = now_ns,
				    .count = drops[i] - l->drops[i],
				    .source = span ? FT_DROP_RING : drop_slots[i].source,
				    .detail = span ? i - FT_DROP_SLOT_SPAN : drop_slots[i].detail};
		ft_writer_record(w, FT_BLOCK_DROP, &d);
		l->drops[i] = drops[i];
	}
	l->drops_ns = now_ns;
}

void losses_missed(struct losses *l, struct ft_writer *w, const struct program_cost *costs, size_t count,
		   uint64_t now_ns)
{
	for (uint32_t i = 0; i < count; i++) {
		if (costs[i].missed == l->missed[i])
			continue;
		struct ft_drop d = {.start_ns = l->missed_ns,
				    .end_ns = now_ns,
				    .count = costs[i].missed - l->missed[i],
				    .source = FT_DROP_MISSED,
				    .detail = i};
		ft_writer_record(w, FT_BLOCK_DROP, &d);
		l->missed[i] = costs[i].missed;
	}
	l->missed_ns = now_ns;
}

uint64_t losses_total(const struct losses *l)
{
	uint64_t total = 0;
	for (int i = 0; i < FT_DROP_SLOTS; i++)
		total += l->drops[i];
	for (int i = 0; i < PROGRAMS_MAX; i++)
		total += l->missed[i];
	return total;
}
