/* SPDX-License-Identifier: MIT */
/* Requests of clients in the recorder: the programs and when they are attached, the helper process and its
 * answers, and which thread reads a connection. */
#include "loader/requests.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bpf/events.h"
#include "bpf/programs.h"
#include "bpf/reader_events.h"
#include "bpf/request_events.h"
#include "common/hash.h"
#include "loader/attach.h"
#include "loader/system.h"
#include "readers.skel.h"
#include "recording/json_block.h"
#include "requests.skel.h"

/* The kernel programs of requests (bpf/requests.bpf.c): which of them this kernel needs, when they are
 * attached, and how many connections they follow. */

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
static void request_hooks_init(struct request_hooks *h, uint32_t sample, uint32_t period_ms);
/* Loads them, with the map of targets of another object. Negative errno: programs_log() says why. */
static int request_hooks_load(struct request_hooks *h, int targets_map, uint32_t pid_namespace);
/* The ring of their events. */
static int request_hooks_ring(const struct request_hooks *h);
/* A target listens on this TCP port. */
static void request_hooks_serve(struct request_hooks *h, uint16_t port);
static int request_hooks_attach(struct request_hooks *h);
/* With slices: attaches or detaches all. Returns 0 or a negative errno. */
static int request_hooks_switch(struct request_hooks *h, bool on);
/* With slices: chooses on_ms so that they take 1 % of a CPU. A window of the kernel's run-time statistics,
 * which was so long, has ended. */
static void request_hooks_measured(struct request_hooks *h, uint64_t measured_ns);
/* From now on one in so many connections, a power of two, of those that are followed. */
static void request_hooks_reduce(struct request_hooks *h, uint32_t sample);
static uint64_t request_hooks_count(const struct request_hooks *h, enum ft_request_counter counter);
static void request_hooks_detach(struct request_hooks *h);
static void request_hooks_close(struct request_hooks *h);

/* The recorder's side: it loads and attaches the programs, and writes what the helper finds. It trusts the
 * helper no more than a stranger: what it sends is checked, and its number of connections is bounded. */

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

/* A client's address, or the begin of a key, and what is stored in its place. */
struct hidden {
	uint8_t what[SCAN_TEXT], shown[16];
	UT_hash_handle hh;
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
	struct seen_connection *connections;	     /* by number modulo FT_REQUESTS_SLOTS_MAX; id 0: none */
	uint64_t segment;			     /* from 1 on */
	struct hidden *hidden_clients, *hidden_keys; /* hash tables */
	uint64_t counts[REQUEST_COUNTS];
	uint64_t requests, impossible;
	uint64_t keys_unhidden;		/* left out, because there were too many */
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
	return err ? err : request_helper_map(&r->helper, request_hooks_ring(&r->hooks), r->wanted.key_bytes);
}

