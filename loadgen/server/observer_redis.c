/* SPDX-License-Identifier: MIT */
/* Redis' own statistics: INFO, slow log, Valkey's logs of large requests and replies (COMMANDLOG, 8.1),
 * latency monitor; at the begin and at the end also the counters of each command, and the settings that
 * explain's remedies depend on (at the end only if one has changed). The link sends and waits, so that a stop
 * is immediate. Redis' times are whole seconds of the wall clock. An event seen between two questions
 * happened between them, and within its second: the estimate is the middle of the remaining interval, the
 * error half its length. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/text.h"
#include "observer_view.h"
#include "recording/json_block.h"

#define OBSERVER_NAME "forktail-observer"

enum { WORD_BYTES = 128, EVENTS = 64 };

enum question {
	INFO,
	SLOWLOG,
	LARGE_REQUESTS,
	LARGE_REPLIES,
	LATENCY,
	/* Counters of each command since the server's start: asked until the first answer, and at the end. */
	COMMAND_STATS,
	COMMAND_LATENCY,
	QUESTIONS
};

static const struct {
	const char *name, *duration;
	int count;
	const char *words[4];
} questions[QUESTIONS] = {
    [INFO] = {"INFO", "info_ns", 1, {"INFO"}},
    [SLOWLOG] = {"SLOWLOG GET", "slowlog_ns", 3, {"SLOWLOG", "GET", "128"}},
    [LARGE_REQUESTS] = {"COMMANDLOG GET large-request",
			"large_request_ns",
			4,
			{"COMMANDLOG", "GET", "128", "large-request"}},
    [LARGE_REPLIES] = {"COMMANDLOG GET large-reply",
		       "large_reply_ns",
		       4,
		       {"COMMANDLOG", "GET", "128", "large-reply"}},
    [LATENCY] = {"LATENCY LATEST", "latency_ns", 2, {"LATENCY", "LATEST"}},
    [COMMAND_STATS] = {"INFO commandstats", "command_stats_ns", 2, {"INFO", "commandstats"}},
    [COMMAND_LATENCY] = {"LATENCY HISTOGRAM", "command_latency_ns", 2, {"LATENCY", "HISTOGRAM"}}};

/* Of a log of commands: the notes of its entries, of entries that were lost before they were read, and what
 * an entry's third element is. */
static const struct {
	const char *kind, *missed, *value;
} logs[QUESTIONS] = {[SLOWLOG] = {"slowlog", "slowlog-missed", "duration_us"},
		     [LARGE_REQUESTS] = {"large-request", "large-request-missed", "bytes"},
		     [LARGE_REPLIES] = {"large-reply", "large-reply-missed", "bytes"}};

/* Facts whose change explains latencies. */
static const char *const facts[] = {"role", "loading", "rdb_bgsave_in_progress", "aof_rewrite_in_progress",
				    "master_link_status"};
enum { FACTS = sizeof(facts) / sizeof(*facts) };

/* Settings, asked for one by one: servers before Redis 7 take one pattern, and a pattern of all has
 * passwords. */
static const char *const settings[] = {"activedefrag",
				       "aof_rewrite_cpulist",
				       "appendfsync",
				       "appendonly",
				       "auto-aof-rewrite-percentage",
				       "bgsave_cpulist",
				       "client-output-buffer-limit",
				       "disable-thp",
				       "io-threads",
				       "lazyfree-lazy-user-del",
				       "lazyfree-lazy-user-flush",
				       "no-appendfsync-on-rewrite",
				       "replica-lazy-flush",
				       "save"};

struct event {
	char name[48];
	long long unix_s, latest_ms, max_ms;
};

struct log {
	bool known;   /* entries from before the observer are not reported */
	long long id; /* the newest entry seen */
	bool counts;  /* the next entry's id is id + 1 */
};

