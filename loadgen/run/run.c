/* SPDX-License-Identifier: MIT */
/* The frame around the tests: checks the server, opens the log, runs the tests, prints the end. */
#include "loadgen/run.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/grow.h"
#include "common/options.h"
#include "common/text.h"
#include "find.h"
#include "loadgen/cluster.h"
#include "loadgen/net.h"
#include "loadgen/nodes.h"
#include "loadgen/observer.h"
#include "loadgen/options.h"
#include "loadgen/server.h"
#include "loadgen/workload.h"
#include "recording/recording.h"
#include "run_state.h"
#include "suite.h"
#include "wakeups.h"

/* Prepares a recording for the servers that it is replayed on. */

/* Finds keys by asking the server, if they matter; then the sample, times, order and connections of the
 * options. Returns 0, or a negative errno and a sentence. */
static int replay_setup(struct run *r, char *error, size_t size);

/* The first and last block of a load recording: which program made it, for which servers, and how it ended.
 */

/* `server` is the server that was asked for its information; `nodes` NULL: there are no others. JSON text,
 * which the caller frees. NULL: out of memory. It contains no password, because none is ever in argv. */
static char *manifest_make(const struct options *o, const struct server *server, const struct nodes *nodes,
			   const struct workload *w, int argc, char **argv);

/* ---- the log ---- */

/* The result for --json, also written to the recording as its summary. The caller frees it. */
static char *closing_words(struct run *r)
{
	size_t tests = r->suite.count;
	int error = r->log ? request_log_error(r->log) : 0;
	json_t *j = json_object(), *repeats;

	json_put_text(j, "program", "forktail-load");
	json_put_text(j, "version", FORKTAIL_VERSION);
	json_put_text(j, "tls", options_tls_word(r->o));
	json_put_text(j, "reason", run_end_names[r->end]);
	json_put_count(j, "exit_status", (uint64_t)r->status);
	json_put_count(j, "end_ns", ft_now_ns());
	json_put_text(j, "log", r->log ? r->o->log_path : "");
	json_put_text(j, "log_error", error ? strerror(-error) : "");
	if (r->o->replay)
		replay_describe_json(r->o->replay, j);
	json_put(j, "runs", r->runs);
	r->runs = NULL;
	find_json(r, j);
	if (r->o->repeat > 1 && tests > 0 && r->summary_count >= 2 * tests) {
		repeats = json_put_array(j, "repeats");
		for (size_t i = 0; i < tests; i++)
			report_repeats_json(repeats, r->summaries + i * r->o->repeat,
					    r->summary_count / tests);
	}
	return json_line(j);
}

static void write_json(struct run *r, const char *text)
{
	FILE *f = output_fopen(r->o->json_path);
	char message[512];
	bool good = f && fprintf(f, "%s\n", text) > 0;

	if (f && fclose(f) != 0)
		good = false;
	if (!good) {
		snprintf(message, sizeof(message), "cannot write %s: %s", r->o->json_path, output_why(errno));
		complain(r, message);
	}
}

static int open_log(struct run *r, int argc, char **argv)
{
	char *manifest = manifest_make(r->o, &r->server, r->nodes, r->workload, argc, argv), text[512];
	int rc = manifest ? request_log_open(&r->log, r->o->log_path, manifest,
					     r->o->threads + (r->o->delivery != 0))
			  : -ENOMEM;

	free(manifest);
	if (rc) {
		snprintf(text, sizeof(text), "cannot write the log %s: %s", r->o->log_path,
			 ft_writer_why(rc));
		complain(r, text);
	} else if (ft_writer_moved(request_log_writer(r->log))) {
		fprintf(stderr, "forktail load: the earlier recording is now %s.old\n", r->o->log_path);
	}
	if (rc == 0 && r->o->key_bytes) {
		rc = request_log_keys(r->log, r->o->hash_keys);
		if (rc) {
			complain(r, "--hash-keys: the system gives no random bytes");
			request_log_close(r->log, NULL);
			r->log = NULL;
		}
	}
	return rc;
}

static void close_log(struct run *r, const char *summary)
{
	char text[512];
	int rc;

	if (!r->log)
		return;
	rc = request_log_close(r->log, summary);
	r->log = NULL;
	if (rc && !r->log_failed) {
		snprintf(text, sizeof(text), "the log %s is incomplete: %s", r->o->log_path, strerror(-rc));
		complain(r, text);
	}
}

/* ---- the tests ---- */

