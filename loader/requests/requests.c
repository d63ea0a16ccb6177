/* SPDX-License-Identifier: MIT */
/* The recorder's side: it loads and attaches the programs, and writes what the helper finds. It trusts the
 * helper no more than a stranger: what it sends is checked, and its number of connections is bounded. */
#include "loader/requests/requests.h"

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
#include "loader/requests/commands.h"
#include "loader/requests/request_helper.h"
#include "loader/requests/request_hooks.h"
#include "loader/requests/scanner.h"
#include "loader/system/cpu_time.h"
#include "loader/system/grow.h"
#include "loader/system/packets.h"
#include "loader/system/restarts.h"
#include "loader/system/text.h"
#include "recording/json/json_block.h"

enum {
	SERVERS_MAX = 4096,
	TARGETS_MAX = 1024,   /* as the helper has */
	PACKETS_AT_ONCE = 64, /* then other work of the recorder is due */
	STOP_MS = 2000,
	HIDDEN_MAX = 65536,
	UNIX_SERVER = 0, /* in place of a port */
	/* Of an automatic sample. Each costs the server a microsecond of a CPU. */
	MOST_PER_SECOND = 10000,
	REDUCED_SAMPLE = 16,
};

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
	bool proxy;
	char address[128];
};

struct requests {
	struct requests_wanted wanted;
	struct helper_process helper;
	struct request_hooks hooks;
	struct ft_requests log;
	struct server *servers; /* only grows: connections refer to it by index */
	size_t server_count, server_room;
	struct seen_connection *connections; /* by number modulo FT_REQUESTS_SLOTS_MAX; id 0: none */
	uint64_t segment;		     /* from 1 on */
	void *hidden;			     /* tsearch tree of clients' addresses */
	size_t hidden_count;
	uint64_t counts[REQUEST_COUNTS];
	uint64_t requests, impossible;
	struct request_target *targets; /* for a helper that is started later; the oldest is replaced */
	size_t target_count, target_room;
	struct restarts restarts;
	bool ended, stopping;
	uint64_t helper_cpu_ns;		     /* of those that ended */
	bool helperless;		     /* until another one is started */
	bool proxy;			     /* one of the targets is a proxy */
	uint64_t second_ns, second_requests; /* when the current second began, and `requests` then */
};