struct redis {
	struct observer_series *to;
	bool announced; /* this connection's server has been recorded */
	bool refused[QUESTIONS];
	bool counted[QUESTIONS];	 /* the counters of this process were noted */
	bool set;			 /* so were its settings, or they are not allowed */
	json_t *values;			 /* the settings of the last note; NULL: none */
	char error_word[QUESTIONS][32];	 /* first word of the last error reply */
	uint64_t asked_ns[QUESTIONS];	 /* when last */
	uint64_t answered_ns[QUESTIONS]; /* in this round; 0: not asked */
	char run_id[48], version[32];
	char fact[FACTS][32];
	double forks, fork_usec;
	bool forks_known;
	bool has_commandlog;
	struct log log[QUESTIONS];
	bool events_known; /* events from before the observer are not reported */
	struct event events[EVENTS];
	int event_count;
};

static void *create(struct observer_series *to)
{
	struct redis *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->to = to;
	for (int i = 0; i < QUESTIONS; i++) {
		v->log[i].id = -1;
		v->asked_ns[i] = ft_now_ns();
	}
	return v;
}

static struct link *enter(void *view, struct server *s)
{
	/* So that an operator recognizes the connection, and a full server does not close it. Older servers
	 * do not know the second command; a refusal of either is harmless. */
	static const char *const manners[2][3] = {{"CLIENT", "SETNAME", OBSERVER_NAME},
						  {"CLIENT", "NO-EVICT", "on"}};
	struct redis *v = view;
	char error[512];
	struct link *l = server_enter(s, 0, error, sizeof(error));

	v->announced = false;
	for (int i = 0; i < 2 && l; i++) {
		redisReply *r = link_ask(l, 3, manners[i]);

		if (r) {
			freeReplyObject(r);
			continue;
		}
		snprintf(s->why, sizeof(s->why), "%s", strerror(-l->failed));
		link_free(l);
		l = NULL;
	}
	return l;
}

/* An error reply: refused permanently, or noted if it is new (LOADING, BUSY, MASTERDOWN are temporary). */
static void take_error(struct redis *v, enum question q, const char *text)
{
	json_t *n;
	size_t length = strcspn(text, " ");

	if (strncasecmp(text, "NOPERM", 6) == 0 || strncasecmp(text, "ERR unknown ", 12) == 0) {
		v->refused[q] = true;
		note_refusal(v->to, questions[q].name, text);
		return;
	}
	if (length >= sizeof(v->error_word[q]))
		length = sizeof(v->error_word[q]) - 1;
	if (strncmp(v->error_word[q], text, length) == 0 && v->error_word[q][length] == 0)
		return;
	memcpy(v->error_word[q], text, length);
	v->error_word[q][length] = 0;
	n = json_note(ft_now_ns(), "observer-error");
	json_put_text(n, "command", questions[q].name);
	json_put_text(n, "error", text);
	write_json_note(v->to->writer, n);
}

/* ---- INFO ---- */

static void take_fact(struct redis *v, const char *name, const char *value, uint64_t t_ns)
{
	json_t *n;

	for (int i = 0; i < FACTS; i++) {
		if (strcmp(name, facts[i]) != 0 || strncmp(v->fact[i], value, sizeof(v->fact[i]) - 1) == 0)
			continue;
		if (v->fact[i][0]) {
			n = json_note(t_ns, "redis-state");
			json_put_text(n, "field", name);
			json_put_text(n, "from", v->fact[i]);
			json_put_text(n, "to", value);
			write_json_note(v->to->writer, n);
		}
		snprintf(v->fact[i], sizeof(v->fact[i]), "%s", value);
	}
}

/* "keys=10,expires=0,avg_ttl=0": a series for each number. */
static void take_parts(struct redis *v, const char *name, char *parts, uint64_t t_ns)
{
	char *part;
	double number;

	while (observer_series_part(&parts, &part, &number))
		observer_series_value(v->to, "redis", name, part, number, t_ns);
}