/* Runs the tests in order, each as often as requested; then reports what needs all of them. */
static void run_tests(struct run *r)
{
	const struct options *o = r->o;

	for (uint32_t i = 0; i < r->suite.count; i++) {
		size_t first = r->summary_count;

		for (uint32_t k = 0; k < o->repeat; k++) {
			if (r->status == EXIT_ENVIRONMENT || r->end != RUN_DONE)
				return;
			run_phase(r, &r->suite.tests[i]);
			if (r->csv != stdout && (k + 1 < o->repeat || i + 1 < r->suite.count))
				fputc('\n', stdout);
		}
		if (o->repeat > 1 && r->csv != stdout && r->summary_count - first > 1)
			report_repeats(stdout, r->summaries + first, r->summary_count - first);
	}
	if (r->suite.count > 1 && o->repeat == 1 && r->csv != stdout)
		report_suite(stdout, r->summaries, r->summary_count);
	fflush(stdout);
}

/* Idle connections, which send nothing. */
static int *open_idle(struct run *r)
{
	char error[512];
	int *fds = server_connect_all(&r->server, r->o->connections, r->o->idle, error, sizeof(error));

	if (!fds)
		complain(r, error);
	return fds;
}

static void close_idle(const struct run *r, int *fds)
{
	for (uint32_t i = 0; fds && i < r->o->idle; i++)
		tls_close(fds[i]);
	free(fds);
}

static struct observer *start_observer(struct run *r)
{
	const struct options *o = r->o;
	const struct observer_server server = {
	    .host = r->server.address.host,
	    .socket = r->server.address.socket,
	    .port = r->server.address.port,
	    .user = o->user,
	    .password = o->password,
	    .tls_name = server_tls_name(&r->server),
	    .memcached = protocol_of(o->protocol)->product == &memcached_product,
	    .hide_keys = o->hash_keys,
	};
	struct observer *observer = NULL;

	/* A run without the observer is still valid. */
	if (r->log && !o->no_observer && observer_start(&observer, &server, request_log_writer(r->log)))
		fprintf(stderr, "forktail load: cannot start the server's observer: INFO, SLOWLOG and "
				"LATENCY are not recorded\n");
	return observer;
}

static void load_server(struct run *r)
{
	struct topology *topology = NULL;
	struct observer *observer;
	int *idle = open_idle(r);

	if (!idle)
		return;
	if (r->nodes && topology_start(&topology, r->nodes, r->log ? request_log_writer(r->log) : NULL)) {
		complain(r, "not enough memory or descriptors to watch the topology");
		close_idle(r, idle);
		return;
	}
	observer = start_observer(r);
	if (r->o->find_count)
		find_rate(r);
	else
		run_tests(r);
	observer_stop(observer);
	topology_stop(topology);
	close_idle(r, idle);
}

/* ---- the frame ---- */

/* Whether a file that is written later can be: it may be there, else its directory is one in which the caller
 * can make it. Returns 0, or -1 with errno. */
static int output_check_new(const char *path)
{
	char *copy;
	int rc = output_check(path);

	if (rc < 0) {
		errno = -rc;
		return -1;
	}
	if (access(path, F_OK) == 0)
		return access(path, W_OK);
	copy = strdup(path);
	rc = copy ? access(dirname(copy), W_OK | X_OK) : -1;
	free(copy);
	return rc;
}

int run_check(const struct options *o)
{
	const char *const paths[] = {o->log_path,  o->json_path,   o->csv_path,
				     o->hlog_path, o->series_path, o->svg_path};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (!paths[i] || output_check_new(paths[i]) == 0)
			continue;
		option_refuse("cannot write %s%s: %s", i == 0 ? "the log " : "", paths[i], output_why(errno));
		return EXIT_ENVIRONMENT;
	}
	return 0;
}

static int open_outputs(struct run *r)
{
	const struct options *o = r->o;
	char text[512];

	r->summaries = calloc((size_t)o->repeat * (r->suite.count + 1u), sizeof(*r->summaries));
	if (!r->summaries) {
		complain(r, "not enough memory to start");
		return -1;
	}
	if (second_outputs_open(&r->outputs, o, text, sizeof(text))) {
		complain(r, text);
		return -1;
	}
	if (o->metrics && load_metrics_open(&r->metrics, o->metrics, text, sizeof(text))) {
		complain(r, text);
		return -1;
	}
	if (o->csv)
		r->csv = o->csv_path ? output_fopen(o->csv_path) : stdout;
	if (o->csv && !r->csv) {
		snprintf(text, sizeof(text), "cannot write %s: %s", o->csv_path, output_why(errno));
		complain(r, text);
		return -1;
	}
	if (r->csv && !o->find_count)
		report_csv_header(r->csv);
	return 0;
}

