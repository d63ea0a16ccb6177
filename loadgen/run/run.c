/* SPDX-License-Identifier: MIT */
/* The frame around the tests: checks the server, opens the log, runs the tests, prints the end. */
#include "run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/files/output.h"
#include "complain.h"
#include "find.h"
#include "loadgen/cluster/proxy_ring.h"
#include "loadgen/cluster/route.h"
#include "loadgen/cluster/topology.h"
#include "loadgen/net/link.h"
#include "loadgen/observer/observer.h"
#include "loadgen/server/connect.h"
#include "manifest.h"
#include "phase.h"
#include "recording/recording.h"
#include "replay_setup.h"
#include "wakeups.h"

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
	};
	struct observer *observer = NULL;

	/* A run without the observer is still valid. */
	if (r->log && !o->no_observer && observer_start(&observer, &server, request_log_writer(r->log)))
		fprintf(stderr, "forktail-load: cannot start the server's observer: INFO, SLOWLOG and "
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
