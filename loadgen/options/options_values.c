/* SPDX-License-Identifier: MIT */
/* Parses option values. parse.c does numbers and times; messages list all valid names and forms. */
#include "options_values.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/parse.h"
#include "common/text/visible.h"

enum { STATSD_PORT = 8125 };

error_t options_refuse(const char *format, ...)
{
	char *sentence;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&sentence, format, args);
	va_end(args);
	fputs("forktail-load: ", stderr);
	put_visible(stderr, length < 0 ? format : sentence); /* it may quote a recording of commands */
	fputc('\n', stderr);
	if (length >= 0)
		free(sentence);
	return EINVAL;
}

error_t options_read_count(const char *text, const char *what, uint64_t low, uint64_t high, uint64_t *out)
{
	if (parse_count(text, low, high, out))
		return 0;
	return options_refuse("%s: expected a whole number from %llu to %llu, got \"%s\"", what,
			      (unsigned long long)low, (unsigned long long)high, text);
}

error_t options_read_count32(const char *text, const char *what, uint32_t low, uint32_t high, uint32_t *out)
{
	uint64_t value = 0;
	error_t result = options_read_count(text, what, low, high, &value);

	*out = (uint32_t)value;
	return result;
}

error_t options_read_time(const char *text, const char *what, bool zero, uint64_t *ns)
{
	if (parse_duration(text, TIME_ANY, TIME_S, ns) && (*ns || zero))
		return 0;
	return options_refuse("%s: expected a time%s such as 10, 2.5s, 500ms, 3m or 1h, got \"%s\"", what,
			      zero ? "" : " above 0", text);
}

/* In the format of `date +%s.%N`; a double has a resolution of a quarter of a microsecond here. */
error_t options_read_start(const char *text, uint64_t *ns)
{
	double seconds;

	if (!parse_positive(text, 1e10, &seconds))
		return options_refuse(
		    "--start-at: expected a time in seconds since 1970 such as 1795412345.5, got \"%s\"",
		    text);
	*ns = (uint64_t)(seconds * 1e9);
	return 0;
}

/* One of `names`, by its number. */
static error_t read_name(const char *text, const char *what, const char *const *names, int count, int *out)
{
	char all[128] = "";

	for (int i = 0; i < count; i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = i;
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 i == 0		  ? ""
			 : i + 1 == count ? " or "
					  : ", ",
			 names[i]);
	}
	return options_refuse("%s: expected %s, got \"%s\"", what, all, text);
}

error_t options_read_arrival(const char *text, struct options *o, struct given_options *given)
{
	static const char *const names[] = {"constant", "poisson"};
	int which = 0;
	error_t result = read_name(text, "--arrival", names, 2, &which);

	o->arrival = (enum arrival)which;
	given->rate_kind = true;
	return result;
}

error_t options_read_read_from(const char *text, struct options *o)
{
	static const char *const names[] = {"primary", "replica", "any", "nearest"};
	int which = 0;
	error_t result = read_name(text, "--read-from", names, 4, &which);

	o->read_from = (enum read_from)which;
	return result;
}

/* "1", "1,500ms" */
error_t options_read_wait(const char *text, struct options *o)
{
	const char *comma = strchr(text, ',');
	char number[16];
	uint64_t ns = 1000000000;
	error_t result;

	snprintf(number, sizeof(number), "%.*s", comma ? (int)(comma - text) : (int)strlen(text), text);
	result = options_read_count32(number, "--wait", 1, 1000, &o->wait_replicas);
	if (result == 0 && comma)
		result = options_read_time(comma + 1, "the time of --wait", false, &ns);
	o->wait_ms = ns < 1000000 ? 1 : ns > 3600000000000u ? 3600000 : (uint32_t)(ns / 1000000);
	return result;
}

error_t options_read_protocol(const char *text, struct options *o)
{
	const char *names[PROTOCOLS];
	error_t result;
	int which = 0;

	for (int i = 0; i < PROTOCOLS; i++)
		names[i] = protocols[i]->name;
	result = read_name(text, "--protocol", names, PROTOCOLS, &which);
	o->protocol = (enum protocol_id)which;
	return result;
}

error_t options_read_on_error(const char *text, struct options *o)
{
	static const char *const names[] = {"continue", "reconnect", "stop"};
	int which = 0;
	error_t result = read_name(text, "--on-error", names, 3, &which);

	o->on_error = (enum on_error)which;
	return result;
}