static void close_outputs(struct run *r)
{
	char text[512];

	if (second_outputs_close(&r->outputs, r->o, text, sizeof(text)))
		complain(r, text);
	if (r->csv && r->csv != stdout && fclose(r->csv) != 0)
		complain(r, "the CSV is incomplete: the disk did not accept it");
	load_metrics_close(r->metrics);
	free(r->summaries);
}

/* A server that answers questions about itself and about commands; some may be down. */
static int probe_any(struct run *r, char *error, size_t size)
{
	uint32_t attempts = 2 * nodes_serving(r->nodes);
	int rc = -1;

	for (uint32_t attempt = 0; attempt < attempts && rc; attempt++) {
		server_free(&r->server);
		rc = server_probe(&r->server, r->o,
				  &nodes_at(r->nodes, nodes_any(r->nodes, attempt))->server.address, error,
				  size);
	}
	return rc;
}

/* Finds several servers. */
static int begin_nodes(struct run *r, char *error, size_t size)
{
	const struct options *o = r->o;

	r->nodes = calloc(1, sizeof(*r->nodes));
	if (!r->nodes || nodes_init(r->nodes, o)) {
		snprintf(error, size, "not enough memory for the servers");
		return -ENOMEM;
	}
	if (topology_learn(r->nodes, error, size) || probe_any(r, error, size) ||
	    descriptors_reserve(o->connections * nodes_serving(r->nodes), error, size))
		return -ECONNREFUSED;
	return 0;
}

/* Asks a server about the workload's commands, then prepares them. */
static int begin_commands(struct run *r, char *error, size_t size)
{
	const struct options *o = r->o;
	struct link *link = NULL;
	int rc;

	if (o->behind_count) {
		rc = proxy_ring_prepare(&r->proxy_ring, o, r->workload, error, size);
		if (rc == 0 && (rc = workload_prepare(r->workload, o->compressible, o->seed)) != 0)
			snprintf(error, size, "not enough memory for the workload");
		return rc;
	}
	if (!protocol_of(o->protocol)->product->reads) {
		link = server_enter(&r->server, 0, error, size);
		if (!link)
			return -ECONNREFUSED;
	}
	rc = route_prepare(r->workload, link, r->nodes != NULL, error, size);
	link_free(link);
	if (rc == 0 && o->wait_replicas)
		rc = workload_wait(r->workload, o->wait_replicas, o->wait_ms, error, size);
	if (rc == 0 && (rc = workload_prepare(r->workload, o->compressible, o->seed)) != 0)
		snprintf(error, size, "not enough memory for the workload");
	return rc;
}

/* Everything that a run needs to start. False: the reason was printed. */
static bool begin(struct run *r)
{
	const struct options *o = r->o;
	char error[512];
	int rc;

	/* First, so that wrong usage is reported whether the server is up or not. */
	rc = o->mode == MODE_INTRINSIC ? wakeups_build(r, error, sizeof(error))
				       : suite_build(o, r->workload, &r->suite, error, sizeof(error));
	if (rc == 0)
		rc = find_check(o, r->workload, error, sizeof(error));
	if (rc == 0 && o->metrics)
		rc = load_metrics_check(o->metrics, error, sizeof(error));
	if (rc == 0 && o->deployment != DEPLOYMENT_SINGLE)
		rc = begin_nodes(r, error, sizeof(error));
	else if (rc == 0 && o->mode != MODE_INTRINSIC &&
		 (descriptors_reserve(o->connections + o->idle + o->consumers, error, sizeof(error)) ||
		  server_probe(&r->server, o, &o->servers[0], error, sizeof(error))))
		rc = -ECONNREFUSED;
	if (rc == 0 && o->replay)
		rc = replay_setup(r, error, sizeof(error));
	if (rc == 0 && options_ask_first(o))
		rc = begin_commands(r, error, sizeof(error));
	if (rc) {
		complain(r, error);
		r->status = rc == -EINVAL ? EXIT_USAGE : EXIT_ENVIRONMENT;
	}
	return rc == 0;
}

static int handle_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void run_all(struct run *r, int argc, char **argv)
{
	char *summary;

	if (open_outputs(r))
		return;
	r->signal_fd = handle_signals(); /* before there is another thread, which would receive them too */
	if (r->o->log_path && open_log(r, argc, argv))
		return;
	r->runs = json_array();
	if (r->signal_fd >= 0 && r->runs) {
		if (r->o->mode == MODE_INTRINSIC)
			wakeups_measure(r);
		else
			load_server(r);
		if (r->moved || (r->failed_tests && r->failed_tests >= r->summary_count))
			r->status = EXIT_ENVIRONMENT;
	} else {
		complain(r, "not enough memory or descriptors to start");
	}
	summary = closing_words(r);
	if (summary && r->o->json_path)
		write_json(r, summary);
	close_log(r, summary);
	free(summary);
}

