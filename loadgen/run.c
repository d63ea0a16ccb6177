/* SPDX-License-Identifier: MIT */
/* The frame around the tests: is the server there, the log's beginning and end, which tests, the closing
 * words. */
#include "run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "connect.h"
#include "manifest.h"
#include "phase.h"
#include "recording/recording.h"

static void run_phases(struct run *r)
{
	const struct options *o = r->o;
	struct workload w = {.keys = o->keys ? o->keys : 1};

	if (o->fill) {
		w.used[OPERATION_SET] = w.sequential = true;
		run_phase(r, "fill", &w);
		return;
	}
	if (o->mixed) {
		w.mixed = o->sets > 0 && o->gets > 0;
		w.used[OPERATION_SET] = o->sets > 0;
		w.used[OPERATION_GET] = o->gets > 0;
		w.set_share = (uint64_t)(((unsigned __int128)o->sets << 64) / ((uint64_t)o->sets + o->gets));
		run_phase(r, "SET+GET", &w);
		return;
	}
	/* As redis-benchmark has them, whatever the order they're named in: SET first, so that GET finds. */
	for (int i = OPERATIONS - 1; i >= 0 && r->status == 0 && r->end == RUN_DONE; i--) {
		if (!o->tests[i])
			continue;
		memset(w.used, 0, sizeof(w.used));
		w.used[i] = true;
		run_phase(r, operation_names[i], &w);
	}
}

/* What goes to --json and into the recording as its summary; to be freed. */
static char *closing_words(struct run *r, const char *runs)
{
	char *text = NULL;
	size_t size = 0;
	struct json j = {open_memstream(&text, &size), true};
	int error = r->log ? request_log_error(r->log) : 0;

	if (!j.to)
		return NULL;
	json_begin(&j, NULL, '{');
	json_text(&j, "program", "forktail-load");
	json_text(&j, "version", FORKTAIL_VERSION);
	json_text(&j, "reason", run_end_names[r->end]);
	json_count(&j, "end_ns", ft_now_ns());
	json_text(&j, "log", r->log ? r->o->log_path : "");
	json_text(&j, "log_error", error ? strerror(-error) : "");
	fprintf(j.to, ",\"runs\":%s", runs);
	json_end(&j, '}');
	if (fclose(j.to) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void write_json(struct run *r, const char *text)
{
	FILE *f = fopen(r->o->json_path, "w");
	char message[512];
	bool good = f && fprintf(f, "%s\n", text) > 0;

	if (f && fclose(f) != 0)
		good = false;
	if (!good) {
		snprintf(message, sizeof(message), "can't write %s: %s", r->o->json_path, strerror(errno));
		complain(r, message);
	}
}

static int open_log(struct run *r, const struct server_facts *facts, int argc, char **argv)
{
	char *manifest = manifest_make(r->o, facts, argc, argv), text[512];
	int rc = manifest ? request_log_open(&r->log, r->o->log_path, manifest, r->o->threads) : -ENOMEM;

	free(manifest);
	if (rc) {
		snprintf(text, sizeof(text), "can't write the log %s: %s", r->o->log_path, strerror(-rc));
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
		snprintf(text, sizeof(text), "the log %s ends before the run did: %s", r->o->log_path,
			 strerror(-rc));
		complain(r, text);
	}
}

int run_load(const struct options *o, int argc, char **argv)
{
	struct run r = {.o = o, .signal_fd = -1};
	struct server_facts facts;
	char error[512], *runs = NULL, *summary;
	size_t size = 0;
	sigset_t signals;

	signal(SIGPIPE, SIG_IGN); /* a server that closes is an error to report, also while connecting */
	if (descriptors_reserve(o->connections, error, sizeof(error)) ||
	    server_probe(o, &facts, error, sizeof(error))) {
		complain(&r, error);
		return r.status;
	}
	if (o->log_path && open_log(&r, &facts, argc, argv))
		return r.status;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	r.signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	r.runs = (struct json){open_memstream(&runs, &size), true};
	if (r.signal_fd >= 0 && r.runs.to) {
		json_begin(&r.runs, NULL, '[');
		run_phases(&r);
		json_end(&r.runs, ']');
	} else {
		complain(&r, "not enough memory or descriptors to begin");
	}
	if (r.runs.to)
		fclose(r.runs.to);
	summary = runs ? closing_words(&r, runs) : NULL;
	if (summary && o->json_path)
		write_json(&r, summary);
	close_log(&r, summary);
	free(summary);
	free(runs);
	if (r.signal_fd >= 0)
		close(r.signal_fd);
	return r.status;
}
