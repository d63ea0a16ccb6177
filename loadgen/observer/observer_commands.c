/* SPDX-License-Identifier: MIT */
/* Notes rather than series: the counters of all commands at one instant belong together, and only the first
 * and the last matter. The reader of the recording subtracts. */
#include "observer_commands.h"

#include <string.h>

#include "common/text/visible.h"
#include "recording/json/json_block.h"

#define ROW "cmdstat_"

/* Larger counters are not a server's. */
#define COUNTER_LIMIT 1e18

/* A server has some 400 commands with subcommands; modules add theirs. */
enum { COMMANDS_LIMIT = 2000, NAME_BYTES = 64, SLOTS_LIMIT = 64 };

static json_t *note_of(const char *kind, const char *run_id, uint64_t t_ns, json_t **commands)
{
	json_t *n = json_note(t_ns, kind);

	json_put_text(n, "run_id", run_id);
	*commands = json_put_array(n, "commands");
	return n;
}

/* "calls=3,usec=17,usec_per_call=5.67,rejected_calls=0,failed_calls=0" */
static void put_counters(json_t *command, char *parts)
{
	static const char *const counters[] = {"calls", "usec", "rejected_calls", "failed_calls"};
	char *part;
	double number;

	while (observer_series_part(&parts, &part, &number))
		for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
			if (strcmp(part, counters[i]) == 0 && number >= 0 && number < COUNTER_LIMIT)
				json_put_count(command, part, (uint64_t)number);
}

void note_command_stats(struct observer_series *to, const char *run_id, char *info, uint64_t t_ns)
{
	json_t *commands, *n = note_of("command-stats", run_id, t_ns, &commands);
	int count = 0;
	char *rest;

	for (char *line = strtok_r(info, "\r\n", &rest); line && count < COMMANDS_LIMIT;
	     line = strtok_r(NULL, "\r\n", &rest)) {
		char *value = strncmp(line, ROW, strlen(ROW)) == 0 ? strchr(line, ':') : NULL;
		json_t *command;

		if (!value)
			continue;
		*value++ = 0;
		command = json_put_object(commands, NULL);
		json_put_text(command, "name", line + strlen(ROW));
		put_counters(command, value);
		count++;
	}
	write_json_note(to->writer, n);
}

/* The member of a map, which RESP2 sends as an array of names and values. */
static const redisReply *member(const redisReply *map, const char *name, int type)
{
	for (size_t i = 0; map->type == REDIS_REPLY_ARRAY && i + 1 < map->elements; i += 2)
		if (map->element[i]->type == REDIS_REPLY_STRING && strcmp(map->element[i]->str, name) == 0 &&
		    map->element[i + 1]->type == type)
			return map->element[i + 1];
	return NULL;
}

/* Bounds in microseconds, each with the number of calls up to it. */
static void put_slots(json_t *command, const redisReply *slots)
{
	json_t *list = json_put_array(command, "slots");

	for (size_t i = 0; i + 1 < slots->elements && i < 2 * SLOTS_LIMIT; i += 2) {
		json_t *slot;

		if (slots->element[i]->type != REDIS_REPLY_INTEGER ||
		    slots->element[i + 1]->type != REDIS_REPLY_INTEGER)
			continue;
		slot = json_put_array(list, NULL);
		json_put_count(slot, NULL, (uint64_t)slots->element[i]->integer);
		json_put_count(slot, NULL, (uint64_t)slots->element[i + 1]->integer);
	}
}

void note_command_latency(struct observer_series *to, const char *run_id, const redisReply *histograms,
			  uint64_t t_ns)
{
	json_t *commands, *n = note_of("command-latency", run_id, t_ns, &commands);

	for (size_t i = 0; i + 1 < histograms->elements && i < 2 * COMMANDS_LIMIT; i += 2) {
		const redisReply *name = histograms->element[i], *of = histograms->element[i + 1],
				 *calls = member(of, "calls", REDIS_REPLY_INTEGER),
				 *slots = member(of, "histogram_usec", REDIS_REPLY_ARRAY);
		char text[VISIBLE_MOST * NAME_BYTES + 1];
		json_t *command;

		if (name->type != REDIS_REPLY_STRING || !calls || !slots)
			continue;
		visible_text(text, sizeof(text), name->str, name->len < NAME_BYTES ? name->len : NAME_BYTES);
		command = json_put_object(commands, NULL);
		json_put_text(command, "name", text);
		json_put_count(command, "calls", (uint64_t)calls->integer);
		put_slots(command, slots);
	}
	write_json_note(to->writer, n);
}