int run_load(const struct options *o, int argc, char **argv)
{
	struct run r = {.o = o, .signal_fd = -1, .workload = calloc(1, sizeof(*r.workload)), .rate = o->rate};

	if (!r.workload) {
		complain(&r, "not enough memory to start");
		return r.status;
	}
	signal(SIGPIPE, SIG_IGN); /* a server that closes is an error to report, also while connecting */
	if (begin(&r)) {
		run_all(&r, argc, argv);
		close_outputs(&r);
		if (r.signal_fd >= 0)
			close(r.signal_fd);
	}
	find_free(&r);
	workload_free(r.workload);
	free(r.workload);
	server_free(&r.server);
	ketama_free(&r.proxy_ring);
	if (r.nodes)
		nodes_free(r.nodes);
	free(r.nodes);
	return r.status;
}

/* Operations and mixes of each kind of load. The commands of YCSB and hand-offs are here; the tests of -t
 * come from the catalogue. */

/* In a cluster, the keys of one command must share a slot, using their hash tag. */
#define MSET_TAGGED_PAIR " {__tag__}:__int__ __data__"
static const char mset_tagged[] = "MSET" MSET_TAGGED_PAIR MSET_TAGGED_PAIR MSET_TAGGED_PAIR MSET_TAGGED_PAIR
    MSET_TAGGED_PAIR MSET_TAGGED_PAIR MSET_TAGGED_PAIR MSET_TAGGED_PAIR MSET_TAGGED_PAIR MSET_TAGGED_PAIR;

struct build {
	const struct options *o;
	struct workload *w;
	struct suite *s;
	char *error;
	size_t size;
};

/* The text of a SET with the expiry from the options. */
static const char *with_expiry(const struct build *b, const char *text, char *room, size_t size)
{
	bool sets = strncasecmp(text, "SET ", 4) == 0;

	if (!sets || !b->o->expiry_high)
		return text;
	snprintf(room, size, "%s%s __expiry__", text, protocol_of(b->o->protocol)->product->expiry);
	return room;
}

static int add_operation(struct build *b, const char *name, const char *text)
{
	char room[512];
	const char *texts[1] = {with_expiry(b, text, room, sizeof(room))};

	return workload_add(b->w, name, texts, 1, b->error, b->size);
}

static struct test *add_test(struct build *b, const char *name, enum preparation preparation)
{
	struct test *t = &b->s->tests[b->s->count++];

	memset(t, 0, sizeof(*t));
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->preparation = preparation;
	return t;
}

static int build_tests(struct build *b)
{
	for (int i = 0; i < CATALOGUE_ENTRIES; i++) {
		const struct catalogue_entry *e = &catalogue[i];
		struct test *t;
		int n;

		if (e->product != protocol_of(b->o->protocol)->product || !catalogue_wanted(b->o->tests, e))
			continue;
		n = add_operation(b, e->name,
				  b->o->deployment == DEPLOYMENT_CLUSTER && strcmp(e->name, "MSET") == 0
				      ? mset_tagged
				      : e->text);
		if (n < 0)
			return n;
		if (strcmp(e->name, "PING_INLINE") == 0)
			b->w->operations[n].steps[0].command.inlined = true;
		t = add_test(b, e->name, e->preparation);
		mix_add(&t->mix, (uint32_t)n, 1);
		mix_close(&t->mix);
	}
	return 0;
}

/* GET before SET, so that tables, logs and older recordings have the same order. */
static int build_mix(struct build *b)
{
	struct test *t = add_test(b, b->o->fill ? "fill" : "SET+GET", PREPARE_NOTHING);
	int get = b->o->gets ? add_operation(b, "GET", "GET __key__") : 0;
	int set = b->o->sets ? add_operation(b, "SET", "SET __key__ __data__") : 0;

	if (get < 0 || set < 0)
		return -EINVAL;
	if (b->o->gets)
		mix_add(&t->mix, (uint32_t)get, b->o->gets);
	if (b->o->sets)
		mix_add(&t->mix, (uint32_t)set, b->o->sets);
	mix_close(&t->mix);
	t->mix.sequential = b->o->fill != 0;
	return 0;
}

static void own_keys(const struct options *o, const struct custom_command *c, struct operation *op)
{
	op->own_keys = c->has_distribution || c->keys > 0;
	op->distribution = c->has_distribution ? c->distribution : o->distribution;
	op->keys = c->keys ? c->keys : o->keys ? o->keys : 1;
}

static int read_data(struct build *b)
{
	if (!b->o->data_path)
		return 0;
	b->w->data = calloc(1, sizeof(*b->w->data));
	return b->w->data ? data_set_read(b->w->data, b->o->data_path, b->error, b->size) : -ENOMEM;
}