int requests_attach(struct requests *r)
{
	return request_hooks_attach(&r->hooks);
}

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
	    request_helper_map(&r->helper, request_hooks_ring(&r->hooks), r->wanted.key_bytes)) {
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

struct counted_programs requests_programs(const struct requests *r)
{
	static const char *const names[] = {FT_REQUEST_PROGRAMS(FT_NAME_OF)};
	const struct requests_bpf *s = r ? r->hooks.skeleton : NULL;
	return s ? (struct counted_programs){.object = s->obj,
					     .runs = s->bss->program_runs[0],
					     .row = FT_REQUEST_PROGRAM_ROW,
					     .count = FT_REQUEST_PROGRAM_COUNT,
					     .names = names,
					     .skips_lose_nothing = "client_"}
		 : (struct counted_programs){.object = NULL};
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

/* Random bytes in place of others, the same ones for the same. False: there are too many, or no memory. */
static bool hide(struct hidden **all, const uint8_t what[SCAN_TEXT], uint8_t shown[16])
{
	struct hidden *h;
	HASH_FIND(hh, *all, what, sizeof h->what, h);
	if (!h && HASH_COUNT(*all) < HIDDEN_MAX && (h = calloc(1, sizeof *h))) {
		memcpy(h->what, what, sizeof h->what);
		if (getrandom(h->shown, sizeof h->shown, 0) == sizeof h->shown)
			HASH_ADD(hh, *all, what, sizeof h->what, h);
		if (!hash_added(h)) {
			free(h);
			h = NULL;
		}
	}
	if (h)
		memcpy(shown, h->shown, sizeof h->shown);
	return h;
}

static void hide_client(struct requests *r, uint8_t address[16])
{
	static const uint8_t rest[16] = {[15] = 1};
	uint8_t what[SCAN_TEXT] = {0};
	memcpy(what, address, 16);
	if (!hide(&r->hidden_clients, what, address))
		memcpy(address, rest, sizeof rest);
}

static struct seen_connection *place_of(const struct requests *r, uint32_t connection)
{
	return &r->connections[connection % FT_REQUESTS_SLOTS_MAX];
}

static void take_connection(struct requests *r, const struct request_message *m)
{
	struct ft_connection *c = &place_of(r, m->connection)->record;
	const struct ft_connection before = *c;
	place_of(r, m->connection)->segment = 0;
	*c = (struct ft_connection){.opened_ns = m->opened.opened_ns,
				    .id = m->connection,
				    .local_port = m->opened.peer_port,
				    .server = server_of(r, m->opened.tgid, m->opened.local_port),
				    .inode = m->opened.peer_inode,
				    .client_pid = m->opened.peer_pid};
	memcpy(c->client_address, m->opened.peer_address, sizeof c->client_address);
	if (before.id == c->id) { /* another helper found it again */
		memcpy(c->client_name, before.client_name, sizeof c->client_name);
		memcpy(c->client_library, before.client_library, sizeof c->client_library);
	}
	if (r->wanted.hash_clients && !c->inode) {
		hide_client(r, c->client_address);
		c->client_flags |= FT_CLIENT_HASHED;
		c->client_pid = 0;
	}
	if (c->client_pid && m->opened.peer_comm[0])
		memcpy(c->client_comm.raw, m->opened.peer_comm, sizeof c->client_comm.raw - 1);
	else if (c->client_pid)
		read_proc((pid_t)c->client_pid, "comm", c->client_comm.raw, sizeof c->client_comm.raw);
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

/* What the client calls itself. */
static void take_name(struct requests *r, struct ft_writer *w, const struct request_message *m)
{
	const struct seen_connection *seen = place_of(r, m->connection);
	struct ft_connection *c = &place_of(r, m->connection)->record;
	char *to = m->name.as == TEXT_NAME ? c->client_name : c->client_library;
	_Static_assert(sizeof c->client_name == SCAN_TEXT && sizeof c->client_library == SCAN_TEXT, "text");
	if (c->id != m->connection || r->wanted.hash_clients)
		return;
	memcpy(to, m->name.text, SCAN_TEXT - 1);
	if (seen->segment == r->segment) /* else it is written with its next request */
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

static void take_arguments(struct ft_writer *w, const struct request_message *m)
{
	if (m->arguments.read_ns > ft_now_ns() || m->arguments.count < ARGUMENTS_MANY)
		return;
	json_t *note = json_note(m->arguments.read_ns, "many-arguments");
	json_put_count(note, "tid", m->arguments.tid);
	json_put_text(note, "command", commands_name(m->arguments.command));
	json_put_count(note, "arguments", m->arguments.count);
	if (m->arguments.estimated)
		json_object_set_new(note, "estimated", json_true());
	write_json_note(w, note);
}

static void take_key(struct requests *r, struct ft_writer *w, const struct request_message *m)
{
	const size_t bytes = m->key.bytes;
	if (m->key.read_ns > ft_now_ns() || bytes > r->wanted.key_bytes) {
		r->impossible++;
		return;
	}
	uint8_t what[SCAN_TEXT] = {0}, shown[16];
	memcpy(what, m->key.text, bytes);
	if (r->wanted.hash_keys && !hide(&r->hidden_keys, what, shown)) {
		r->keys_unhidden++;
		return;
	}
	json_t *note = json_note(m->key.read_ns, "key");
	json_put_count(note, "tid", m->key.tid);
	if (r->wanted.hash_keys) {
		char text[32];
		uint64_t number;
		memcpy(&number, shown, sizeof number);
		snprintf(text, sizeof text, "key-%016llx", (unsigned long long)number);
		json_put_text(note, "key", text);
	} else {
		json_put(note, "key", json_text((const char *)m->key.text, bytes));
		if (bytes == r->wanted.key_bytes) /* it may be longer */
			json_put_truth(note, "begin", true);
	}
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
	case MESSAGE_ARGUMENTS:
		take_arguments(w, m);
		break;
	case MESSAGE_NAME:
		take_name(r, w, m);
		break;
	case MESSAGE_KEY:
		take_key(r, w, m);
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
							  [COUNT_CONNECTIONS] = "connections",
							  [COUNT_KEYS_LEFT_OUT] = "keys_left_out"};
	json_t *note = json_note(ft_now_ns(), "requests");
	json_put_count(note, "requests", r->requests);
	for (int i = 0; i < REQUEST_COUNTS; i++)
		json_put_count(note, names[i],
			       r->counts[i] + (i == COUNT_KEYS_LEFT_OUT ? r->keys_unhidden : 0));
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
	hash_free_all(struct hidden, r->hidden_clients);
	hash_free_all(struct hidden, r->hidden_keys);
	free(r->servers);
	free(r->targets);
	free(r->connections);
	free(r);
}

/* A connection that is never read while the program of reads is attached is not known then, so busy
 * connections are known first, and those are the ones whose requests need it. Short ones are known when they
 * are closed. */

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

static int start_reader_switch(struct readers *r)
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
		err = r->ring ? start_reader_switch(r) : -errno;
	}
	if (!err)
		return r;
	readers_close(r);
	errno = -err;
	return NULL;
}

static void switch_reader_programs(struct readers *r, unsigned on, uint64_t now_ns)
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
		r->gone = start_reader_switch(r) != 0;
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
			switch_reader_programs(r, READS | CLOSES, now_ns);
		else if (!wanted && r->attached)
			switch_reader_programs(r, HOOKS_NONE, now_ns);
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
	switch_reader_programs(r, wanted ? CLOSES : HOOKS_NONE, now_ns);
}

