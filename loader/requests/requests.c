/* SPDX-License-Identifier: MIT */
/* The recorder's side: it loads and attaches the programs, and writes what the helper finds. It trusts the
 * helper no more than a stranger: what it sends is checked, and its number of connections is bounded. */
#include "loader/requests/requests.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bpf/events.h"
#include "bpf/request_events.h"
#include "loader/attach/support.h"
#include "loader/requests/commands.h"
#include "loader/requests/hook_switch.h"
#include "loader/requests/request_helper.h"
#include "loader/requests/scanner.h"
#include "loader/sockets/listeners.h"
#include "loader/system/cpu_time.h"
#include "loader/system/grow.h"
#include "loader/system/packets.h"
#include "loader/system/text.h"
#include "recording/json/json_block.h"
#include "requests.skel.h"

enum {
	SERVERS_MAX = 4096,
	PACKETS_AT_ONCE = 64, /* then other work of the recorder is due */
	STOP_MS = 2000,
	HIDDEN_MAX = 65536,
	/* Requests that take longer than a slice cannot be seen whole. */
	SLICE_MS = 2000,
	UNIX_SERVER = 0, /* in place of a port */
	/* Of an automatic sample. Each costs the server a microsecond of a CPU. */
	MOST_PER_SECOND = 10000,
	REDUCED_SAMPLE = 16,
};

#define BUDGET 0.01 /* of a CPU, for a flight recorder */

/* A client's address, and what is stored in its place. */
struct hidden_client {
	uint8_t address[16], shown[16];
};

/* A connection that the helper reported. */
struct seen_connection {
	struct ft_connection record;
	uint64_t segment; /* the last one that has it */
};

/* A listening address of a target. */
struct server {
	pid_t pid;
	uint16_t port; /* UNIX_SERVER: a path */
	char address[128];
};

struct requests {
	struct requests_wanted wanted;
	struct helper_process helper;
	struct requests_bpf *skeleton;
	struct ft_requests log;
	struct server *servers; /* only grows: connections refer to it by index */
	size_t server_count, server_room;
	struct seen_connection *connections; /* by number modulo FT_REQUESTS_SLOTS_MAX; id 0: none */
	uint64_t segment;		     /* from 1 on */
	void *hidden;			     /* tsearch tree of clients' addresses */
	size_t hidden_count;
	uint64_t counts[REQUEST_COUNTS];
	uint64_t requests, impossible;
	bool ended, stopping;
	bool proxy;		     /* one of the targets is a proxy */
	uint32_t sample;
	uint64_t second_ns, second_requests; /* when the current second began, and `requests` then */
	bool slices;			     /* the programs are attached for on_ms of each period */
	struct helper_process hooks;
	bool attached;
	uint32_t epoch; /* the programs' last one */
	uint32_t on_ms;
	uint64_t runs, run_ns;
};

struct requests *requests_start(const struct requests_wanted *wanted)
{
	struct requests *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->wanted = *wanted;
	r->helper = (struct helper_process){.pid = 0, .socket = -1};
	r->hooks = (struct helper_process){.pid = 0, .socket = -1};
	r->sample = wanted->sample ? wanted->sample : 1;
	r->slices = wanted->keep && !wanted->sample;
	r->attached = true; /* as the first manifest will say */
	r->on_ms = REQUESTS_PERIOD_MS;
	r->segment = 1;
	r->connections = calloc(FT_REQUESTS_SLOTS_MAX, sizeof *r->connections);
	int err = r->connections ? ft_requests_init(&r->log) : -ENOMEM;
	err = err ? err : request_helper_start(&r->helper);
	if (!err)
		return r;
	requests_close(r);
	errno = -err;
	return NULL;
}

