/* SPDX-License-Identifier: MIT */
/* Prints a recording for tests in Python (recording.py), in file order, as the library's own reader returns
 * it: a line of JSON with the layout of each kind of record and the numbers of names; then per block a line
 * {"kind", "count", "bytes"} and its bytes, records as they are in memory; at the end {"damage"}. A file that
 * cannot be read: {"error"} alone. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "recording/owners.h"
#include "recording/recording.h"

struct seen_request {
	uint64_t intended_ns, start_ns, end_ns, arrival_ns, read_ns, written_ns;
	uint32_t connection, request_bytes, answer_bytes;
	uint8_t op, status, behind;
};

struct field {
	const char *name;
	size_t offset, bytes, count;
	char type; /* NumPy's: u, i, f; S: text */
};

#define TYPE(x) _Generic((x), int16_t : 'i', double : 'f', default : 'u')
#define F(record, name)                                                                                      \
	{                                                                                                    \
#name, offsetof(struct record, name), sizeof(((struct record *)0)->name), 1,                 \
		    TYPE(((struct record *)0)->name)                                                         \
	}
#define TEXT(record, name)                                                                                   \
	{                                                                                                    \
#name, offsetof(struct record, name), sizeof(((struct record *)0)->name), 1, 'S'             \
	}

static const struct field thread[] = {F(ft_thread, start_ns), F(ft_thread, end_ns),	 F(ft_thread, tid),
				      F(ft_thread, tgid),     F(ft_thread, parent_tgid), F(ft_thread, flags),
				      TEXT(ft_thread, comm),  TEXT(ft_thread, role),	 {0}};
static const struct field span[] = {
    F(ft_span, start_ns),   F(ft_span, duration_ns),
    F(ft_span, on_cpu_ns),  F(ft_span, runnable_ns),
    F(ft_span, blocked_ns), {"arg", offsetof(struct ft_span, arg), sizeof(uint64_t), 2, 'u'},
    F(ft_span, tid),	    F(ft_span, cpu),
    F(ft_span, owner),	    F(ft_span, depth),
    F(ft_span, detail),	    F(ft_span, syscall),
    F(ft_span, flags),	    F(ft_span, off_cpu),
    F(ft_span, queue_cpu),  {0}};
static const struct field tally[] = {
    F(ft_tally, start_ns), F(ft_tally, end_ns), F(ft_tally, total_ns), F(ft_tally, max_ns),
    F(ft_tally, count),	   F(ft_tally, tid),	F(ft_tally, owner),    {0}};
static const struct field io[] = {
    F(ft_io, start_ns), F(ft_io, duration_ns), F(ft_io, sector), F(ft_io, bytes),   F(ft_io, dev),
    F(ft_io, tid),	F(ft_io, write),       F(ft_io, error),	 TEXT(ft_io, comm), {0}};
static const struct field writes[] = {F(ft_writes, start_ns),
				      F(ft_writes, end_ns),
				      F(ft_writes, bytes),
				      F(ft_writes, dev),
				      F(ft_writes, tgid),
				      TEXT(ft_writes, comm),
				      {0}};
static const struct field slice[] = {F(ft_cpu_slice, start_ns), F(ft_cpu_slice, end_ns),
				     F(ft_cpu_slice, tid),	F(ft_cpu_slice, cpu),
				     TEXT(ft_cpu_slice, comm),	{0}};
static const struct field loop[] = {
    F(ft_loop, t_ns), F(ft_loop, tid), F(ft_loop, tgid), F(ft_loop, epoll), {0}};
static const struct field socket[] = {F(ft_socket, before_ns),	F(ft_socket, seen_ns),
				      F(ft_socket, inode),	F(ft_socket, peer_inode),
				      F(ft_socket, tgid),	F(ft_socket, epoll),
				      F(ft_socket, local_port), F(ft_socket, peer_port),
				      F(ft_socket, reader),	{0}};
static const struct field drop[] = {F(ft_drop, start_ns), F(ft_drop, end_ns), F(ft_drop, count),
				    F(ft_drop, source),	  F(ft_drop, detail), {0}};
static const struct field sample[] = {F(ft_sample, t_ns), F(ft_sample, value), F(ft_sample, series), {0}};
static const struct field cpu_sample[] = {F(ft_cpu_sample, t_ns),    F(ft_cpu_sample, tid),
					  F(ft_cpu_sample, stack),   F(ft_cpu_sample, cpu),
					  F(ft_cpu_sample, owner),   F(ft_cpu_sample, flags),
					  F(ft_cpu_sample, syscall), F(ft_cpu_sample, file),
					  F(ft_cpu_sample, period),  {0}};