static void note_connection(struct redis *v, uint64_t t_ns)
{
	json_t *n;

	if (v->announced)
		return;
	v->announced = true;
	n = json_note(t_ns, "observer-connected");
	json_put_text(n, "server", "redis");
	json_put_text(n, "version", v->version);
	json_put_text(n, "run_id", v->run_id);
	json_put_text(n, "role", v->fact[0]);
	write_json_note(v->to->writer, n);
}

/* Another process answers: its counters start at zero, and all its log entries belong to this run. */
static void take_run_id(struct redis *v, const char *run_id)
{
	if (v->run_id[0] && strcmp(v->run_id, run_id) != 0) {
		v->forks_known = false;
		for (int i = 0; i < QUESTIONS; i++) {
			v->log[i].id = -1;
			v->log[i].counts = true;
			v->counted[i] = false;
		}
		v->set = false;
		v->event_count = 0;
	}
	snprintf(v->run_id, sizeof(v->run_id), "%s", run_id);
}

/* A fork that took as long as the previous one is visible only in the number of forks, which older servers
 * don't report. */
static void take_forks(struct redis *v, double forks, double fork_usec, uint64_t t_ns)
{
	json_t *n;
	bool is_new = v->forks_known && (forks != v->forks || fork_usec != v->fork_usec);

	if (is_new && fork_usec >= 0) {
		n = json_note(t_ns, "fork");
		json_put_count(n, "latest_fork_usec", (uint64_t)fork_usec);
		json_put_count(n, "forks", forks > v->forks ? (uint64_t)(forks - v->forks) : 1);
		write_json_note(v->to->writer, n);
	}
	v->forks = forks;
	v->fork_usec = fork_usec;
	v->forks_known = true;
}

