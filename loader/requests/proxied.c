/* SPDX-License-Identifier: MIT */
/* Joins a request at a proxy with the one that the proxy sends to a server.
 *
 * Two queues in the order of their ends. Requests at servers wait for a second, and are found by their hash
 * in the meantime; requests at proxies wait a fifth of that, until the server's part is certainly known. */
#include <stdlib.h>
#include <string.h>

#include "loader/requests.h"

enum {
	WAITING = 1 << 16, /* requests per queue; a power of two */
	BUCKETS = 1 << 14, /* of servers' requests by hash; a power of two */
	TRIES = 64, /* requests with the same hash that other clients sent to the server are passed over */
};
#define AT_SERVER_NS 1000000000ull
#define AT_PROXY_NS 200000000ull

struct waiting {
	struct request_message message;
	uint64_t hash, since_ns;
	bool joined;
	uint32_t next; /* in the bucket: 1 + place, towards the newer */
};

struct queue {
	struct waiting *all; /* a ring */
	uint32_t first, next;
	uint64_t wait_ns;
};

struct bucket {
	uint32_t oldest, newest; /* 1 + place; 0: none */
};

struct proxied {
	request_handler handler;
	void *context;
	struct queue servers, proxies;
	struct bucket *buckets;
};

struct proxied *proxied_open(request_handler handler, void *context)
{
	struct proxied *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->handler = handler;
	p->context = context;
	p->servers = (struct queue){.all = calloc(WAITING, sizeof *p->servers.all), .wait_ns = AT_SERVER_NS};
	p->proxies = (struct queue){.all = calloc(WAITING, sizeof *p->proxies.all), .wait_ns = AT_PROXY_NS};
	p->buckets = calloc(BUCKETS, sizeof *p->buckets);
	if (p->servers.all && p->proxies.all && p->buckets)
		return p;
	proxied_close(p);
	return NULL;
}

void proxied_close(struct proxied *p)
{
	if (!p)
		return;
	free(p->servers.all);
	free(p->proxies.all);
	free(p->buckets);
	free(p);
}

static struct waiting *at(const struct queue *q, uint32_t number)
{
	return &q->all[number & (WAITING - 1)];
}

static struct bucket *bucket_of(struct proxied *p, uint64_t hash)
{
	return &p->buckets[hash & (BUCKETS - 1)];
}

/* Removes a request from its bucket. `before`: the place of the one before it there, or 0. */
static void leave_bucket(struct proxied *p, struct waiting *w, uint32_t before)
{
	struct bucket *b = bucket_of(p, w->hash);
	if (before)
		p->servers.all[before - 1].next = w->next;
	else
		b->oldest = w->next;
	if (!w->next)
		b->newest = before;
}

/* Passes the oldest message of a server on. A request is the oldest one of its bucket, unless it was joined.
 */
static void pass_server(struct proxied *p)
{
	struct waiting *w = at(&p->servers, p->servers.first++);
	if (w->joined)
		return;
	if (w->hash)
		leave_bucket(p, w, 0);
	p->handler(p->context, &w->message);
}

/* Takes the server's part of a proxy's request; NULL: not seen. */
static struct waiting *take_part(struct proxied *p, const struct waiting *w)
{
	uint32_t before = 0, i = bucket_of(p, w->hash)->oldest;
	for (int tries = 0; i && tries < TRIES; tries++) {
		struct waiting *s = &p->servers.all[i - 1];
		if (s->hash == w->hash && s->message.request.end_ns >= w->message.request.read_ns &&
		    s->message.request.end_ns <= w->message.request.written_ns) {
			leave_bucket(p, s, before);
			s->joined = true;
			return s;
		}
		before = i;
		i = s->next;
	}
	return NULL;
}

static void pass_proxy(struct proxied *p)
{
	struct waiting *w = at(&p->proxies, p->proxies.first++);
	const struct waiting *part = w->hash ? take_part(p, w) : NULL;
	if (part)
		w->message.request.behind = part->message.connection;
	p->handler(p->context, &w->message);
}

void proxied_add(struct proxied *p, const struct request_message *m, uint64_t hash, bool at_proxy,
		 uint64_t now_ns)
{
	struct queue *q = at_proxy ? &p->proxies : &p->servers;
	if (q->next - q->first == WAITING) {
		if (at_proxy)
			pass_proxy(p);
		else
			pass_server(p);
	}
	const uint32_t place = q->next & (WAITING - 1);
	q->all[place] = (struct waiting){.message = *m, .hash = hash, .since_ns = now_ns};
	q->next++;
	if (at_proxy || !hash)
		return;
	struct bucket *b = bucket_of(p, hash);
	if (b->newest)
		p->servers.all[b->newest - 1].next = place + 1;
	else
		b->oldest = place + 1;
	b->newest = place + 1;
}

static bool is_due(const struct queue *q, uint64_t now_ns)
{
	return q->first != q->next && at(q, q->first)->since_ns + q->wait_ns <= now_ns;
}

void proxied_tick(struct proxied *p, uint64_t now_ns)
{
	while (is_due(&p->proxies, now_ns))
		pass_proxy(p);
	while (is_due(&p->servers, now_ns))
		pass_server(p);
}