static const struct field counters[] = {
    F(ft_counters, t_ns),   F(ft_counters, duration_ns),  F(ft_counters, tid),
    F(ft_counters, cycles), F(ft_counters, instructions), F(ft_counters, cache_misses),
    F(ft_counters, cpu),    F(ft_counters, flags),	  {0}};
static const struct field load_tcp[] = {F(ft_load_tcp, t_ns),
					F(ft_load_tcp, before_ns),
					F(ft_load_tcp, connection),
					F(ft_load_tcp, retransmitted),
					F(ft_load_tcp, receiver_limited_us),
					F(ft_load_tcp, sender_limited_us),
					F(ft_load_tcp, rtt_us),
					F(ft_load_tcp, unacked),
					F(ft_load_tcp, unsent_bytes),
					{0}};
static const struct field instant[] = {F(ft_clock, monotonic_ns),
				       F(ft_clock, realtime_ns),
				       F(ft_clock, boottime_ns),
				       F(ft_clock, error_ns),
				       {0}};
static const struct field probe[] = {F(ft_probe, sent_ns),
				     F(ft_probe, peer_received_ns),
				     F(ft_probe, peer_sent_ns),
				     F(ft_probe, received_ns),
				     F(ft_probe, tried),
				     F(ft_probe, answered),
				     {0}};
static const struct field connection[] = {
    F(ft_connection, opened_ns),
    F(ft_connection, closed_ns),
    F(ft_connection, id),
    F(ft_connection, thread),
    F(ft_connection, local_port),
    F(ft_connection, server),
    F(ft_connection, inode),
    {"client_address", offsetof(struct ft_connection, client_address), 1, 16, 'u'},
    F(ft_connection, client_pid),
    F(ft_connection, client_flags),
    TEXT(ft_connection, client_comm),
    F(ft_connection, reader_ns),
    F(ft_connection, reader),
    F(ft_connection, reader_changes),
    TEXT(ft_connection, client_name),
    TEXT(ft_connection, client_library),
    {0}};
static const struct field request[] = {F(seen_request, intended_ns),
				       F(seen_request, start_ns),
				       F(seen_request, end_ns),
				       F(seen_request, arrival_ns),
				       F(seen_request, read_ns),
				       F(seen_request, written_ns),
				       F(seen_request, connection),
				       F(seen_request, request_bytes),
				       F(seen_request, answer_bytes),
				       F(seen_request, op),
				       F(seen_request, status),
				       F(seen_request, behind),
				       {0}};