/* Commands with the same verb are distinguished by number: SET, SET#2. */
static int build_commands(struct build *b)
{
	struct test *t = add_test(b, "commands", PREPARE_NOTHING);
	int rc = read_data(b);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < b->o->command_count; i++) {
		int n = workload_add(b->w, NULL, &b->o->commands[i].text, 1, b->error, b->size);
		uint32_t same = 1;
		char *name;

		if (n < 0)
			return n;
		name = b->w->operations[n].name;
		for (int k = 0; k < n; k++)
			same += strncmp(b->w->operations[k].name, name, strlen(name)) == 0 &&
				strchr("#", b->w->operations[k].name[strlen(name)]) != NULL;
		if (same > 1)
			snprintf(name + strlen(name), OPERATION_NAME - strlen(name), "#%u", same);
		own_keys(b->o, &b->o->commands[i], &b->w->operations[n]);
		if (b->w->operations[n].cursor &&
		    (b->o->pipeline > 1 || b->o->deployment != DEPLOYMENT_SINGLE)) {
			snprintf(
			    b->error, b->size,
			    "__cursor__ needs -P 1 and one server: the next request depends on the answer");
			return -EINVAL;
		}
		mix_add(&t->mix, (uint32_t)n, b->o->commands[i].weight);
	}
	mix_close(&t->mix);
	return 0;
}

/* ---- YCSB ---- */

/* The Redis layout of YCSB's binding: a hash per record, and a sorted set of all keys for scans. */
static int build_ycsb(struct build *b)
{
	static const char *const read[] = {"HGETALL __key__"};
	static const char *const update[] = {"HMSET __key__ __field__ __data__"};
	static const char *const insert[] = {
	    "HMSET __new_key__ field0 __data__ field1 __data__ field2 __data__ field3 __data__ field4 "
	    "__data__ "
	    "field5 __data__ field6 __data__ field7 __data__ field8 __data__ field9 __data__",
	    "ZADD _indices __index_score__ __key__"};
	static const char *const scan[] = {
	    "ZRANGEBYSCORE _indices __index_score__ +inf LIMIT 0 __scan_length__", "HGETALL __captured__"};
	static const char *const modify[] = {"HGETALL __key__", "HMSET __key__ __field__ __data__"};
	static const struct {
		enum ycsb_operation operation;
		const char *name;
		const char *const *texts;
		uint32_t steps;
	} all[] = {
	    {YCSB_READ, "READ", read, 1},
	    {YCSB_UPDATE, "UPDATE", update, 1},
	    {YCSB_INSERT, "INSERT", insert, 2},
	    {YCSB_SCAN, "SCAN", scan, 2},
	    {YCSB_READ_MODIFY_WRITE, "READ-MODIFY-WRITE", modify, 2},
	};
	const struct ycsb_workload *y = b->o->ycsb == 'L' ? NULL : ycsb_find(b->o->ycsb);
	char name[TEST_NAME];
	struct test *t;

	snprintf(name, sizeof(name), y ? "YCSB %c" : "YCSB load", b->o->ycsb);
	t = add_test(b, name, PREPARE_NOTHING);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		double share = y ? y->shares[all[i].operation] : all[i].operation == YCSB_INSERT;
		int n;

		if (share <= 0)
			continue;
		n = workload_add(b->w, all[i].name, all[i].texts, all[i].steps, b->error, b->size);
		if (n < 0)
			return n;
		b->w->operations[n].scan = all[i].operation == YCSB_SCAN;
		mix_add(&t->mix, (uint32_t)n, (uint64_t)(share * 1000000 + 0.5));
	}
	mix_close(&t->mix);
	b->w->names.ycsb = true;
	if (!y) {
		b->w->keys = 0; /* the base grows from nothing */
		return 0;
	}
	b->w->ycsb = malloc(sizeof(*b->w->ycsb));
	if (!b->w->ycsb)
		return -ENOMEM;
	ycsb_keys_init(b->w->ycsb, y, b->w->keys, b->o->requests ? b->o->requests : b->w->keys);
	return 0;
}

static int build_replay(struct build *b)
{
	struct test *t = add_test(b, "replay", PREPARE_NOTHING);

	replay_fill(b->o->replay, b->w);
	for (uint32_t i = 0; i < b->w->select; i++)
		mix_add(&t->mix, i, 1);
	mix_close(&t->mix);
	return 0;
}

