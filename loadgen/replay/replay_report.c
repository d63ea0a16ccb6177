/* SPDX-License-Identifier: MIT */
/* What is omitted from a recording, as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "replay.h"

void replay_describe(const struct replay *r, FILE *to)
{
	uint64_t all = 0;

	for (int i = 0; i < HARM_MAX; i++)
		all += r->left_out[i];
	fprintf(to, "replayed from %s: %u command%s of %u client%s", replay_format_names[r->format], r->count,
		r->count == 1 ? "" : "s", r->clients, r->clients == 1 ? "" : "s");
	if (r->timed && r->count)
		fprintf(to, r->paced ? ", due over %.3f s" : ", recorded over %.3f s",
			(double)r->records[r->count - 1].due_ns * 1e-9);
	if (r->by_key)
		fputs(", in the order of each key", to);
	fputc('\n', to);
	if (r->preamble_bytes)
		fprintf(to,
			"skipped: an RDB of %" PRIu64 " bytes with %" PRIu64
			" key%s. Load it into the server first if the commands need its keys\n",
			r->preamble_bytes, r->preamble.keys, r->preamble.keys == 1 ? "" : "s");
	if (r->outside_sample)
		fprintf(to, "omitted by --replay-sample: %" PRIu64 " command%s\n", r->outside_sample,
			r->outside_sample == 1 ? "" : "s");
	if (r->unfinished)
		fprintf(to, "omitted: %" PRIu64 " command%s of transactions without EXEC or DISCARD\n",
			r->unfinished, r->unfinished == 1 ? "" : "s");
	if (r->scripted)
		fprintf(to, "omitted: %" PRIu64 " call%s from scripts, which the scripts repeat themselves\n",
			r->scripted, r->scripted == 1 ? "" : "s");
	if (all) {
		fprintf(to, "omitted: ");
		for (int i = 0, some = 0; i < HARM_MAX; i++)
			if (r->left_out[i])
				fprintf(to, "%s%s %" PRIu64 " (%s)", some++ ? ", " : "", harm_name(i),
					r->left_out[i], harm_reason(i));
		fprintf(to, ". To send them, use --replay-allow\n");
	}
	if (r->backwards)
		fprintf(to, "timestamps earlier than the previous one, replaced by it: %" PRIu64 "\n",
			r->backwards);
}

void replay_describe_json(const struct replay *r, json_t *j)
{
	json_t *replay = json_put_object(j, "replay"), *left_out;

	json_put_text(replay, "format", replay_format_names[r->format]);
	json_put_count(replay, "commands", r->count);
	json_put_count(replay, "clients", r->clients);
	json_put_truth(replay, "timed", r->timed);
	json_put_number(replay, "speed", r->speed);
	json_put_number(replay, "recorded_s", r->count ? (double)r->records[r->count - 1].due_ns * 1e-9 : 0);
	left_out = json_put_object(replay, "left_out");
	for (int i = 0; i < HARM_MAX; i++)
		if (r->left_out[i])
			json_put_count(left_out, harm_name(i), r->left_out[i]);
	json_put_text(replay, "order",
		      replay_order_names[r->by_key ? REPLAY_ORDER_KEY : REPLAY_ORDER_CLIENT]);
	json_put_count(replay, "outside_sample", r->outside_sample);
	json_put_count(replay, "unfinished", r->unfinished);
	json_put_count(replay, "scripted", r->scripted);
	json_put_count(replay, "times_back", r->backwards);
	json_put_count(replay, "preamble_bytes", r->preamble_bytes);
	json_put_count(replay, "preamble_keys", r->preamble.keys);
	json_put_text(replay, "damage", r->damage ? r->damage : "");
}
