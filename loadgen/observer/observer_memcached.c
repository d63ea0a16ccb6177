/* SPDX-License-Identifier: MIT */
/* What memcached says of itself: `stats` in the text protocol, "STAT name value" lines up to END. It has no
 * log of slow commands; what it has is counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "observer_parts.h"

enum { STATS_LIMIT = 1 << 18 }; /* a hundred lines are 3 KiB */

struct memcached_view {
	struct observed *to;
	bool announced; /* this connection's server is in the recording */
	char version[64], pid[24];
	size_t size;
	char text[STATS_LIMIT + 1];
};

struct memcached_view *memcached_view_create(struct observed *to)
{
	struct memcached_view *v = calloc(1, sizeof(*v));

	if (v)
		v->to = to;
	return v;
}

void memcached_view_free(struct memcached_view *v)
{
	free(v);
}

void memcached_view_greet(struct memcached_view *v)
{
	v->announced = false;
}

/* The whole answer: STAT lines up to END, or one line that is something else. */
static bool is_whole(const struct memcached_view *v)
{
	if (v->size < 5 || strcmp(v->text + v->size - 2, "\r\n") != 0)
		return false;
	if (strncmp(v->text, "STAT ", 5) != 0)
		return true;
	return v->size >= 7 && strcmp(v->text + v->size - 7, "\r\nEND\r\n") == 0;
}

static int ask_stats(struct memcached_view *v, struct link *l)
{
	uint64_t deadline_ns = ft_now_ns() + OBSERVER_ANSWER_NS;
	int rc = link_send(l, "stats\r\n", 7, deadline_ns);

	v->size = 0;
	while (rc == 0) {
		ssize_t n = link_receive(l, v->text + v->size, STATS_LIMIT - v->size, deadline_ns);

		if (n < 0)
			return (int)n;
		v->size += (size_t)n;
		v->text[v->size] = 0;
		if (is_whole(v))
			return 0;
		if (v->size == STATS_LIMIT)
			return -EPROTO;
	}
	return rc;
}

static void note_connected(struct memcached_view *v, uint64_t t_ns)
{
	struct json_block n;

	if (v->announced || !note_begin(&n, t_ns, "observer-connected"))
		return;
	v->announced = true;
	json_text(&n.json, "server", "memcached");
	json_text(&n.json, "version", v->version);
	json_text(&n.json, "process_id", v->pid);
	note_end(&n, v->to->writer);
}

int memcached_view_round(struct memcached_view *v, struct link *l)
{
	uint64_t start_ns = ft_now_ns(), end_ns;
	struct json_block n;
	int rc = ask_stats(v, l);
	char *rest;

	if (rc)
		return rc;
	end_ns = ft_now_ns();
	if (strncmp(v->text, "STAT ", 5) != 0) {
		v->text[strcspn(v->text, "\r\n")] = 0;
		note_refused(v->to, "stats", v->text);
		return -EACCES;
	}
	v->version[0] = v->pid[0] = 0;
	for (char *line = strtok_r(v->text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
		char *name = line + 5, *value = strncmp(line, "STAT ", 5) == 0 ? strchr(name, ' ') : NULL;
		double number;

		if (!value)
			continue;
		*value++ = 0;
		if (strcmp(name, "version") == 0)
			snprintf(v->version, sizeof(v->version), "%s", value);
		else if (strcmp(name, "pid") == 0)
			snprintf(v->pid, sizeof(v->pid), "%s", value);
		if (observed_number(value, &number))
			observed_value(v->to, "memcached", name, "", number, end_ns);
	}
	note_connected(v, end_ns);
	if (end_ns - start_ns > OBSERVER_SLOW_NS && note_begin(&n, start_ns, "observer-slow")) {
		json_count(&n.json, "duration_ns", end_ns - start_ns);
		json_count(&n.json, "stats_ns", end_ns - start_ns);
		note_end(&n, v->to->writer);
	}
	return 0;
}