static int build_deliveries(struct build *b)
{
	static const struct {
		const char *test, *text, *name;
	} kinds[] = {
	    [DELIVERY_PUBSUB] = {"pub/sub", "PUBLISH __key__ __data__", "DELIVER"},
	    [DELIVERY_LIST] = {"list hand-off", "RPUSH __key__ __data__", "BLPOP"},
	    [DELIVERY_STREAM] = {"stream hand-off", "XADD __key__ * message __data__", "XREAD"},
	    [DELIVERY_GROUP] = {"group hand-off", "XADD __key__ * message __data__", "XREADGROUP"},
	};
	struct test *t = add_test(b, kinds[b->o->delivery].test, PREPARE_NOTHING);
	int rc = workload_add_messages(b->w, kinds[b->o->delivery].text, kinds[b->o->delivery].name,
				       b->o->seed, b->error, b->size);

	if (rc)
		return rc;
	mix_add(&t->mix, 0, 1);
	mix_close(&t->mix);
	return 0;
}

/* The number of keys that names must cover: a growing base continues after the key space. */
static uint64_t keys_named(const struct options *o, const struct workload *w)
{
	static const struct catalogue_entry insert = {.name = "INSERT"};
	bool grows = o->tests && catalogue_wanted(o->tests, &insert);
	uint64_t keys = w->keys;
	uint64_t inserted = o->requests ? o->requests : KEY_SPACE_MAX;

	for (uint32_t i = 0; i < o->command_count; i++) {
		grows |= strstr(o->commands[i].text, "__new_key__") != NULL;
		keys = o->commands[i].keys > keys ? o->commands[i].keys : keys;
	}
	if (!grows)
		return keys;
	return inserted < KEY_SPACE_MAX - keys ? keys + inserted : KEY_SPACE_MAX;
}

int suite_build(const struct options *o, struct workload *w, struct suite *s, char *error, size_t size)
{
	struct build b = {o, w, s, error, size};
	int rc;

	memset(w, 0, sizeof(*w));
	memset(s, 0, sizeof(*s));
	snprintf(error, size, "not enough memory for the workload");
	w->protocol = o->protocol;
	w->keys = o->fill ? o->fill : o->keys ? o->keys : 1;
	w->distribution = o->distribution;
	w->split = o->split;
	w->verify = o->verify;
	w->quiet = o->meta_quiet;
	w->values.sizes = o->sizes;
	w->fill.fields = o->fields;
	w->fill.expiry_low = o->expiry_low;
	w->fill.expiry_high = o->expiry_high;
	rc = key_names_prepare(&w->names, o->key_prefix, o->key_length, keys_named(o, w), error, size);
	if (rc)
		return rc;
	rc = o->replay		? build_replay(&b)
	     : o->delivery	? build_deliveries(&b)
	     : o->ycsb		? build_ycsb(&b)
	     : o->command_count ? build_commands(&b)
	     : o->tests		? build_tests(&b)
				: build_mix(&b);
	/* The server may have to be asked first where keys are and which commands write (route.c). */
	return rc || options_ask_first(o) ? rc : workload_prepare(w, o->compressible, o->seed);
}

/* The manifest of a request log: options, servers and host, because a reader of the log has no other source.
 * docs/reference/load.md lists its members. */

