/* SPDX-License-Identifier: MIT */
/* The manifest of a request log: options, servers and host, because a reader of the log has no other source.
 * docs/reference/load.md lists its members. */
#include "manifest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "loadgen/cluster/proxy_ring.h"
#include "recording/recording.h"

static void describe_host(json_t *j)
{
	struct utsname u;
	char boot_id[40] = "", clock_id[FT_CLOCK_ID_BYTES];

	ft_boot_id(boot_id);
	ft_clock_id(clock_id);
	if (uname(&u) == 0) {
		json_put_text(j, "host", u.nodename);
		json_put_text(j, "kernel", u.release);
		json_put_text(j, "machine", u.machine);
	}
	json_put_count(j, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	json_put_text(j, "boot_id", boot_id);
	json_put_text(j, "clock_id", clock_id);
}

static void describe_behind(json_t *j, const struct options *o)
{
	json_t *all = json_put_array(j, "behind");
	char text[300];

	for (uint32_t i = 0; i < o->behind_count; i++) {
		json_t *one = json_put_object(all, NULL);

		proxy_ring_name(o, i, text, sizeof(text));
		json_put_text(one, "name", text);
		address_text(&o->behind[i], text, sizeof(text));
		json_put_text(one, "address", text);
	}
}

static void describe_facts(json_t *j, const struct options *o, const struct server_facts *s)
{
	json_put_text(j, "protocol", protocol_of(o->protocol)->name);
	if (protocol_of(o->protocol)->resp3)
		json_put_count(j, "resp", o->resp3 ? 3 : 2);
	if (o->meta_quiet)
		json_put_count(j, "meta_quiet", 1);
	json_put_text(j, "version", s->version);
	json_put_text(j, "mode", s->mode);
	json_put_text(j, "role", s->role);
	json_put_text(j, "os", s->os);
	json_put_text(j, "run_id", s->run_id);
	json_put_count(j, "pid", strtoull(s->process_id, NULL, 10));
	json_put_text(j, "tls", options_tls_word(o));
	json_put_count(j, "database", o->database);
	json_put_text(j, "user", o->user ? o->user : "");
}

/* Servers by the numbers that connections refer to, and in the same order their own information: of several
 * servers only one was asked. */
static void describe_servers(json_t *j, const struct options *o, const struct server *server,
			     const struct nodes *nodes)
{
	uint32_t count = nodes ? atomic_load(&nodes->count) : 1;
	char address[300], asked[300];
	json_t *list, *one;

	if (o->mode == MODE_INTRINSIC)
		snprintf(asked, sizeof(asked), "none");
	else
		address_text(nodes ? &server->address : &o->servers[0], asked, sizeof(asked));
	list = json_put_array(j, "servers");
	for (uint32_t i = 0; i < count; i++)
		json_put_text(list, NULL, nodes ? nodes_at(nodes, (uint16_t)i)->name : asked);
	if (o->behind_count)
		describe_behind(j, o);
	list = json_put_array(j, "server_info");
	for (uint32_t i = 0; i < count; i++) {
		if (nodes)
			address_text(&nodes_at(nodes, (uint16_t)i)->server.address, address, sizeof(address));
		one = json_put_object(list, NULL);
		if (!nodes || strcmp(address, asked) == 0)
			describe_facts(one, o, &server->facts);
	}
}

static void describe_load(json_t *j, const struct options *o)
{
	static const char *const deployments[] = {"single", "cluster", "primary", "ring"};
	static const char *const read_from[] = {"primary", "replica", "any", "nearest"};

	char values[128];

	json_put_text(j, "deployment", deployments[o->deployment]);
	json_put_text(j, "read_from", read_from[o->read_from]);
	json_put_count(j, "wait_replicas", o->wait_replicas);
	json_put_text(j, "arrival",
		      o->replay && o->replay->timed && o->rate == 0 ? "recorded"
		      : !options_open_loop(o)			    ? "closed"
		      : o->arrival == ARRIVAL_POISSON		    ? "poisson"
								    : "constant");
	json_put_number(j, "rate", o->rate);
	json_put_count(j, "connections", o->connections);
	json_put_count(j, "idle", o->idle);
	json_put_count(j, "threads", o->threads);
	json_put_count(j, "pipeline", o->pipeline);
	json_put_count(j, "batch", o->batch);
	json_put_truth(j, "busy_poll", o->busy_poll);
	json_put_truth(j, "arrival_times", o->arrival_times);
	json_put_count(j, "requests", options_requests(o));
	json_put_number(j, "duration_s", (double)o->duration_ns * 1e-9);
	json_put_number(j, "warmup_s", (double)o->warmup_ns * 1e-9);
	json_put_count(j, "keys", o->keys);
	json_put_count(j, "fill", o->fill);
	value_sizes_describe(&o->sizes, values, sizeof(values));
	json_put_text(j, "values", values);
	json_put_count(j, "value_bytes", o->sizes.kind == SIZE_FIXED ? o->sizes.low : 0);
	json_put_count(j, "sets", o->mixed ? o->sets : 0);
	json_put_count(j, "gets", o->mixed ? o->gets : 0);
	if (o->log_mode == LOG_SLOW)
		json_put_count(j, "log_slow_ns", o->slow_ns);
	if (o->replay)
		json_put_text(j, "replay", o->replay_path);
	json_put_count(j, "seed", o->seed);
}

/* Of each operation its command in upper case; "" if it has several. A replay's operations are commands. */
static void describe_commands(json_t *j, const struct workload *w)
{
	json_t *list = json_put_array(j, "commands");
	char name[OPERATION_NAME];

	for (uint32_t i = 0; i < w->operation_count; i++) {
		const struct operation *op = &w->operations[i];

		snprintf(name, sizeof(name), "%s", op->step_count > 1 ? "" : op->name);
		if (op->step_count == 1 && op->steps[0].command.word_count)
			command_name(&op->steps[0].command, name, sizeof(name));
		json_put_text(list, NULL, name);
	}
}

char *manifest_make(const struct options *o, const struct server *server, const struct nodes *nodes,
		    const struct workload *w, int argc, char **argv)
{
	json_t *j = json_object(), *list;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	json_put_text(j, "program", "forktail-load");
	json_put_text(j, "version", FORKTAIL_VERSION);
	json_put_text(j, "kind", "load");
	json_put_count(j, "start_ns", ft_now_ns());
	json_put_count(j, "start_unix_s", (uint64_t)now.tv_sec);
	json_put_count(j, "pid", (uint64_t)getpid());
	list = json_put_array(j, "argv");
	for (int i = 0; i < argc; i++)
		json_put_text(list, NULL, argv[i]);
	describe_host(j);
	list = json_put_array(j, "ops");
	for (uint32_t i = 0; i < w->operation_count; i++)
		json_put_text(list, NULL, w->operations[i].name);
	describe_commands(j, w);
	describe_servers(j, o, server, nodes);
	describe_load(j, o);
	return json_line(j);
}