/* Functions, if the kernel lacks the tracepoints. CONFIG_UNIX may be off. */
static void choose_programs(struct requests_bpf *s)
{
	enum { OLD_ARGUMENTS = 6 }; /* of tcp_recvmsg, until 5.18 */
	const bool by_functions = support_requests_by_functions();
	const bool old = support_function_arguments("tcp_recvmsg") == OLD_ARGUMENTS;
	struct bpf_program *prog;
	bpf_object__for_each_program(prog, s->obj)
	{
		const char *section = bpf_program__section_name(prog), *name = strchr(section, '/') + 1;
		bpf_program__set_autoload(prog, strncmp(section, "tp_btf/", 7) == 0
						    ? !by_functions
						    : by_functions && support_has_function(name));
	}
	bpf_program__set_autoload(s->progs.request_leaves, true);
	if (by_functions)
		bpf_program__set_autoload(old ? s->progs.request_read_tcp : s->progs.request_read_tcp_old,
					  false);
}

int requests_load(struct requests *r, int targets_map, uint32_t pid_namespace)
{
	struct requests_bpf *s = r->skeleton = requests_bpf__open();
	if (!s)
		return -errno;
	s->rodata->pid_ns = pid_namespace;
	s->bss->sample_mask = r->sample - 1;
	choose_programs(s);
	int err = bpf_map__reuse_fd(s->maps.targets, targets_map);
	err = err ? err : requests_bpf__load(s);
	return err ? err : request_helper_map(&r->helper, bpf_map__fd(s->maps.requests_ring));
}

static int start_switch(struct requests *r)
{
	int programs[HELPER_KEPT_MAX];
	size_t count = 0;
	struct bpf_program *prog;
	bpf_object__for_each_program(prog, r->skeleton->obj)
	{
		if (bpf_program__autoload(prog) && count < HELPER_KEPT_MAX)
			programs[count++] = bpf_program__fd(prog);
	}
	return hook_switch_start(&r->hooks, programs, count);
}

/* The programs record nothing before all are attached, and nothing from the time on that the first one is
 * detached. */
static int switch_hooks(struct requests *r, bool on)
{
	r->skeleton->bss->epoch = 0;
	int err = hook_switch_set(&r->hooks, on);
	if (on && !err)
		r->skeleton->bss->epoch = ++r->epoch;
	return err;
}

int requests_attach(struct requests *r)
{
	if (r->slices) {
		int err = start_switch(r);
		return err ? err : switch_hooks(r, true);
	}
	int err = requests_bpf__attach(r->skeleton);
	r->skeleton->bss->epoch = 1;
	return err;
}

static void detach(struct requests *r)
{
	r->skeleton->bss->epoch = 0;
	requests_bpf__detach(r->skeleton);
	helper_process_end(&r->hooks, true);
}

/* The programs' part of a CPU, from what the kernel measured in a short time. A run costs more than its own
 * time: the tracepoint's call. */
static double part_of_cpu(struct requests *r, uint64_t measured_ns)
{
	const uint64_t call_ns = 40, runs_before = r->runs, ns_before = r->run_ns;
	struct bpf_program *prog;
	r->runs = r->run_ns = 0;
	bpf_object__for_each_program(prog, r->skeleton->obj)
	{
		struct bpf_prog_info info = {};
		__u32 size = sizeof info;
		if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size))
			continue;
		r->runs += info.run_cnt;
		r->run_ns += info.run_time_ns;
	}
	return (double)(r->run_ns - ns_before + call_ns * (r->runs - runs_before)) / (double)measured_ns;
}

/* Without a helper the programs would only cost the servers time. It is not reaped: its CPU time counts. */
static void end_recording(struct requests *r, struct ft_writer *w)
{
	fputs("Requests of clients are no longer recorded; everything else is\n", stderr);
	r->ended = true;
	write_json_note(w, json_note(ft_now_ns(), "requests-ended"));
	detach(r);
}

void requests_measured(struct requests *r, uint64_t measured_ns)
{
	if (!r || !r->slices || !measured_ns)
		return;
	const double part = part_of_cpu(r, measured_ns);
	const double on_ms = part > BUDGET ? REQUESTS_PERIOD_MS * BUDGET / part : REQUESTS_PERIOD_MS;
	r->on_ms = on_ms > SLICE_MS ? (uint32_t)on_ms : SLICE_MS;
}

