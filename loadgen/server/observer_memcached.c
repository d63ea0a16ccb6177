/* SPDX-License-Identifier: MIT */
/* memcached's own statistics: `stats` in the text protocol, "STAT name value" lines up to END. It has
 * counters but no log of slow commands. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/server.h"
#include "observer_view.h"
#include "recording/json_block.h"

enum { STATS_LIMIT = 1 << 18 }; /* a hundred lines are 3 KiB */

struct statistics {
	struct observer_series *to;
	bool announced; /* this connection's server has been recorded */
	char version[64], pid[24];
	size_t size;
	char text[STATS_LIMIT + 1];
};

static void *create(struct observer_series *to)
{
	struct statistics *v = calloc(1, sizeof(*v));

	if (v)
		v->to = to;
	return v;
}

/* No commands need to be sent first. */
static struct link *enter(void *view, struct server *s)
{
	struct statistics *v = view;
	char error[512];

	v->announced = false;
	return server_reach(s, 0, error, sizeof(error));
}

/* The complete answer: STAT lines up to END, or one other line. */
static bool is_whole(const struct statistics *v)
{
	if (v->size < 5 || strcmp(v->text + v->size - 2, "\r\n") != 0)
		return false;
	if (strncmp(v->text, "STAT ", 5) != 0)
		return true;
	return v->size >= 7 && strcmp(v->text + v->size - 7, "\r\nEND\r\n") == 0;
}

static int ask_stats(struct statistics *v, struct link *l)
{
	uint64_t deadline_ns = ft_now_ns() + l->patience_ns;
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

static void note_connection(struct statistics *v, uint64_t t_ns)
{
	json_t *n;

	if (v->announced)
		return;
	v->announced = true;
	n = json_note(t_ns, "observer-connected");
	json_put_text(n, "server", "memcached");
	json_put_text(n, "version", v->version);
	json_put_text(n, "process_id", v->pid);
	write_json_note(v->to->writer, n);
}

static int ask_round(void *view, struct link *l)
{
	struct statistics *v = view;
	uint64_t start_ns = ft_now_ns(), end_ns;
	json_t *n;
	int rc = ask_stats(v, l);
	char *rest;

	if (rc)
		return rc;
	end_ns = ft_now_ns();
	if (strncmp(v->text, "STAT ", 5) != 0) {
		v->text[strcspn(v->text, "\r\n")] = 0;
		note_refusal(v->to, "stats", v->text);
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
		if (observer_series_number(value, &number))
			observer_series_value(v->to, "memcached", name, "", number, end_ns);
	}
	note_connection(v, end_ns);
	if (end_ns - start_ns > OBSERVER_SLOW_NS) {
		n = json_note(start_ns, "observer-slow");
		json_put_count(n, "duration_ns", end_ns - start_ns);
		json_put_count(n, "stats_ns", end_ns - start_ns);
		write_json_note(v->to->writer, n);
	}
	return 0;
}

const struct observer_view memcached_view = {create, enter, ask_round, NULL, NULL, free};