static void describe_host(json_t *j)
{
	struct utsname u;
	char boot_id[40] = "", clock_id[FT_CLOCK_ID_BYTES];

	ft_boot_id(boot_id);
	ft_clock_id(clock_id);
	if (uname(&u) == 0) {
		json_put_text(j, "host", u.nodename);
		json_put_text(j, "kernel", u.release);
		json_put_text(j, "machine", u.machine);
	}
	json_put_count(j, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	json_put_text(j, "boot_id", boot_id);
	json_put_text(j, "clock_id", clock_id);
}

static void describe_behind(json_t *j, const struct options *o)
{
	json_t *all = json_put_array(j, "behind");
	char text[300];

	for (uint32_t i = 0; i < o->behind_count; i++) {
		json_t *one = json_put_object(all, NULL);

		proxy_ring_name(o, i, text, sizeof(text));
		json_put_text(one, "name", text);
		address_text(&o->behind[i], text, sizeof(text));
		json_put_text(one, "address", text);
	}
}

static void describe_facts(json_t *j, const struct options *o, const struct server_facts *s)
{
	json_put_text(j, "protocol", protocol_of(o->protocol)->name);
	if (protocol_of(o->protocol)->resp3)
		json_put_count(j, "resp", o->resp3 ? 3 : 2);
	if (o->meta_quiet)
		json_put_count(j, "meta_quiet", 1);
	json_put_text(j, "version", s->version);
	json_put_text(j, "mode", s->mode);
	json_put_text(j, "role", s->role);
	json_put_text(j, "os", s->os);
	json_put_text(j, "run_id", s->run_id);
	json_put_count(j, "pid", strtoull(s->process_id, NULL, 10));
	json_put_text(j, "tls", options_tls_word(o));
	json_put_count(j, "database", o->database);
	json_put_text(j, "user", o->user ? o->user : "");
}

/* Servers by the numbers that connections refer to, and in the same order their own information: of several
 * servers only one was asked. */
static void describe_servers(json_t *j, const struct options *o, const struct server *server,
			     const struct nodes *nodes)
{
	uint32_t count = nodes ? atomic_load(&nodes->count) : 1;
	char address[300], asked[300];
	json_t *list, *one;

	if (o->mode == MODE_INTRINSIC)
		snprintf(asked, sizeof(asked), "none");
	else
		address_text(nodes ? &server->address : &o->servers[0], asked, sizeof(asked));
	list = json_put_array(j, "servers");
	for (uint32_t i = 0; i < count; i++)
		json_put_text(list, NULL, nodes ? nodes_at(nodes, (uint16_t)i)->name : asked);
	if (o->behind_count)
		describe_behind(j, o);
	list = json_put_array(j, "server_info");
	for (uint32_t i = 0; i < count; i++) {
		if (nodes)
			address_text(&nodes_at(nodes, (uint16_t)i)->server.address, address, sizeof(address));
		one = json_put_object(list, NULL);
		if (!nodes || strcmp(address, asked) == 0)
			describe_facts(one, o, &server->facts);
	}
}

static void describe_load(json_t *j, const struct options *o)
{
	static const char *const deployments[] = {"single", "cluster", "primary", "ring"};
	static const char *const read_from[] = {"primary", "replica", "any", "nearest"};

	char values[128];

	json_put_text(j, "deployment", deployments[o->deployment]);
	json_put_text(j, "read_from", read_from[o->read_from]);
	json_put_count(j, "wait_replicas", o->wait_replicas);
	json_put_text(j, "arrival",
		      o->replay && o->replay->timed && o->rate == 0 ? "recorded"
		      : !options_open_loop(o)			    ? "closed"
		      : o->arrival == ARRIVAL_POISSON		    ? "poisson"
								    : "constant");
	json_put_number(j, "rate", o->rate);
	json_put_count(j, "connections", o->connections);
	json_put_count(j, "idle", o->idle);
	json_put_count(j, "threads", o->threads);
	json_put_count(j, "pipeline", o->pipeline);
	json_put_count(j, "batch", o->batch);
	json_put_truth(j, "busy_poll", o->busy_poll);
	json_put_truth(j, "arrival_times", o->arrival_times);
	json_put_count(j, "requests", options_requests(o));
	json_put_number(j, "duration_s", (double)o->duration_ns * 1e-9);
	json_put_number(j, "warmup_s", (double)o->warmup_ns * 1e-9);
	json_put_count(j, "keys", o->keys);
	json_put_count(j, "fill", o->fill);
	value_sizes_describe(&o->sizes, values, sizeof(values));
	json_put_text(j, "values", values);
	json_put_count(j, "value_bytes", o->sizes.kind == SIZE_FIXED ? o->sizes.low : 0);
	json_put_count(j, "sets", o->mixed ? o->sets : 0);
	json_put_count(j, "gets", o->mixed ? o->gets : 0);
	if (o->log_mode == LOG_SLOW)
		json_put_count(j, "log_slow_ns", o->slow_ns);
	if (o->replay)
		json_put_text(j, "replay", o->replay_path);
	json_put_count(j, "seed", o->seed);
}

/* Of each operation its command in upper case; "" if it has several. A replay's operations are commands. */
static void describe_commands(json_t *j, const struct workload *w)
{
	json_t *list = json_put_array(j, "commands");
	char name[OPERATION_NAME];

	for (uint32_t i = 0; i < w->operation_count; i++) {
		const struct operation *op = &w->operations[i];

		snprintf(name, sizeof(name), "%s", op->step_count > 1 ? "" : op->name);
		if (op->step_count == 1 && op->steps[0].command.word_count)
			command_name(&op->steps[0].command, name, sizeof(name));
		json_put_text(list, NULL, name);
	}
}

static char *manifest_make(const struct options *o, const struct server *server, const struct nodes *nodes,
			   const struct workload *w, int argc, char **argv)
{
	json_t *j = json_object(), *list;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	json_put_text(j, "program", "forktail-load");
	json_put_text(j, "version", FORKTAIL_VERSION);
	json_put_text(j, "kind", "load");
	json_put_count(j, "start_ns", ft_now_ns());
	json_put_count(j, "start_unix_s", (uint64_t)now.tv_sec);
	json_put_count(j, "pid", (uint64_t)getpid());
	list = json_put_array(j, "argv");
	for (int i = 0; i < argc; i++)
		json_put_text(list, NULL, argv[i]);
	describe_host(j);
	list = json_put_array(j, "ops");
	for (uint32_t i = 0; i < w->operation_count; i++)
		json_put_text(list, NULL, w->operations[i].name);
	describe_commands(j, w);
	describe_servers(j, o, server, nodes);
	describe_load(j, o);
	return json_line(j);
}

/* A sentence must not follow the progress line on the same line, so that is ended first. The exit status
 * follows the sentences: an error of the environment takes precedence over an exceeded limit. */

void end_progress(struct run *r)
{
	if (r->progress_open)
		fputc('\n', stderr);
	r->progress_open = false;
}

void complain(struct run *r, const char *text)
{
	end_progress(r);
	fputs("forktail load: ", stderr);
	put_visible(stderr, text); /* it may contain text from a server */
	fputc('\n', stderr);
	r->status = EXIT_ENVIRONMENT;
}

void complain_of_limit(struct run *r, const char *text)
{
	int status = r->status;

	complain(r, text);
	r->status = status ? status : EXIT_NO;
}

/* The server knows where commands have their keys, so this comes after connecting to it, and before the load.
 */

struct slot_finder {
	struct command_table *table;
	const char **words;
	size_t *lengths, room, lengths_room;
};

/* The words in the form that cluster.h takes. */
static bool take_words(struct slot_finder *f, const struct replay_word *words, uint32_t count)
{
	if (!grow_to(&f->words, &f->room, count, sizeof(*f->words)) ||
	    !grow_to(&f->lengths, &f->lengths_room, count, sizeof(*f->lengths)))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		f->words[i] = words[i].at;
		f->lengths[i] = words[i].length;
	}
	return true;
}