static void switch_programs(struct requests *r, struct ft_writer *w, bool on)
{
	const int err = switch_hooks(r, on);
	r->attached = on;
	if (err) {
		fprintf(stderr, "forktail record: --requests: cannot switch the programs: %s. ",
			strerror(-err));
		end_recording(r, w);
		return;
	}
	json_t *note = json_note(ft_now_ns(), "requests-slice");
	json_put_truth(note, "on", on);
	write_json_note(w, note);
}

/* Once only: percentiles need one sample, so the analysis leaves out what other connections had before. */
static void reduce_sample(struct requests *r, struct ft_writer *w, uint64_t now_ns)
{
	const uint64_t ns = now_ns - r->second_ns, count = r->requests - r->second_requests;
	if (ns < 1000000000 && r->second_ns)
		return;
	const bool busy = r->second_ns && count > ns / 1000000000 * MOST_PER_SECOND;
	r->second_ns = now_ns;
	r->second_requests = r->requests;
	if (!busy)
		return;
	r->sample = REDUCED_SAMPLE;
	r->skeleton->bss->sample_mask = REDUCED_SAMPLE - 1;
	json_t *note = json_note(now_ns, "requests-sample");
	json_put_count(note, "sample", REDUCED_SAMPLE);
	write_json_note(w, note);
}

void requests_tick(struct requests *r, struct ft_writer *w, uint32_t in_period_ms)
{
	if (!r || r->wanted.sample || r->ended)
		return;
	if (!r->slices && r->sample == 1)
		reduce_sample(r, w, ft_now_ns());
	if (r->slices && (in_period_ms < r->on_ms) != r->attached)
		switch_programs(r, w, !r->attached);
}

struct bpf_object *requests_programs(const struct requests *r)
{
	return r && r->skeleton ? r->skeleton->obj : NULL;
}

static void add_server(struct requests *r, pid_t pid, uint16_t port, const char *address)
{
	for (size_t i = 0; i < r->server_count; i++)
		if (r->servers[i].pid == pid && r->servers[i].port == port &&
		    strcmp(r->servers[i].address, address) == 0)
			return;
	if (r->server_count == SERVERS_MAX ||
	    !grow(&r->servers, &r->server_room, r->server_count, sizeof *r->servers))
		return;
	struct server *s = &r->servers[r->server_count++];
	*s = (struct server){.pid = pid, .port = port};
	snprintf(s->address, sizeof s->address, "%s", address);
}

static bool contains(const char *comm, const char *const *names)
{
	for (; *names; names++)
		if (strstr(comm, *names))
			return true;
	return false;
}

/* What a program of this name speaks. Others are recognized by what their clients send. */
static struct request_target target_named(pid_t pid, const char *comm)
{
	static const char *const redis[] = {"redis-server", "valkey-server", "keydb-server", NULL};
	static const char *const proxies[] = {"nutcracker", "haproxy", "envoy", "predixy", "proxy", NULL};
	struct request_target t = {.tgid = (uint32_t)pid, .protocol = SCAN_EITHER};
	if (contains(comm, redis))
		t.protocol = SCAN_REDIS;
	else if (strstr(comm, "memcached"))
		t.protocol = SCAN_MEMCACHED;
	else
		t.asynchronous = t.proxy = contains(comm, proxies);
	if (strstr(comm, "dragonfly")) {
		t.protocol = SCAN_REDIS;
		t.asynchronous = true;
	}
	return t;
}