static void take_info(struct redis *v, const redisReply *r)
{
	uint64_t t_ns = v->answered_ns[INFO];
	double forks = 0, fork_usec = -1, number;
	int major, minor;
	char *rest;

	if (r->type != REDIS_REPLY_STRING)
		return;
	for (char *line = strtok_r(r->str, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
		char *value = *line == '#' ? NULL : strchr(line, ':');

		if (!value)
			continue;
		*value++ = 0;
		if (strcmp(line, "run_id") == 0)
			take_run_id(v, value);
		else if (strcmp(line, "redis_version") == 0)
			snprintf(v->version, sizeof(v->version), "%s", value);
		else if (strcmp(line, "valkey_version") == 0)
			v->has_commandlog = sscanf(value, "%d.%d", &major, &minor) == 2 &&
					    (major > 8 || (major == 8 && minor >= 1));
		take_fact(v, line, value, t_ns);
		if (observer_series_number(value, &number)) {
			observer_series_value(v->to, "redis", line, "", number, t_ns);
			if (strcmp(line, "total_forks") == 0)
				forks = number;
			else if (strcmp(line, "latest_fork_usec") == 0)
				fork_usec = number;
		} else if (strchr(value, '=')) {
			take_parts(v, line, value, t_ns);
		}
	}
	take_forks(v, forks, fork_usec, t_ns);
}

/* ---- events ---- */

/* A note of an event that an answer reports for the first time, with a wall-clock second. The server's second
 * is that of time(), which the kernel's timer ticks advance: it was behind for 6.4 ms with HZ=250 (two ticks;
 * with HZ=100 that is 20 ms). */
static json_t *dated_note(const char *kind, uint64_t after_ns, uint64_t before_ns, long long unix_s)
{
	const int64_t longest_ns = 1020000000;
	struct ft_clock clock;
	json_t *n;
	int64_t from = (int64_t)after_ns, to = (int64_t)before_ns, second;

	ft_clock_read(&clock);
	if (unix_s > 0 && unix_s < INT64_MAX / 1000000000) {
		second = unix_s * 1000000000 - (int64_t)(clock.realtime_ns - clock.monotonic_ns);
		/* For a host with a different clock, only the times of the questions are usable. */
		if (second < to && second + longest_ns > from) {
			from = second > from ? second : from;
			to = second + longest_ns < to ? second + longest_ns : to;
		}
	}
	n = json_note((uint64_t)(from + (to - from) / 2), kind);
	json_put_count(n, "t_error_ns", (uint64_t)(to - from + 1) / 2);
	json_put_count(n, "unix_s", unix_s > 0 ? (uint64_t)unix_s : 0);
	return n;
}

/* A word of a command or a value, truncated. */
static void put_word(json_t *words, const redisReply *word)
{
	char text[VISIBLE_MOST * WORD_BYTES + 1];

	visible_text(text, sizeof(text), word->str, word->len < WORD_BYTES ? word->len : WORD_BYTES);
	json_put_text(words, NULL, text);
}

static bool is_text(const redisReply *r)
{
	return r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS;
}

/* id, wall clock, microseconds or bytes, words, and since 4.0 the client's address and name. */
static bool is_log_entry(const redisReply *e)
{
	return e->type == REDIS_REPLY_ARRAY && e->elements >= 4 &&
	       e->element[0]->type == REDIS_REPLY_INTEGER && e->element[1]->type == REDIS_REPLY_INTEGER &&
	       e->element[2]->type == REDIS_REPLY_INTEGER && e->element[3]->type == REDIS_REPLY_ARRAY;
}

static void note_command(struct redis *v, enum question log, const redisReply *e, uint64_t after_ns)
{
	const redisReply *words = e->element[3];
	json_t *n = dated_note(logs[log].kind, after_ns, v->answered_ns[log], e->element[1]->integer),
	       *command;

	json_put_count(n, "id", (uint64_t)e->element[0]->integer);
	json_put_count(n, logs[log].value, (uint64_t)e->element[2]->integer);
	command = json_put_array(n, "command");
	for (size_t i = 0; i < words->elements && (i == 0 || !v->to->hide_keys); i++)
		if (is_text(words->element[i]))
			put_word(command, words->element[i]);
	if (e->elements > 4 && is_text(e->element[4]))
		json_put_text(n, "client", e->element[4]->str);
	if (e->elements > 5 && is_text(e->element[5]))
		json_put_text(n, "client_name", e->element[5]->str);
	write_json_note(v->to->writer, n);
}

static void note_missed(struct redis *v, enum question log, long long count)
{
	json_t *n = json_note(v->answered_ns[log], logs[log].missed);

	json_put_count(n, "count", (uint64_t)count);
	write_json_note(v->to->writer, n);
}

/* Entries are returned newest first and written oldest first. */
static void take_log(struct redis *v, enum question which, const redisReply *r, uint64_t after_ns)
{
	struct log *log = &v->log[which];
	long long newest = -1;

	for (size_t i = 0; i < r->elements; i++) {
		if (!is_log_entry(r->element[i]))
			return;
		if (r->element[i]->element[0]->integer > newest)
			newest = r->element[i]->element[0]->integer;
	}
	if (!log->known) {
		/* If the log is empty, the number of entries before a reset is unknown. */
		log->id = newest;
		log->counts = newest >= 0;
	} else if (newest >= 0 && newest < log->id) {
		log->id = -1; /* another process, which INFO did not show */
	}
	log->known = true;
	for (size_t i = r->elements; i > 0; i--) {
		const redisReply *e = r->element[i - 1];
		long long id = e->element[0]->integer;

		if (id <= log->id)
			continue;
		if (log->counts && id > log->id + 1)
			note_missed(v, which, id - log->id - 1);
		note_command(v, which, e, after_ns);
		log->id = id;
		log->counts = true;
	}
}

static void take_event(struct redis *v, const redisReply *e, uint64_t after_ns)
{
	struct event now = {.name = ""}, *known = v->events;
	json_t *n;

	if (e->type != REDIS_REPLY_ARRAY || e->elements < 4 || !is_text(e->element[0]) ||
	    e->element[0]->len >= sizeof(now.name))
		return;
	strcpy(now.name, e->element[0]->str);
	now.unix_s = e->element[1]->integer;
	now.latest_ms = e->element[2]->integer;
	now.max_ms = e->element[3]->integer;
	while (known < v->events + v->event_count && strcmp(known->name, now.name) != 0)
		known++;
	if (known == v->events + EVENTS)
		return; /* Redis has some twenty */
	if (known == v->events + v->event_count)
		v->event_count++;
	else if (known->unix_s == now.unix_s && known->latest_ms == now.latest_ms)
		return;
	*known = now;
	if (!v->events_known)
		return;
	n = dated_note("latency-event", after_ns, v->answered_ns[LATENCY], now.unix_s);
	json_put_text(n, "event", now.name);
	json_put_count(n, "latest_ms", (uint64_t)now.latest_ms);
	json_put_count(n, "max_ms", (uint64_t)now.max_ms);
	write_json_note(v->to->writer, n);
}

static void take(struct redis *v, enum question q, const redisReply *r, uint64_t after_ns)
{
	if (r->type == REDIS_REPLY_ERROR) {
		take_error(v, q, r->str);
		return;
	}
	v->error_word[q][0] = 0;
	if (q == INFO)
		take_info(v, r);
	if (q == COMMAND_STATS && r->type == REDIS_REPLY_STRING)
		note_command_stats(v->to, v->run_id, r->str, v->answered_ns[q]);
	if (q == COMMAND_LATENCY && r->type == REDIS_REPLY_ARRAY)
		note_command_latency(v->to, v->run_id, r, v->answered_ns[q]);
	v->counted[q] = true;
	if (r->type != REDIS_REPLY_ARRAY)
		return;
	if (logs[q].kind)
		take_log(v, q, r, after_ns);
	if (q == LATENCY) {
		for (size_t i = 0; i < r->elements; i++)
			take_event(v, r->element[i], after_ns);
		v->events_known = true;
	}
}

/* ---- a round ---- */

static bool is_due(const struct redis *v, enum question q)
{
	if (v->refused[q])
		return false;
	if (q == LARGE_REQUESTS || q == LARGE_REPLIES)
		return v->has_commandlog;
	return q < COMMAND_STATS || !v->counted[q];
}

/* Returns 0 or a negative errno. */
static int ask(struct redis *v, struct link *l, enum question q)
{
	/* Events that the last answer did not contain happened after its question. */
	uint64_t after_ns = v->asked_ns[q], asked_ns = ft_now_ns();
	redisReply *r = link_ask(l, questions[q].count, questions[q].words);

	if (!r)
		return l->failed;
	v->answered_ns[q] = ft_now_ns();
	v->asked_ns[q] = asked_ns;
	take(v, q, r, after_ns);
	freeReplyObject(r);
	return 0;
}

/* Notes the settings if they differ from the last note. Those that the server does not know are not noted.
 * Returns 0 or a negative errno. */
static int ask_settings(struct redis *v, struct link *l)
{
	json_t *n = json_note(ft_now_ns(), "settings"), *values = json_put_object(n, "settings");
	int rc = 0;

	v->set = false;
	json_put_text(n, "run_id", v->run_id);
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings) && !v->set && !rc; i++) {
		const char *const words[] = {"CONFIG", "GET", settings[i]};
		redisReply *r = link_ask(l, 3, words);

		if (!r) {
			rc = l->failed;
			continue;
		}
		if (r->type == REDIS_REPLY_ERROR && strncasecmp(r->str, "LOADING", 7) != 0) {
			note_refusal(v->to, "CONFIG GET", r->str);
			v->set = true;
		} else if (r->type == REDIS_REPLY_ARRAY && r->elements == 2 && is_text(r->element[1])) {
			json_put_text(values, settings[i], r->element[1]->str);
		}
		freeReplyObject(r);
	}
	if (rc || v->set || !json_object_size(values)) {
		json_decref(n);
		return rc;
	}
	v->set = true;
	if (v->values && json_equal(v->values, values)) {
		json_decref(n);
		return 0;
	}
	json_decref(v->values);
	v->values = json_incref(values);
	write_json_note(v->to->writer, n);
	return 0;
}

