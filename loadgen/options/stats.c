/* SPDX-License-Identifier: MIT */
/* Counters of requests, merged, by second and by server.
 *
 * Memory is allocated for a mix's operations, and for servers when they are first used. Adding loses nothing:
 * histograms are merged bucket by bucket. The text of an error reply is sanitized for terminals and JSON
 * before it is stored. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/grow.h"
#include "loadgen/results.h"

const char *const status_names[STATUSES] = {
    [FT_STATUS_OK] = "ok",
    [FT_STATUS_MISS] = "miss",
    [FT_STATUS_ERROR_REPLY] = "error reply",
    [FT_STATUS_TIMEOUT] = "no answer",
    [FT_STATUS_RESET] = "connection lost",
    [FT_STATUS_REFUSED] = "refused",
    [FT_STATUS_WRONG] = "wrong reply",
    [FT_STATUS_UNSENT] = "never sent",
};

const char *const redirect_names[REDIRECTS] = {"moved", "ask", "later"};

struct stats *stats_new(const struct mix *m)
{
	struct stats *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	for (uint32_t i = 0; i < m->count; i++) {
		struct operation_stats **o = &s->operations[m->operations[i]];

		if (!*o)
			*o = calloc(1, sizeof(**o));
		if (!*o) {
			stats_free(s);
			return NULL;
		}
	}
	return s;
}

struct stats *stats_new_with(const struct mix *m, bool arrivals)
{
	struct stats *s = stats_new(m);

	if (!s || !arrivals)
		return s;
	s->arrivals = calloc(1, sizeof(*s->arrivals));
	if (s->arrivals)
		return s;
	stats_free(s);
	return NULL;
}

void stats_free(struct stats *s)
{
	if (!s)
		return;
	free(s->arrivals);
	for (int i = 0; i < OPERATIONS_MAX; i++)
		free(s->operations[i]);
	for (uint32_t i = 0; i < s->node_count; i++)
		free(s->nodes[i]);
	free(s->nodes);
	free(s);
}

void stats_reset(struct stats *s)
{
	struct stats empty = {0};

	for (int i = 0; i < OPERATIONS_MAX; i++) {
		if (s->operations[i])
			memset(s->operations[i], 0, sizeof(*s->operations[i]));
		empty.operations[i] = s->operations[i];
	}
	for (uint32_t i = 0; i < s->node_count; i++)
		if (s->nodes[i])
			memset(s->nodes[i], 0, sizeof(*s->nodes[i]));
	if (s->arrivals)
		memset(s->arrivals, 0, sizeof(*s->arrivals));
	empty.arrivals = s->arrivals;
	empty.nodes = s->nodes;
	empty.node_count = s->node_count;
	*s = empty;
}

static void add_times(struct error_times *into, const struct error_times *from)
{
	if (!from->count)
		return;
	if (!into->count || from->first_ns < into->first_ns)
		into->first_ns = from->first_ns;
	if (from->last_ns > into->last_ns)
		into->last_ns = from->last_ns;
	into->count += from->count;
}

/* The entry of a word, which is counted there. */
static struct error_word *add_word(struct stats *s, const char *word, const struct error_times *times)
{
	struct error_word *e = s->errors, *last = s->errors + ERROR_WORDS - 1;

	while (e < last && e->times.count && strcmp(e->word, word) != 0)
		e++;
	if (!e->times.count)
		memcpy(e->word, e == last ? "other" : word, e == last ? sizeof("other") : strlen(word) + 1);
	add_times(&e->times, times);
	return e;
}

/* Another thread or second may have seen the first of them. */
static void merge_word(struct stats *into, const struct error_word *from)
{
	struct error_word *e = add_word(into, from->word, &from->times);

	if (*from->text && (!*e->text || from->times.first_ns == e->times.first_ns))
		memcpy(e->text, from->text, sizeof(e->text));
}

struct error_word *stats_error_word(struct stats *s, const char *word, uint64_t now_ns)
{
	const struct error_times once = {1, now_ns, now_ns};
	char clean[ERROR_WORD] = "";

	/* It is printed on terminals and in JSON: a server's text is restricted to expected characters. */
	for (size_t i = 0; word[i] && i < ERROR_WORD - 1; i++)
		clean[i] =
		    word[i] > ' ' && word[i] < 127 && word[i] != '"' && word[i] != '\\' ? word[i] : '?';
	return add_word(s, clean[0] ? clean : "?", &once);
}

void error_word_set_text(struct error_word *e, const char *text)
{
	size_t i;

	for (i = 0; text[i] && i < ERROR_TEXT - 1; i++)
		e->text[i] = text[i] >= ' ' && text[i] < 127 ? text[i] : '?';
	while (i > 0 && e->text[i - 1] == ' ')
		i--;
	e->text[i] = 0;
}

void stats_note_error(struct stats *s, unsigned status, uint64_t now_ns)
{
	const struct error_times once = {1, now_ns, now_ns};

	add_times(&s->statuses[status], &once);
}

/* The node's counts, created when first needed. */
static struct node_stats *of_node(struct stats *s, uint32_t node)
{
	if (node >= s->node_count) {
		struct node_stats **grown = realloc(s->nodes, (node + 1u) * sizeof(*grown));

		if (!grown)
			return NULL;
		memset(grown + s->node_count, 0, (node + 1u - s->node_count) * sizeof(*grown));
		s->nodes = grown;
		s->node_count = node + 1;
	}
	if (!s->nodes[node])
		s->nodes[node] = calloc(1, sizeof(*s->nodes[node]));
	return s->nodes[node];
}