void readers_begin_segment(struct readers *r)
{
	if (!r)
		return;
	r->skeleton->bss->epoch++;
	r->off_until_ns = 0;
}

struct counted_programs readers_programs(const struct readers *r)
{
	static const char *const names[] = {FT_READER_PROGRAMS(FT_NAME_OF)};
	return r ? (struct counted_programs){.object = r->skeleton->obj,
					     .runs = r->skeleton->bss->program_runs[0],
					     .row = FT_READER_PROGRAM_ROW,
					     .count = FT_READER_PROGRAM_COUNT,
					     .names = names,
					     .skips_lose_nothing = ""}
		 : (struct counted_programs){.object = NULL};
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

/* Attaching takes milliseconds and rights that the recorder gives up, so a helper process does it. */

/* Requests that take longer than a slice cannot be seen whole. */
enum { SLICE_MS = 2000 };

#define BUDGET 0.01 /* of a CPU, for a flight recorder */

static void request_hooks_init(struct request_hooks *h, uint32_t sample, uint32_t period_ms)
{
	*h = (struct request_hooks){.switcher = {.pid = 0, .socket = -1},
				    .sample = sample,
				    .slices = period_ms != 0,
				    .on = true, /* as the first manifest will say */
				    .on_ms = period_ms,
				    .period_ms = period_ms};
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
	bpf_program__set_autoload(s->progs.client_connects, true);
	bpf_program__set_autoload(s->progs.find_tcp_clients, true);
	if (by_functions)
		bpf_program__set_autoload(old ? s->progs.request_read_tcp : s->progs.request_read_tcp_old,
					  false);
}

static int request_hooks_load(struct request_hooks *h, int targets_map, uint32_t pid_namespace)
{
	struct requests_bpf *s = h->skeleton = requests_bpf__open();
	if (!s)
		return -errno;
	s->rodata->pid_ns = pid_namespace;
	s->bss->sample_mask = h->sample - 1;
	choose_programs(s);
	int err = bpf_map__reuse_fd(s->maps.targets, targets_map);
	return err ? err : requests_bpf__load(s);
}

static int request_hooks_ring(const struct request_hooks *h)
{
	return bpf_map__fd(h->skeleton->maps.requests_ring);
}

/* Which processes have connections to targets that the programs did not see begin. If the kernel refuses,
 * these clients stay without a process. */
static void find_clients(const struct request_hooks *h)
{
	iterator_run(iterator_again(h->skeleton->links.find_tcp_clients));
}

static void request_hooks_serve(struct request_hooks *h, uint16_t port)
{
	if (h->skeleton->bss->served[port])
		return;
	h->skeleton->bss->served[port] = 1;
	find_clients(h);
}

static int start_switch(struct request_hooks *h)
{
	int programs[HELPER_KEPT_MAX];
	size_t count = 0;
	struct bpf_program *prog;
	bpf_object__for_each_program(prog, h->skeleton->obj)
	{
		if (bpf_program__autoload(prog) && prog != h->skeleton->progs.client_connects &&
		    prog != h->skeleton->progs.find_tcp_clients && count < HELPER_KEPT_MAX)
			programs[count++] = bpf_program__fd(prog);
	}
	return hook_switch_start(&h->switcher, programs, count);
}

/* The programs record nothing before all are attached, and nothing from the time on that the first one is
 * detached. */
static int request_hooks_switch(struct request_hooks *h, bool on)
{
	h->skeleton->bss->epoch = 0;
	int err = h->slices ? hook_switch_set(&h->switcher, on ? HOOKS_ALL : HOOKS_NONE) : 0;
	if (err == -EPIPE) { /* the helper has ended, and with it what it had attached */
		helper_process_lost(&h->switcher, &switch_helper);
		err = start_switch(h);
		err = err ? err : hook_switch_set(&h->switcher, on ? HOOKS_ALL : HOOKS_NONE);
	}
	if (on && !err)
		h->skeleton->bss->epoch = ++h->epoch;
	h->on = on && !err;
	return err;
}

/* Connections begin between slices too, so this program is always attached. */
static int attach_clients(struct request_hooks *h)
{
	struct requests_bpf *s = h->skeleton;
	s->links.client_connects = bpf_program__attach(s->progs.client_connects);
	if (!s->links.client_connects)
		return -errno;
	s->links.find_tcp_clients = bpf_program__attach_iter(s->progs.find_tcp_clients, NULL);
	find_clients(h);
	return 0;
}

static int request_hooks_attach(struct request_hooks *h)
{
	int err = attach_clients(h);
	err = err ? err : h->slices ? start_switch(h) : requests_bpf__attach(h->skeleton);
	return err ? err : request_hooks_switch(h, true);
}

static void request_hooks_detach(struct request_hooks *h)
{
	h->skeleton->bss->epoch = 0;
	h->on = false;
	requests_bpf__detach(h->skeleton);
	helper_process_end(&h->switcher, true);
}

/* The programs' part of a CPU, from what the kernel measured in a short time. A run costs more than its own
 * time: the tracepoint's call. */
static double part_of_cpu(struct request_hooks *h, uint64_t measured_ns)
{
	const uint64_t call_ns = 40, runs_before = h->runs, ns_before = h->run_ns;
	struct bpf_program *prog;
	h->runs = h->run_ns = 0;
	bpf_object__for_each_program(prog, h->skeleton->obj)
	{
		struct bpf_prog_info info = {};
		__u32 size = sizeof info;
		if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size))
			continue;
		h->runs += info.run_cnt;
		h->run_ns += info.run_time_ns;
	}
	return (double)(h->run_ns - ns_before + call_ns * (h->runs - runs_before)) / (double)measured_ns;
}

static void request_hooks_measured(struct request_hooks *h, uint64_t measured_ns)
{
	if (!h->slices || !measured_ns)
		return;
	const double part = part_of_cpu(h, measured_ns);
	if (!h->on) /* a window between two slices says nothing of them */
		return;
	const double on_ms = part > BUDGET ? h->period_ms * BUDGET / part : h->period_ms;
	h->on_ms = on_ms > SLICE_MS ? (uint32_t)on_ms : SLICE_MS;
}

static void request_hooks_reduce(struct request_hooks *h, uint32_t sample)
{
	h->sample = sample;
	h->skeleton->bss->sample_mask = sample - 1;
}

static uint64_t request_hooks_count(const struct request_hooks *h, enum ft_request_counter counter)
{
	return h->skeleton ? h->skeleton->bss->request_counters[counter] : 0;
}

static void request_hooks_close(struct request_hooks *h)
{
	helper_process_end(&h->switcher, true);
	requests_bpf__destroy(h->skeleton);
}