/* Notes that the observer waited for long. */
static void note_slow(struct redis *v, uint64_t since_ns, const uint64_t took_ns[QUESTIONS])
{
	uint64_t total_ns = 0;
	json_t *n;

	for (int q = 0; q < QUESTIONS; q++)
		total_ns += took_ns[q];
	if (total_ns <= OBSERVER_SLOW_NS)
		return;
	n = json_note(since_ns, "observer-slow");
	json_put_count(n, "duration_ns", total_ns);
	for (int q = 0; q < QUESTIONS; q++)
		if (took_ns[q])
			json_put_count(n, questions[q].duration, took_ns[q]);
	write_json_note(v->to->writer, n);
}

/* How many clients the server blocks now: requests of these are held, and not on the network. */
static int look_at_clients(void *view, struct link *l)
{
	static const char *const words[] = {"INFO", "clients"};
	static const char name[] = "blocked_clients";
	struct redis *v = view;
	const uint64_t asked_ns = ft_now_ns();
	uint64_t took_ns[QUESTIONS] = {0};
	redisReply *r;
	char *line;
	double number;

	if (v->refused[INFO])
		return 0;
	r = link_ask(l, 2, words);
	if (!r)
		return l->failed;
	took_ns[INFO] = ft_now_ns() - asked_ns;
	note_slow(v, asked_ns, took_ns);
	line = r->type == REDIS_REPLY_STRING ? strstr(r->str, name) : NULL;
	if (line && line[sizeof(name) - 1] == ':') {
		line += sizeof(name);
		line[strcspn(line, "\r\n")] = 0;
		if (observer_series_number(line, &number))
			observer_series_value(v->to, "redis", name, "", number, ft_now_ns());
	}
	freeReplyObject(r);
	return 0;
}