error_t options_read_ycsb(const char *text, struct options *o)
{
	if (strcmp(text, "load") == 0)
		o->ycsb = 'L';
	else if (text[0] && !text[1] && ycsb_find(text[0]))
		o->ycsb = ycsb_find(text[0])->letter;
	else
		return options_refuse("--ycsb: expected A, B, C, D, E, F or load, got \"%s\"", text);
	return 0;
}

error_t options_read_command(const char *text, struct options *o)
{
	struct command c;
	char error[256];

	if (o->command_count == COMMANDS_MAX)
		return options_refuse("more than %d --command", COMMANDS_MAX);
	if (!command_parse(&c, text, error, sizeof(error)))
		return options_refuse("%s", error);
	command_free(&c);
	o->commands[o->command_count++] = (struct custom_command){.text = text, .weight = 1};
	return 0;
}

error_t options_read_command_ratio(const char *text, struct options *o)
{
	if (o->command_count == 0)
		return options_refuse("--command-ratio needs a --command before it");
	return options_read_count32(text, "--command-ratio", 1, 1000000,
				    &o->commands[o->command_count - 1].weight);
}

/* "LOW" or "LOW-HIGH" */
error_t options_read_expiry(const char *text, struct options *o)
{
	char *copy = strdup(text), *dash = copy ? strchr(copy, '-') : NULL;
	uint64_t low = 0, high = 0;
	bool good = copy != NULL;

	if (dash)
		*dash++ = 0;
	good = good && parse_count(copy, 1, 100000000, &low) &&
	       parse_count(dash ? dash : copy, low, 100000000, &high);
	free(copy);
	o->expiry_low = (uint32_t)low;
	o->expiry_high = (uint32_t)high;
	return good ? 0
		    : options_refuse(
			  "--expiry: expected SECONDS or LOW-HIGH, each 1 to 100000000, got \"%s\"", text);
}

error_t options_read_profile(const char *text, struct options *o)
{
	bool connections = strncmp(text, "connections:", 12) == 0;
	struct profile *p = connections ? &o->connections_over_time : &o->rate_over_time;
	char error[256];

	if (!profile_parse(text, p, error, sizeof(error)))
		return options_refuse("%s", error);
	*(connections ? &o->has_connections_profile : &o->has_rate_profile) = true;
	return 0;
}

error_t options_read_cpus(const char *text, struct options *o)
{
	char *copy = strdup(text), *rest = copy, *part;
	bool good = copy != NULL;

	o->cpu_count = 0;
	while (good && (part = strsep(&rest, ","))) {
		char *dash = strchr(part, '-');
		uint64_t low, high;

		if (dash)
			*dash++ = 0;
		good = parse_count(part, 0, CPUS_MAX - 1, &low) &&
		       parse_count(dash ? dash : part, low, CPUS_MAX - 1, &high);
		for (uint64_t i = low; good && i <= high && o->cpu_count < CPUS_MAX; i++)
			o->cpus[o->cpu_count++] = (int)i;
	}
	free(copy);
	return good ? 0 : options_refuse("--cpus: expected a list such as 0,2-3, got \"%s\"", text);
}

error_t options_read_log_mode(const char *text, struct options *o)
{
	if (strcmp(text, "all") == 0) {
		o->log_mode = LOG_ALL;
		return 0;
	}
	if (strncmp(text, "slow:", 5) != 0 || !parse_duration(text + 5, TIME_ANY, TIME_S, &o->slow_ns) ||
	    !o->slow_ns)
		return options_refuse("--log: expected all or slow:TIME, got \"%s\"", text);
	o->log_mode = LOG_SLOW;
	return 0;
}

static error_t read_limit(const char *text, const char *option, struct limit *limits, uint32_t *count)
{
	struct limit *l = &limits[*count];
	char error[512];

	if (*count == LIMITS_MAX)
		return options_refuse("more than %d %s", LIMITS_MAX, option);
	if (!limit_parse(text, l, error, sizeof(error)))
		return options_refuse("%s", error);
	if (!limit_is_of_load(l))
		return options_refuse("%s: \"%s\" needs a recording and a base. Use forktail gate", option,
				      text);
	++*count;
	return 0;
}

error_t options_read_limit(const char *text, struct options *o)
{
	return read_limit(text, "--fail-if", o->limits, &o->limit_count);
}

error_t options_read_find(const char *text, struct options *o)
{
	error_t result = read_limit(text, "--find", o->find, &o->find_count);
	char error[512];

	if (result)
		return result;
	if (!limit_can_hold(&o->find[o->find_count - 1], text, error, sizeof(error)))
		return options_refuse("--find: %s", error);
	o->find_text[o->find_count - 1] = text;
	return 0;
}