void requests_target(struct requests *r, pid_t pid)
{
	if (!r)
		return;
	char comm[32];
	json_t *all = listen_addresses(pid), *one;
	size_t i;
	read_proc(pid, "comm", comm, sizeof comm);
	const struct request_target target = target_named(pid, comm);
	r->proxy |= target.proxy;
	request_helper_target(&r->helper, &target);
	json_array_foreach(all, i, one)
	{
		const char *text = json_string_value(one);
		int port = 0;
		char address[32];
		if (sscanf(text, "tcp:%d", &port) != 1) {
			add_server(r, pid, UNIX_SERVER, text);
			continue;
		}
		snprintf(address, sizeof address, "127.0.0.1:%d", port);
		add_server(r, pid, (uint16_t)port, address);
		r->skeleton->bss->served[port & 0xffff] = 1;
	}
	json_decref(all);
}

static void put_servers(const struct requests *r, json_t *object)
{
	json_t *servers = json_put_array(object, "servers"), *infos = json_put_array(object, "server_info");
	for (size_t i = 0; i < r->server_count; i++) {
		json_put_text(servers, NULL, r->servers[i].address);
		json_put_count(json_put_object(infos, NULL), "pid", (uint64_t)r->servers[i].pid);
	}
}

void requests_manifest(const struct requests *r, json_t *manifest)
{
	if (!r)
		return;
	json_t *about = json_put_object(manifest, "requests");
	json_put_text(about, "source", "kernel");
	json_put_count(about, "sample", r->sample);
	json_put_truth(about, "slices", r->slices);
	json_put_truth(about, "on", r->attached && !r->ended);
	json_t *ops = json_put_array(manifest, "ops");
	for (unsigned i = 0; i < COMMANDS; i++)
		json_put_text(ops, NULL, commands_name(i));
	put_servers(r, manifest);
	if (!r->proxy)
		return;
	json_t *behind = json_put_array(manifest, "behind");
	for (size_t i = 0; i < r->server_count && i < UINT8_MAX - 1; i++) {
		json_t *one = json_put_object(behind, NULL);
		json_put_text(one, "name", r->servers[i].address);
		json_put_text(one, "address", r->servers[i].address);
	}
}

void requests_note_servers(const struct requests *r, struct ft_writer *w)
{
	if (!r)
		return;
	json_t *note = json_note(ft_now_ns(), "request-servers");
	put_servers(r, note);
	write_json_note(w, note);
}

int requests_fd(const struct requests *r)
{
	return r && !r->ended ? r->helper.socket : -1;
}

/* Of several Unix sockets of a target the first: a connection does not say which one it came through.
 * UINT32_MAX: a server that is not known yet. */
static uint32_t server_of(const struct requests *r, uint32_t tgid, uint16_t port)
{
	for (size_t i = 0; i < r->server_count; i++)
		if ((uint32_t)r->servers[i].pid == tgid && r->servers[i].port == port)
			return (uint32_t)i;
	return UINT32_MAX;
}

static int compare_hidden(const void *a, const void *b)
{
	return memcmp(a, b, sizeof((struct hidden_client *)0)->address);
}

/* Replaces an address by random bytes, the same ones for the same address. Beyond a number of addresses, and
 * without memory, it becomes one that stands for the rest. */
static void hide_client(struct requests *r, uint8_t address[16])
{
	static const uint8_t rest[16] = {[15] = 1};
	struct hidden_client **found = tfind(address, &r->hidden, compare_hidden), *h = NULL;
	if (!found && r->hidden_count < HIDDEN_MAX && (h = malloc(sizeof *h))) {
		memcpy(h->address, address, sizeof h->address);
		if (getrandom(h->shown, sizeof h->shown, 0) == sizeof h->shown)
			found = tsearch(h, &r->hidden, compare_hidden);
		if (found)
			r->hidden_count++;
		else
			free(h);
	}
	memcpy(address, found ? (*found)->shown : rest, sizeof rest);
}

static struct seen_connection *place_of(const struct requests *r, uint32_t connection)
{
	return &r->connections[connection % FT_REQUESTS_SLOTS_MAX];
}