static int slot_of(void *who, const struct replay_word *words, uint32_t count, uint16_t *slot)
{
	struct slot_finder *f = who;
	const struct command_keys *k;
	const redisReply *key;
	redisReply *answer;
	uint32_t first;

	if (!take_words(f, words, count))
		return -ENOMEM;
	k = command_table_find(f->table, count, f->words, f->lengths);
	if (!k)
		return -ECONNRESET;
	first = command_keys_first(k, count, f->words, f->lengths);
	if (first)
		*slot = cluster_slot(words[first].at, words[first].length);
	if (first || !k->ask)
		return 0;
	answer = command_table_ask(f->table, count, f->words, f->lengths, &key);
	if (!answer)
		return -ECONNRESET;
	if (key)
		*slot = cluster_slot(key->str, key->len);
	freeReplyObject(answer);
	return 0;
}

static int find_slots(struct run *r, char *error, size_t size)
{
	struct link *link = server_enter(&r->server, 0, error, size);
	struct slot_finder f = {.table = link ? command_table_new(link) : NULL};
	int rc = -ECONNREFUSED;

	if (link) {
		rc = f.table ? replay_find_slots(r->o->replay, slot_of, &f) : -ENOMEM;
		if (rc)
			snprintf(error, size, "%s",
				 rc == -ECONNRESET && *link_error(link)
				     ? link_error(link)
				     : "not enough memory for the keys of the recording");
	}
	command_table_free(f.table);
	free(f.words);
	free(f.lengths);
	link_free(link);
	return rc;
}

static int replay_setup(struct run *r, char *error, size_t size)
{
	const struct options *o = r->o;
	struct replay *replay = o->replay;
	uint32_t all = replay->count;
	bool by_key = o->replay_order == REPLAY_ORDER_KEY;
	int rc = 0;

	if (by_key || o->replay_share < 1 || o->deployment == DEPLOYMENT_CLUSTER)
		rc = find_slots(r, error, size);
	if (rc)
		return rc;
	/* Transactions of clients that share a connection must not mix. */
	rc = replay_find_transactions(replay, by_key || o->connections < replay->clients);
	if (rc == 0 && o->replay_share < 1)
		replay_sample(replay, o->replay_share, o->replay_seed);
	if (rc == 0 && replay->count == 0) {
		snprintf(error, size, "none of the %u commands of %s are in the sample or complete", all,
			 o->replay_path);
		return -ENODATA;
	}
	if (rc == 0 && o->requests)
		replay_limit(replay, o->requests);
	if (rc == 0 && o->rate > 0)
		replay_pace(replay, o->arrival, o->rate, o->seed);
	if (rc == 0 && by_key)
		replay_order_by_key(replay, o->connections);
	if (rc == 0)
		rc = replay_share(replay, o->connections);
	if (rc)
		snprintf(error, size, "not enough memory to replay %s", o->replay_path);
	if (o->deployment == DEPLOYMENT_CLUSTER)
		r->workload->recorded.slots = replay->slots;
	return rc;
}