/* "HOST[:PORT][,PREFIX]" */
error_t options_read_statsd(const char *text, struct options *o)
{
	const char *comma = strchr(text, ',');
	char *where = strndup(text, comma ? (size_t)(comma - text) : strlen(text)), error[256];
	struct address a = {0};
	bool good = where && *where && address_parse(&a, where, error, sizeof(error)) && a.server.host &&
		    a.scheme == ADDRESS_PLAIN && (!comma || comma[1]);

	if (good) {
		snprintf(o->statsd_host, sizeof(o->statsd_host), "%s", a.server.host);
		o->statsd_port = a.server.port ? a.server.port : STATSD_PORT;
		o->statsd_prefix = comma ? comma + 1 : "forktail";
	}
	address_free(&a);
	free(where);
	return good ? 0 : options_refuse("--statsd: expected HOST[:PORT][,PREFIX], got \"%s\"", text);
}

error_t options_read_percent(const char *text, const char *what, double *share)
{
	size_t length = strlen(text);
	char number[32] = "";
	double percent = 0;

	if (length > 0 && text[length - 1] == '%')
		length--;
	if (length < sizeof(number))
		memcpy(number, text, length);
	if (strcmp(number, "0") != 0 && !parse_positive(number, 100, &percent))
		return options_refuse("%s: expected a percentage from 0 to 100, got \"%s\"", what, text);
	*share = percent / 100;
	return 0;
}

error_t options_read_replay_format(const char *text, struct options *o)
{
	int which = 0;
	error_t result = read_name(text, "--replay-format", replay_format_names + 1, 3, &which);

	o->replay_format = (enum replay_format)(which + 1);
	return result;
}

error_t options_read_replay_speed(const char *text, struct options *o)
{
	if (strcmp(text, "max") == 0)
		o->replay_speed = 0;
	else if (strcmp(text, "original") == 0)
		o->replay_speed = 1;
	else if (!parse_positive(text, 1e6, &o->replay_speed))
		return options_refuse("--replay-speed: expected original, max, or a factor above 0 such as 2 "
				      "or 0.5, got \"%s\"",
				      text);
	return 0;
}

error_t options_read_replay_order(const char *text, struct options *o)
{
	int which = 0;
	error_t result = read_name(text, "--replay-order", replay_order_names + 1, 2, &which);

	o->replay_order = (enum replay_order)(which + 1);
	return result;
}

error_t options_read_replay_sample(const char *text, struct options *o)
{
	error_t result = options_read_percent(text, "--replay-sample", &o->replay_share);

	return result || o->replay_share > 0
		   ? result
		   : options_refuse("--replay-sample: 0 %% of the keys is nothing to send");
}

/* "NAME[:COUNT]": where the count begins, or NULL; false: not a count. */
static bool read_behind_colon(const char *text, size_t *name_length, uint32_t *count)
{
	uint64_t value = 1;

	*name_length = strcspn(text, ":");
	if (text[*name_length] && !parse_count(text + *name_length + 1, 1, 100000, &value))
		return false;
	*count = (uint32_t)value;
	return true;
}

error_t options_read_pubsub(const char *text, struct options *o)
{
	char number[16] = "";
	uint64_t subscribers = 0;
	size_t length;
	bool good = read_behind_colon(text, &length, &o->channels) && length < sizeof(number);

	if (good)
		memcpy(number, text, length);
	if (!good || !parse_count(number, 1, 100000, &subscribers))
		return options_refuse(
		    "--pubsub: expected SUBSCRIBERS or SUBSCRIBERS:CHANNELS, each 1 to 100000, got \"%s\"",
		    text);
	o->delivery = DELIVERY_PUBSUB;
	o->consumers = (uint32_t)subscribers;
	return 0;
}

error_t options_read_handoff(const char *text, struct options *o)
{
	static const struct {
		const char *name;
		enum delivery_kind kind;
	} kinds[] = {{"list", DELIVERY_LIST}, {"stream", DELIVERY_STREAM}, {"group", DELIVERY_GROUP}};
	size_t length;
	bool good = read_behind_colon(text, &length, &o->channels);

	o->delivery = DELIVERY_NONE;
	for (size_t i = 0; good && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, text, length) == 0)
			o->delivery = kinds[i].kind;
	if (o->delivery == DELIVERY_NONE)
		return options_refuse("--handoff: expected list, stream or group, optionally with a number "
				      "of queues such as list:4, got \"%s\"",
				      text);
	return 0;
}
