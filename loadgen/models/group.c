/* SPDX-License-Identifier: MIT */
/* A group's connections are in one array and their rings in another, with sizes known from the start.
 * Descriptors that were passed in are closed even without memory. */
#include "group.h"

#include <stdlib.h>

#include "loadgen/engine/lifecycle.h"
#include "loadgen/net/tls.h"
#include "loadgen/workload/reply_buffer.h"
#include "recording/recording.h"

void group_free(struct group *g)
{
	for (uint32_t i = 0; g && g->connections && i < g->count; i++) {
		if (g->connections[i].fd >= 0)
			close_socket(&g->connections[i]);
		free(g->connections[i].backlog);
		reply_buffer_free(g->connections[i].reply);
	}
	if (!g)
		return;
	free(g->queue.ring);
	free(g->asks.ring);
	free(g->connections);
	free(g->rings);
	free(g);
}

struct group *group_connect(struct load_thread *t, const struct endpoint *endpoint, uint16_t node,
			    const int *fds, uint32_t first_id)
{
	uint32_t count = t->connection_count;
	struct group *g = calloc(1, sizeof(*g)), **grown;
	int rc = 0;

	grown = realloc(t->groups, (t->group_count + 1) * sizeof(*grown));
	if (grown)
		t->groups = grown;
	if (g) {
		TAILQ_INIT(&g->idle);
		TAILQ_INIT(&g->partial);
		g->endpoint = endpoint;
		g->node = node;
		g->connections = calloc(count, sizeof(*g->connections));
		g->rings = calloc((size_t)count * plan_ring_size(t->plan), sizeof(*g->rings));
	}
	if (!g || !grown || !g->connections || !g->rings) {
		for (uint32_t i = 0; fds && i < count; i++)
			tls_close(fds[i]);
		group_free(g);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		g->connections[i].fd = fds ? fds[i] : -1;
		g->connections[i].tls = fds ? tls_claim(fds[i]) : NULL;
	}
	g->count = count;
	t->groups[t->group_count++] = g;
	t->alive += count;
	if (t->model->on_group)
		t->model->on_group(t, g);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = connection_init(&g->connections[i], t, g, first_id + i,
				     g->rings + (size_t)i * plan_ring_size(t->plan));
	for (uint32_t i = 0; i < count && rc == 0 && !fds; i++)
		connection_begin(&g->connections[i], ft_now_ns());
	return rc ? NULL : g; /* the incomplete group is freed with the thread */
}