static void take_connection(struct requests *r, const struct request_message *m)
{
	struct ft_connection *c = &place_of(r, m->connection)->record;
	place_of(r, m->connection)->segment = 0;
	*c = (struct ft_connection){.opened_ns = m->opened.opened_ns,
				    .id = m->connection,
				    .local_port = m->opened.peer_port,
				    .server = server_of(r, m->opened.tgid, m->opened.local_port),
				    .inode = m->opened.peer_inode,
				    .client_pid = m->opened.peer_pid};
	memcpy(c->client_address, m->opened.peer_address, sizeof c->client_address);
	if (c->client_pid)
		read_proc((pid_t)c->client_pid, "comm", c->client_comm, sizeof c->client_comm);
	if (r->wanted.hash_clients && !c->inode) {
		hide_client(r, c->client_address);
		c->client_flags |= FT_CLIENT_HASHED;
	}
	if (!r->slices && !r->wanted.sample && m->opened.hash & (REDUCED_SAMPLE - 1))
		c->client_flags |= FT_CLIENT_UNSAMPLED;
}

/* A connection is written with its first request in a file, and when another thread reads it. */
static void note_connection(struct requests *r, struct ft_writer *w, const struct request_message *m)
{
	struct seen_connection *seen = place_of(r, m->connection);
	struct ft_connection *c = &seen->record;
	const bool another = c->reader != m->request.tid && c->reader_changes < FT_READER_CHANGES;
	if (c->id != m->connection || (!another && seen->segment == r->segment))
		return;
	if (another) {
		c->reader_changes += c->reader != 0;
		c->reader = m->request.tid;
		c->reader_ns = m->request.read_ns;
	}
	seen->segment = r->segment;
	ft_writer_record(w, FT_BLOCK_CONNECTION, c);
}

static void take_closed(struct requests *r, struct ft_writer *w, const struct request_message *m)
{
	struct ft_connection *c = &place_of(r, m->connection)->record;
	if (!c->id || c->id != m->connection || m->closed_ns < c->opened_ns)
		return;
	c->closed_ns = m->closed_ns;
	ft_writer_record(w, FT_BLOCK_CONNECTION, c);
	c->id = 0;
}

/* The server of a connection, as the log has it. */
static uint8_t behind_of(const struct requests *r, uint32_t connection)
{
	const struct ft_connection *c = &place_of(r, connection)->record;
	return connection && c->id == connection && c->server < r->server_count && c->server < UINT8_MAX - 1
		   ? (uint8_t)(c->server + 1)
		   : 0;
}

static void take_request(struct requests *r, struct ft_writer *w, const struct request_message *m)
{
	const uint64_t now_ns = ft_now_ns();
	if (m->request.arrival_ns > m->request.end_ns || m->request.end_ns > m->request.written_ns ||
	    m->request.written_ns > now_ns || m->request.arrival_ns > m->request.read_ns ||
	    m->request.read_ns > m->request.written_ns || m->request.command >= COMMANDS) {
		r->impossible++;
		return;
	}
	const struct ft_request q = {.intended_ns = m->request.arrival_ns,
				     .start_ns = m->request.arrival_ns,
				     .end_ns = m->request.end_ns,
				     .connection = m->connection,
				     .op = m->request.command,
				     .behind = behind_of(r, m->request.behind),
				     .status = FT_STATUS_OK};
	const struct ft_request_seen seen = {.read_ns = m->request.read_ns,
					     .written_ns = m->request.written_ns,
					     .request_bytes = m->request.request_bytes,
					     .answer_bytes = m->request.answer_bytes};
	note_connection(r, w, m);
	ft_requests_append_seen(&r->log, &q, &seen);
	r->requests++;
	if (ft_requests_full(&r->log))
		ft_requests_flush(&r->log, w);
}

static void take_message(struct requests *r, struct ft_writer *w, const struct request_message *m)
{
	switch (m->kind) {
	case MESSAGE_CONNECTION:
		take_connection(r, m);
		break;
	case MESSAGE_REQUEST:
		take_request(r, w, m);
		break;
	case MESSAGE_CLOSED:
		take_closed(r, w, m);
		break;
	case MESSAGE_COUNTS:
		memcpy(r->counts, m->counts, sizeof r->counts);
		break;
	}
}