static int ask_round(void *view, struct link *l)
{
	struct redis *v = view;
	uint64_t round_ns = ft_now_ns(), took_ns[QUESTIONS] = {0};
	int rc = 0;

	for (enum question q = INFO; q < QUESTIONS; q++) {
		rc = is_due(v, q) ? ask(v, l, q) : 0;
		if (rc)
			return rc;
		if (v->asked_ns[q] < round_ns)
			continue;
		took_ns[q] = v->answered_ns[q] - v->asked_ns[q];
		if (q == INFO)
			note_connection(v, v->answered_ns[q]);
	}
	note_connection(v, ft_now_ns()); /* even INFO may not be allowed */
	if (!v->set)
		rc = ask_settings(v, l);
	note_slow(v, round_ns, took_ns);
	return rc;
}

static void ask_last(void *view, struct link *l)
{
	struct redis *v = view;

	for (enum question q = COMMAND_STATS; q <= COMMAND_LATENCY; q++)
		if (v->counted[q] && ask(v, l, q) != 0)
			return;
	/* And what happened since the last round. */
	for (enum question q = SLOWLOG; q < COMMAND_STATS; q++)
		if (v->answered_ns[q] && is_due(v, q) && ask(v, l, q) != 0)
			return;
	if (v->values)
		ask_settings(v, l);
}

static void discard(void *view)
{
	struct redis *v = view;

	json_decref(v->values);
	free(v);
}

const struct observer_view redis_view = {create, enter, ask_round, look_at_clients, ask_last, discard};

/* Notes rather than series: the counters of all commands at one instant belong together, and only the first
 * and the last matter. The reader of the recording subtracts. */

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