static const struct kind {
	const char *name;
	uint32_t block;
	size_t bytes; /* of a record; 0: JSON */
	const struct field *fields;
} kinds[] = {
    {"manifest", FT_BLOCK_MANIFEST, 0, NULL},
    {"thread", FT_BLOCK_THREAD, sizeof(struct ft_thread), thread},
    {"span", FT_BLOCK_SPAN, sizeof(struct ft_span), span},
    {"open", FT_BLOCK_OPEN, sizeof(struct ft_span), span},
    {"tally", FT_BLOCK_TALLY, sizeof(struct ft_tally), tally},
    {"detail", FT_BLOCK_DETAIL, 0, NULL},
    {"io", FT_BLOCK_IO, sizeof(struct ft_io), io},
    {"series", FT_BLOCK_SERIES, 0, NULL},
    {"sample", FT_BLOCK_SAMPLE, sizeof(struct ft_sample), sample},
    {"drop", FT_BLOCK_DROP, sizeof(struct ft_drop), drop},
    {"cost", FT_BLOCK_COST, 0, NULL},
    {"clock", FT_BLOCK_CLOCK, sizeof(struct ft_clock), instant},
    {"note", FT_BLOCK_NOTE, 0, NULL},
    {"connection", FT_BLOCK_CONNECTION, sizeof(struct ft_connection), connection},
    {"request", FT_BLOCK_REQUEST, sizeof(struct seen_request), request},
    {"histogram", FT_BLOCK_HISTOGRAM, 0, NULL},
    {"summary", FT_BLOCK_SUMMARY, 0, NULL},
    {"stack", FT_BLOCK_STACK, 0, NULL},
    {"cpu_sample", FT_BLOCK_CPU_SAMPLE, sizeof(struct ft_cpu_sample), cpu_sample},
    {"writes", FT_BLOCK_WRITES, sizeof(struct ft_writes), writes},
    {"slice", FT_BLOCK_CPU_SLICE, sizeof(struct ft_cpu_slice), slice},
    {"loop", FT_BLOCK_LOOP, sizeof(struct ft_loop), loop},
    {"socket", FT_BLOCK_SOCKET, sizeof(struct ft_socket), socket},
    {"probe", FT_BLOCK_PROBE, sizeof(struct ft_probe), probe},
    {"counters", FT_BLOCK_COUNTERS, sizeof(struct ft_counters), counters},
    {"load_tcp", FT_BLOCK_LOAD_TCP, sizeof(struct ft_load_tcp), load_tcp},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void print_layout(void)
{
	printf("{\"layout\":{");
	const char *comma = "";
	for (size_t k = 0; k < KINDS; k++) {
		if (!kinds[k].fields)
			continue;
		printf("%s\"%s\":{\"bytes\":%zu,\"fields\":[", comma, kinds[k].name, kinds[k].bytes);
		comma = "";
		for (const struct field *f = kinds[k].fields; f->name; f++, comma = ",")
			printf("%s[\"%s\",\"%c%zu\",%zu,%zu]", comma, f->name, f->type, f->bytes, f->count,
			       f->offset);
		printf("]}");
		comma = ",";
	}
	printf("}}\n");
}

static const struct kind *kind_of(uint32_t block)
{
	for (size_t k = 0; k < KINDS; k++)
		if (kinds[k].block == block)
			return &kinds[k];
	return NULL;
}

static void print_head(const struct kind *kind, uint32_t count, size_t bytes)
{
	printf("{\"kind\":\"%s\",\"count\":%u,\"bytes\":%zu}\n", kind->name, count, bytes);
}

static int print_requests(const struct ft_block *block, const struct kind *kind)
{
	static struct {
		uint64_t intended[FT_REQUEST_BLOCK], start[FT_REQUEST_BLOCK], end[FT_REQUEST_BLOCK],
		    arrival[FT_REQUEST_BLOCK], read[FT_REQUEST_BLOCK], written[FT_REQUEST_BLOCK];
		uint32_t connection[FT_REQUEST_BLOCK], request_bytes[FT_REQUEST_BLOCK],
		    answer_bytes[FT_REQUEST_BLOCK];
		uint8_t op[FT_REQUEST_BLOCK], status[FT_REQUEST_BLOCK], behind[FT_REQUEST_BLOCK];
	} c;
	const struct ft_request_columns columns = {c.intended, c.start,	  c.end,	   c.connection,
						   c.op,       c.status,  c.behind,	   c.arrival,
						   c.read,     c.written, c.request_bytes, c.answer_bytes};
	const int n = ft_requests_decode(block->payload, block->bytes, block->count, &columns);
	if (n < 0)
		return -1;
	print_head(kind, (uint32_t)n, (size_t)n * sizeof(struct seen_request));
	for (int i = 0; i < n; i++) {
		const struct seen_request q = {c.intended[i],	c.start[i],	    c.end[i],
					       c.arrival[i],	c.read[i],	    c.written[i],
					       c.connection[i], c.request_bytes[i], c.answer_bytes[i],
					       c.op[i],		c.status[i],	    c.behind[i]};
		fwrite(&q, sizeof q, 1, stdout);
	}
	return 0;
}

static void print_records(const struct ft_block *block, const struct kind *kind)
{
	print_head(kind, block->count, block->count * kind->bytes);
	for (uint32_t i = 0; i < block->count; i++) {
		_Alignas(8) char record[256];
		ft_block_record(block, i, record, kind->bytes);
		fwrite(record, kind->bytes, 1, stdout);
	}
}

int main(int argc, char **argv)
{
	struct ft_reader *reader = NULL;
	char error[512];
	if (argc != 2) {
		fprintf(stderr, "usage: %s RECORDING\n", argv[0]);
		return 2;
	}
	print_layout();
	if (ft_reader_open(&reader, argv[1], error, sizeof error)) {
		printf("{\"error\":\"");
		for (const char *c = error; *c; c++)
			printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
		printf("\"}\n");
		return 0;
	}
	const char *undecoded = "";
	struct ft_block block;
	while (ft_reader_next(reader, &block) == 1) {
		const struct kind *kind = kind_of(block.kind);
		if (!kind)
			continue;
		if (kind->block == FT_BLOCK_REQUEST) {
			if (print_requests(&block, kind))
				undecoded = "a request block cannot be decoded";
		} else if (kind->fields) {
			print_records(&block, kind);
		} else {
			print_head(kind, 1, block.bytes);
			fwrite(block.payload, 1, block.bytes, stdout);
		}
	}
	struct ft_damage d;
	ft_reader_damage(reader, &d);
	printf("{\"damage\":{\"bytes_skipped\":%llu,\"gaps\":%u,\"blocks_missing\":%u,\"no_trailer\":%s,"
	       "\"bomb\":%s},"
	       "\"error\":\"%s\"}\n",
	       (unsigned long long)d.bytes_skipped, d.gaps, d.blocks_missing, d.no_trailer ? "true" : "false",
	       d.bomb ? "true" : "false", undecoded);
	ft_reader_close(reader);
	return ferror(stdout) ? 3 : 0;
}