void requests_take(struct requests *r, struct ft_writer *w)
{
	static struct request_message packet[REQUEST_PACKET];
	for (int n = 0; n < PACKETS_AT_ONCE && requests_fd(r) >= 0; n++) {
		int fd;
		ssize_t bytes = receive_packet(r->helper.socket, packet, sizeof packet, &fd, MSG_DONTWAIT);
		if (fd >= 0)
			close(fd);
		if (bytes == -EAGAIN)
			return;
		if (bytes <= 0 && !r->stopping) {
			fputs("forktail record: --requests: the helper process has ended. ", stderr);
			end_recording(r, w);
		}
		if (bytes <= 0) {
			r->ended = true;
			return;
		}
		for (size_t i = 0; i < (size_t)bytes / sizeof *packet; i++)
			take_message(r, w, &packet[i]);
	}
}

void requests_flush(struct requests *r, struct ft_writer *w)
{
	if (r)
		ft_requests_flush(&r->log, w);
}

static void note_counts(const struct requests *r, struct ft_writer *w)
{
	static const char *const names[REQUEST_COUNTS] = {
	    [COUNT_LOST] = "lost",	     [COUNT_BLOCKING] = "blocking",	 [COUNT_PUSHES] = "pushes",
	    [COUNT_NO_REPLY] = "no_reply",   [COUNT_EXCHANGES] = "exchanges",	 [COUNT_UNKNOWN] = "unknown",
	    [COUNT_UNARRIVED] = "unarrived", [COUNT_CONNECTIONS] = "connections"};
	json_t *note = json_note(ft_now_ns(), "requests");
	json_put_count(note, "requests", r->requests);
	for (int i = 0; i < REQUEST_COUNTS; i++)
		json_put_count(note, names[i], r->counts[i]);
	json_put_count(note, "dropped_events", requests_so_far(r).dropped_events);
	json_put_count(note, "impossible", r->impossible);
	/* Pieces of a stream that arrived faster than the server read; the kernel has the times of some. */
	json_put_count(note, "interpolated", r->skeleton->bss->request_counters[FT_REQUEST_MERGED]);
	json_put_count(note, "no_memory", r->skeleton->bss->request_counters[FT_REQUEST_NO_SLOT]);
	write_json_note(w, note);
}

void requests_begin_segment(struct requests *r)
{
	if (r)
		r->segment++;
}

void requests_stop(struct requests *r, struct ft_writer *w)
{
	if (!r)
		return;
	r->stopping = true;
	detach(r);
	request_helper_finish(&r->helper);
	const uint64_t until_ns = ft_now_ns() + STOP_MS * 1000000ull;
	while (requests_fd(r) >= 0 && ft_now_ns() < until_ns) {
		struct pollfd fd = {.fd = r->helper.socket, .events = POLLIN};
		poll(&fd, 1, STOP_MS);
		requests_take(r, w);
	}
	ft_requests_flush(&r->log, w);
	note_counts(r, w);
}

struct requests_figures requests_so_far(const struct requests *r)
{
	if (!r)
		return (struct requests_figures){.requests = 0};
	return (struct requests_figures){
	    .requests = r->requests,
	    .dropped_events = r->skeleton ? r->skeleton->bss->request_counters[FT_REQUEST_DROPPED] : 0,
	    .helper = r->helper.pid,
	    .helper_cpu_ns = r->helper.pid ? cpu_time_ns(r->helper.pid) : 0};
}

void requests_close(struct requests *r)
{
	if (!r)
		return;
	helper_process_end(&r->helper, false);
	helper_process_end(&r->hooks, true);
	requests_bpf__destroy(r->skeleton);
	ft_requests_free(&r->log);
	tdestroy(r->hidden, free);
	free(r->servers);
	free(r->connections);
	free(r);
}
