/* SPDX-License-Identifier: MIT */
/* The manifest of a request log. docs/forktail-load.md lists its members. */
#include "manifest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "behind.h"
#include "json.h"
#include "recording/recording.h"

static void describe_host(struct json *j)
{
	struct utsname u;
	char boot_id[40] = "";

	ft_boot_id(boot_id);
	if (uname(&u) == 0) {
		json_text(j, "host", u.nodename);
		json_text(j, "kernel", u.release);
		json_text(j, "machine", u.machine);
	}
	json_count(j, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	json_text(j, "boot_id", boot_id);
}

static void describe_behind(struct json *j, const struct options *o)
{
	char text[300];

	json_begin(j, "behind", '[');
	for (uint32_t i = 0; i < o->behind_count; i++) {
		json_begin(j, NULL, '{');
		behind_name(o, i, text, sizeof(text));
		json_text(j, "name", text);
		address_text(&o->behind[i], text, sizeof(text));
		json_text(j, "address", text);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void describe_facts(struct json *j, const struct options *o, const struct server_facts *s)
{
	json_begin(j, NULL, '{');
	json_text(j, "protocol", protocol_names[o->protocol]);
	if (o->protocol == PROTOCOL_REDIS)
		json_count(j, "resp", o->resp3 ? 3 : 2);
	if (o->meta_quiet)
		json_count(j, "meta_quiet", 1);
	json_text(j, "version", s->version);
	json_text(j, "mode", s->mode);
	json_text(j, "role", s->role);
	json_text(j, "os", s->os);
	json_text(j, "run_id", s->run_id);
	json_count(j, "pid", strtoull(s->process_id, NULL, 10));
	json_text(j, "tls", options_tls_word(o));
	json_count(j, "database", o->database);
	json_text(j, "user", o->user ? o->user : "");
	json_end(j, '}');
}

/* Servers by the numbers that connections have, and in the same order what each said of itself: of several
 * only one was asked. */
static void describe_servers(struct json *j, const struct options *o, const struct server *server,
			     const struct nodes *nodes)
{
	uint32_t count = nodes ? atomic_load(&nodes->count) : 1;
	char address[300], asked[300];

	if (o->mode == MODE_INTRINSIC)
		snprintf(asked, sizeof(asked), "none");
	else
		address_text(nodes ? &server->address : &o->servers[0], asked, sizeof(asked));
	json_begin(j, "servers", '[');
	for (uint32_t i = 0; i < count; i++)
		json_text(j, NULL, nodes ? nodes_at(nodes, (uint16_t)i)->name : asked);
	json_end(j, ']');
	if (o->behind_count)
		describe_behind(j, o);
	json_begin(j, "server_info", '[');
	for (uint32_t i = 0; i < count; i++) {
		if (nodes)
			address_text(&nodes_at(nodes, (uint16_t)i)->server.address, address, sizeof(address));
		if (!nodes || strcmp(address, asked) == 0) {
			describe_facts(j, o, &server->facts);
		} else {
			json_begin(j, NULL, '{');
			json_end(j, '}');
		}
	}
	json_end(j, ']');
}

static void describe_load(struct json *j, const struct options *o)
{
	static const char *const deployments[] = {"single", "cluster", "primary", "ring"};
	static const char *const read_from[] = {"primary", "replica", "any", "nearest"};

	char values[128];

	json_text(j, "deployment", deployments[o->deployment]);
	json_text(j, "read_from", read_from[o->read_from]);
	json_count(j, "wait_replicas", o->wait_replicas);
	json_text(j, "arrival",
		  o->replay && o->replay->timed && o->rate == 0 ? "recorded"
		  : !options_open_loop(o)			? "closed"
		  : o->arrival == ARRIVAL_POISSON		? "poisson"
								: "constant");
	json_number(j, "rate", o->rate);
	json_count(j, "connections", o->connections);
	json_count(j, "idle", o->idle);
	json_count(j, "threads", o->threads);
	json_count(j, "pipeline", o->pipeline);
	json_count(j, "batch", o->batch);
	json_count(j, "requests", o->requests);
	json_number(j, "duration_s", (double)o->duration_ns * 1e-9);
	json_number(j, "warmup_s", (double)o->warmup_ns * 1e-9);
	json_count(j, "keys", o->keys);
	json_count(j, "fill", o->fill);
	value_sizes_describe(&o->sizes, values, sizeof(values));
	json_text(j, "values", values);
	json_count(j, "value_bytes", o->sizes.kind == SIZE_FIXED ? o->sizes.low : 0);
	json_count(j, "sets", o->mixed ? o->sets : 0);
	json_count(j, "gets", o->mixed ? o->gets : 0);
	if (o->log_mode == LOG_SLOW)
		json_count(j, "log_slow_ns", o->slow_ns);
	if (o->replay)
		json_text(j, "replay", o->replay_path);
	json_count(j, "seed", o->seed);
}

char *manifest_make(const struct options *o, const struct server *server, const struct nodes *nodes,
		    const struct workload *w, int argc, char **argv)
{
	char *text = NULL;
	size_t size = 0;
	struct json j = {open_memstream(&text, &size), true};
	struct timespec now;

	if (!j.to)
		return NULL;
	clock_gettime(CLOCK_REALTIME, &now);
	json_begin(&j, NULL, '{');
	json_text(&j, "program", "forktail-load");
	json_text(&j, "version", FORKTAIL_VERSION);
	json_text(&j, "kind", "load");
	json_count(&j, "start_ns", ft_now_ns());
	json_count(&j, "start_unix_s", (uint64_t)now.tv_sec);
	json_count(&j, "pid", (uint64_t)getpid());
	json_begin(&j, "argv", '[');
	for (int i = 0; i < argc; i++)
		json_text(&j, NULL, argv[i]);
	json_end(&j, ']');
	describe_host(&j);
	json_begin(&j, "ops", '[');
	for (uint32_t i = 0; i < w->operation_count; i++)
		json_text(&j, NULL, w->operations[i].name);
	json_end(&j, ']');
	describe_servers(&j, o, server, nodes);
	describe_load(&j, o);
	json_end(&j, '}');
	if (fclose(j.to) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
