/* SPDX-License-Identifier: MIT */
/* Keeping and adding up what load threads count. */
#include "stats.h"

#include <stdlib.h>
#include <string.h>

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

struct stats *stats_new(const struct workload *w)
{
	struct stats *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	for (int i = 0; i < OPERATIONS; i++) {
		if (!w->used[i])
			continue;
		s->operations[i] = calloc(1, sizeof(*s->operations[i]));
		if (!s->operations[i]) {
			stats_free(s);
			return NULL;
		}
	}
	return s;
}

void stats_free(struct stats *s)
{
	if (!s)
		return;
	for (int i = 0; i < OPERATIONS; i++)
		free(s->operations[i]);
	free(s);
}

void stats_reset(struct stats *s)
{
	for (int i = 0; i < OPERATIONS; i++)
		if (s->operations[i])
			memset(s->operations[i], 0, sizeof(*s->operations[i]));
	s->late_sum_ns = s->late_max_ns = s->sent = s->last_end_ns = s->span_ns = 0;
	memset(s->errors, 0, sizeof(s->errors));
}

static void add_word(struct stats *s, const char *word, uint64_t count)
{
	struct error_word *e = s->errors;

	while (e < s->errors + ERROR_WORDS - 1 && e->count && strcmp(e->word, word) != 0)
		e++;
	if (!e->count)
		memcpy(e->word, e == s->errors + ERROR_WORDS - 1 ? "other" : word,
		       e == s->errors + ERROR_WORDS - 1 ? sizeof("other") : strlen(word) + 1);
	e->count += count;
}

void stats_error_word(struct stats *s, const char *word)
{
	char clean[RESP_WORD] = "";

	/* It goes to terminals and JSON: what a server sends there is kept to letters it should send. */
	for (size_t i = 0; word[i] && i < RESP_WORD - 1; i++)
		clean[i] =
		    word[i] > ' ' && word[i] < 127 && word[i] != '"' && word[i] != '\\' ? word[i] : '?';
	add_word(s, clean[0] ? clean : "?", 1);
}

void stats_merge(struct stats *into, const struct stats *from)
{
	into->late_sum_ns += from->late_sum_ns;
	into->sent += from->sent;
	if (from->late_max_ns > into->late_max_ns)
		into->late_max_ns = from->late_max_ns;
	if (from->last_end_ns > into->last_end_ns)
		into->last_end_ns = from->last_end_ns;
	if (from->span_ns > into->span_ns)
		into->span_ns = from->span_ns;
	for (int i = 0; i < ERROR_WORDS && from->errors[i].count; i++)
		add_word(into, from->errors[i].word, from->errors[i].count);
	for (int i = 0; i < OPERATIONS; i++) {
		if (!from->operations[i] || !into->operations[i])
			continue;
		into->operations[i]->bytes += from->operations[i]->bytes;
		for (int k = 0; k < STATUSES; k++)
			into->operations[i]->status[k] += from->operations[i]->status[k];
		ft_histogram_merge(&into->operations[i]->latency, &from->operations[i]->latency);
	}
}

static uint64_t count(const struct stats *s, bool only_errors)
{
	uint64_t sum = 0;

	for (int i = 0; i < OPERATIONS; i++)
		for (unsigned k = 0; s->operations[i] && k < STATUSES; k++)
			if (!only_errors || status_is_error(k))
				sum += s->operations[i]->status[k];
	return sum;
}

uint64_t stats_errors(const struct stats *s)
{
	return count(s, true);
}

uint64_t stats_requests(const struct stats *s)
{
	return count(s, false);
}