struct requests *requests_start(const struct requests_wanted *wanted)
{
	struct requests *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->wanted = *wanted;
	r->helper = (struct helper_process){.pid = 0, .socket = -1};
	request_hooks_init(&r->hooks, wanted->sample ? wanted->sample : 1,
			   wanted->keep && !wanted->sample ? REQUESTS_PERIOD_MS : 0);
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

int requests_load(struct requests *r, int targets_map, uint32_t pid_namespace)
{
	int err = request_hooks_load(&r->hooks, targets_map, pid_namespace);
	return err ? err : request_helper_map(&r->helper, request_hooks_ring(&r->hooks));
}

int requests_attach(struct requests *r)
{
	return request_hooks_attach(&r->hooks);
}

/* Without a helper the programs would only cost the servers time. It is not reaped: its CPU time counts. */
static void end_recording(struct requests *r, struct ft_writer *w)
{
	fputs("Requests of clients are no longer recorded; everything else is\n", stderr);
	r->ended = true;
	write_json_note(w, json_note(ft_now_ns(), "requests-ended"));
	request_hooks_detach(&r->hooks);
}

void requests_measured(struct requests *r, uint64_t measured_ns)
{
	if (r)
		request_hooks_measured(&r->hooks, measured_ns);
}

static void switch_programs(struct requests *r, struct ft_writer *w, bool on)
{
	const int err = request_hooks_switch(&r->hooks, on);
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

/* Until the next one is there, the programs would only cost the servers time. */
static void lose_helper(struct requests *r, struct ft_writer *w)
{
	fputs("forktail record: --requests: the helper process that finds requests ended. It is started "
	      "again\n",
	      stderr);
	r->helper_cpu_ns += cpu_time_ns(r->helper.pid);
	helper_process_lost(&r->helper, &requests_helper);
	r->helperless = true;
	restarts_ended(&r->restarts, ft_now_ns());
	if (r->hooks.on)
		switch_programs(r, w, false);
}

/* It knows no connection: the programs describe each again, with its next event. */
static void replace_helper(struct requests *r, struct ft_writer *w)
{
	const uint64_t now_ns = ft_now_ns();
	if (!restarts_due(&r->restarts, now_ns))
		return;
	if (request_helper_start(&r->helper) ||
	    request_helper_map(&r->helper, request_hooks_ring(&r->hooks))) {
		helper_process_end(&r->helper, false);
		restarts_failed(&r->restarts, now_ns);
		return;
	}
	for (size_t i = 0; i < r->target_count && i < TARGETS_MAX; i++)
		request_helper_target(&r->helper, &r->targets[i]);
	r->helperless = false;
	if (!r->hooks.slices)
		switch_programs(r, w, true);
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
	request_hooks_reduce(&r->hooks, REDUCED_SAMPLE);
	json_t *note = json_note(now_ns, "requests-sample");
	json_put_count(note, "sample", REDUCED_SAMPLE);
	write_json_note(w, note);
}

void requests_tick(struct requests *r, struct ft_writer *w, uint32_t in_period_ms)
{
	if (!r || r->ended)
		return;
	if (r->helperless)
		replace_helper(r, w);
	if (r->helperless || r->wanted.sample)
		return;
	const struct request_hooks *h = &r->hooks;
	if (!h->slices && h->sample == 1)
		reduce_sample(r, w, ft_now_ns());
	if (h->slices && (in_period_ms < h->on_ms) != h->on)
		switch_programs(r, w, !h->on);
}

struct bpf_object *requests_programs(const struct requests *r)
{
	return r ? request_hooks_programs(&r->hooks) : NULL;
}

static void add_server(struct requests *r, pid_t pid, bool proxy, uint16_t port, const char *address)
{
	for (size_t i = 0; i < r->server_count; i++)
		if (r->servers[i].pid == pid && r->servers[i].port == port &&
		    strcmp(r->servers[i].address, address) == 0)
			return;
	if (r->server_count == SERVERS_MAX ||
	    !grow(&r->servers, &r->server_room, r->server_count, sizeof *r->servers))
		return;
	struct server *s = &r->servers[r->server_count++];
	*s = (struct server){.pid = pid, .port = port, .proxy = proxy};
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

static void put_servers(const struct requests *r, json_t *object)
{
	json_t *servers = json_put_array(object, "servers"), *infos = json_put_array(object, "server_info");
	for (size_t i = 0; i < r->server_count; i++) {
		json_put_text(servers, NULL, r->servers[i].address);
		json_t *info = json_put_object(infos, NULL);
		json_put_count(info, "pid", (uint64_t)r->servers[i].pid);
		json_put_truth(info, "proxy", r->servers[i].proxy);
	}
}

/* The manifest has those that existed before. */
static void note_servers(const struct requests *r, struct ft_writer *w)
{
	json_t *note = json_note(ft_now_ns(), "request-servers");
	put_servers(r, note);
	write_json_note(w, note);
}

static void keep_target(struct requests *r, const struct request_target *target)
{
	for (size_t i = 0; i < r->target_count && i < TARGETS_MAX; i++) {
		if (r->targets[i].tgid != target->tgid)
			continue;
		r->targets[i] = *target;
		return;
	}
	if (r->target_count >= TARGETS_MAX ||
	    grow(&r->targets, &r->target_room, r->target_count, sizeof *r->targets))
		r->targets[r->target_count++ % TARGETS_MAX] = *target;
}

void requests_target(struct requests *r, struct ft_writer *w, const json_t *described)
{
	if (!r || !described)
		return;
	const size_t before = r->server_count;
	const pid_t pid = (pid_t)json_integer_value(json_object_get(described, "pid"));
	const json_t *all = json_object_get(described, "listens"), *one;
	size_t i;
	const struct request_target target =
	    target_named(pid, json_string_value(json_object_get(described, "comm")));
	r->proxy |= target.proxy;
	keep_target(r, &target);
	if (!r->helperless)
		request_helper_target(&r->helper, &target);
	json_array_foreach(all, i, one)
	{
		const char *text = json_string_value(one);
		int port = 0;
		char address[32];
		if (sscanf(text, "tcp:%d", &port) != 1) {
			add_server(r, pid, target.proxy, UNIX_SERVER, text);
			continue;
		}
		snprintf(address, sizeof address, "127.0.0.1:%d", port);
		add_server(r, pid, target.proxy, (uint16_t)port, address);
		request_hooks_serve(&r->hooks, (uint16_t)port);
	}
	if (w && r->server_count > before)
		note_servers(r, w);
}

void requests_manifest(const struct requests *r, json_t *manifest)
{
	if (!r)
		return;
	json_t *about = json_put_object(manifest, "requests");
	json_put_text(about, "source", "kernel");
	json_put_count(about, "sample", r->hooks.sample);
	json_put_truth(about, "slices", r->hooks.slices);
	json_put_truth(about, "on", r->hooks.on);
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

int requests_fd(const struct requests *r)
{
	return r && !r->ended && !r->helperless ? r->helper.socket : -1;
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
		read_proc((pid_t)c->client_pid, "comm", c->client_comm.raw, sizeof c->client_comm.raw);
	if (r->wanted.hash_clients && !c->inode) {
		hide_client(r, c->client_address);
		c->client_flags |= FT_CLIENT_HASHED;
	}
	if (!r->hooks.slices && !r->wanted.sample && m->opened.hash & (REDUCED_SAMPLE - 1))
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
	    m->request.read_ns > m->request.written_ns || m->request.command >= COMMANDS ||
	    m->request.status > FT_STATUS_ERROR_REPLY) {
		r->impossible++;
		return;
	}
	const struct ft_request q = {.intended_ns = m->request.arrival_ns,
				     .start_ns = m->request.arrival_ns,
				     .end_ns = m->request.end_ns,
				     .connection = m->connection,
				     .op = m->request.command,
				     .behind = behind_of(r, m->request.behind),
				     .status = m->request.status};
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

static void take_transaction(struct ft_writer *w, const struct request_message *m)
{
	if (m->transaction.read_ns > ft_now_ns() || m->transaction.commands < TRANSACTION_LARGE)
		return;
	json_t *note = json_note(m->transaction.read_ns, "transaction");
	json_put_count(note, "tid", m->transaction.tid);
	json_put_count(note, "commands", m->transaction.commands);
	write_json_note(w, note);
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
	case MESSAGE_TRANSACTION:
		take_transaction(w, m);
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
		if (bytes <= 0) {
			if (r->stopping)
				r->ended = true;
			else
				lose_helper(r, w);
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
	static const char *const names[REQUEST_COUNTS] = {[COUNT_LOST] = "lost",
							  [COUNT_BLOCKING] = "blocking",
							  [COUNT_PUSHES] = "pushes",
							  [COUNT_NO_REPLY] = "no_reply",
							  [COUNT_EXCHANGES] = "exchanges",
							  [COUNT_UNKNOWN] = "unknown",
							  [COUNT_UNARRIVED] = "unarrived",
							  [COUNT_NO_OUTCOME] = "no_outcome",
							  [COUNT_CONNECTIONS] = "connections"};
	json_t *note = json_note(ft_now_ns(), "requests");
	json_put_count(note, "requests", r->requests);
	for (int i = 0; i < REQUEST_COUNTS; i++)
		json_put_count(note, names[i], r->counts[i]);
	json_put_count(note, "dropped_events", requests_so_far(r).dropped_events);
	json_put_count(note, "impossible", r->impossible);
	/* Pieces of a stream that arrived faster than the server read; the kernel has the times of some. */
	json_put_count(note, "interpolated", request_hooks_count(&r->hooks, FT_REQUEST_MERGED));
	json_put_count(note, "no_memory", request_hooks_count(&r->hooks, FT_REQUEST_NO_SLOT));
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
	request_hooks_detach(&r->hooks);
	if (!r->helperless)
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
	return (struct requests_figures){.requests = r->requests,
					 .dropped_events = request_hooks_count(&r->hooks, FT_REQUEST_DROPPED),
					 .helper = r->helper.pid,
					 .helper_cpu_ns = r->helper_cpu_ns +
							  (r->helper.pid ? cpu_time_ns(r->helper.pid) : 0)};
}

void requests_close(struct requests *r)
{
	if (!r)
		return;
	helper_process_end(&r->helper, false);
	request_hooks_close(&r->hooks);
	ft_requests_free(&r->log);
	tdestroy(r->hidden, free);
	free(r->servers);
	free(r->targets);
	free(r->connections);
	free(r);
}