void stats_node(struct stats *s, uint32_t node, unsigned status, uint64_t latency_ns, bool redirected)
{
	struct node_stats *n = of_node(s, node);

	s->redirected += redirected;
	if (!n)
		return;
	n->requests++;
	n->errors += status_is_error(status);
	ft_histogram_add(&n->latency, latency_ns);
}

void stats_redirect(struct stats *s, uint32_t node, enum redirect why)
{
	struct node_stats *n = of_node(s, node);

	if (n)
		n->redirects[why]++;
}

static void merge_nodes(struct stats *into, const struct stats *from)
{
	into->redirected += from->redirected;
	for (uint32_t i = 0; i < from->node_count; i++) {
		struct node_stats *n = from->nodes[i] ? of_node(into, i) : NULL;

		if (!n)
			continue;
		n->requests += from->nodes[i]->requests;
		n->errors += from->nodes[i]->errors;
		for (int k = 0; k < REDIRECTS; k++)
			n->redirects[k] += from->nodes[i]->redirects[k];
		ft_histogram_merge(&n->latency, &from->nodes[i]->latency);
	}
}

static void merge_arrivals(struct arrival_stats *into, const struct arrival_stats *from)
{
	into->unread_sum_ns += from->unread_sum_ns;
	if (from->unread_max_ns > into->unread_max_ns)
		into->unread_max_ns = from->unread_max_ns;
	ft_histogram_merge(&into->latency, &from->latency);
}

static void merge_operation(struct operation_stats *into, const struct operation_stats *from)
{
	into->bytes += from->bytes;
	for (int k = 0; k < STATUSES; k++)
		into->status[k] += from->status[k];
	ft_histogram_merge(&into->latency, &from->latency);
}

void stats_merge(struct stats *into, const struct stats *from)
{
	if (into->arrivals && from->arrivals)
		merge_arrivals(into->arrivals, from->arrivals);
	into->late_sum_ns += from->late_sum_ns;
	into->sent += from->sent;
	into->broken += from->broken;
	into->connects_failed += from->connects_failed;
	into->pushes += from->pushes;
	if (from->late_max_ns > into->late_max_ns)
		into->late_max_ns = from->late_max_ns;
	if (from->last_end_ns > into->last_end_ns)
		into->last_end_ns = from->last_end_ns;
	if (from->span_ns > into->span_ns)
		into->span_ns = from->span_ns;
	merge_nodes(into, from);
	for (int i = 0; i < ERROR_WORDS && from->errors[i].times.count; i++)
		merge_word(into, &from->errors[i]);
	for (int i = 0; i < STATUSES; i++)
		add_times(&into->statuses[i], &from->statuses[i]);
	for (int i = 0; i < OPERATIONS_MAX; i++)
		if (from->operations[i] && into->operations[i])
			merge_operation(into->operations[i], from->operations[i]);
}

static uint64_t count(const struct operation_stats *s, bool only_errors)
{
	uint64_t sum = 0;

	for (unsigned k = 0; s && k < STATUSES; k++)
		if (!only_errors || status_is_error(k))
			sum += s->status[k];
	return sum;
}

uint64_t operation_errors(const struct operation_stats *s)
{
	return count(s, true);
}

uint64_t operation_requests(const struct operation_stats *s)
{
	return count(s, false);
}

uint64_t stats_errors(const struct stats *s)
{
	uint64_t sum = 0;

	for (int i = 0; i < OPERATIONS_MAX; i++)
		sum += count(s->operations[i], true);
	return sum;
}

uint64_t stats_requests(const struct stats *s)
{
	uint64_t sum = 0;

	for (int i = 0; i < OPERATIONS_MAX; i++)
		sum += count(s->operations[i], false);
	return sum;
}

void stats_total(const struct stats *s, struct operation_stats *total)
{
	memset(total, 0, sizeof(*total));
	for (int i = 0; i < OPERATIONS_MAX; i++)
		if (s->operations[i])
			merge_operation(total, s->operations[i]);
}

/* A day has 86,400 seconds, so all are kept. */

/* Of a second, threads count a little less before their tick. */
#define WHOLE_NS 900000000u

static uint64_t answers(const struct stats *s)
{
	uint64_t count = 0;

	for (int i = 0; i < OPERATIONS_MAX; i++)
		if (s->operations[i])
			count += status_answers(s->operations[i]->status);
	return count;
}

void second_rates_add(struct second_rates *r, const struct stats *second)
{
	if (second->span_ns >= WHOLE_NS && grow(&r->rates, &r->room, r->count, sizeof(*r->rates)))
		r->rates[r->count++] = (double)answers(second) * 1e9 / (double)second->span_ns;
}

void second_rates_free(struct second_rates *r)
{
	free(r->rates);
	*r = (struct second_rates){0};
}

static int descending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

double second_rates_reached(struct second_rates *r, double percent)
{
	uint32_t rank = (uint32_t)ceil(percent / 100 * r->count);

	if (r->count == 0)
		return 0;
	qsort(r->rates, r->count, sizeof(*r->rates), descending);
	return r->rates[rank == 0 ? 0 : rank - 1];
}
