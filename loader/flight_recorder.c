/* SPDX-License-Identifier: MIT */
/* Continuous recording in segments. Each segment must be explainable on its own. So each repeats the
 * information that a recording contains once, and counts from its own beginning. */
#include "loader/flight_recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/manager/manager.h"
#include "loader/manifest.h"
#include "loader/self_report.h"
#include "loader/sockets/sockets.h"
#include "loader/system/cpu_time.h"
#include "loader/targets/descriptions.h"
#include "recording/json/json_block.h"

#define OPEN_NS 1000000000ull
#define CALM_NS 3000000000ull
#define ALIVE_NS 1000000000ull

int flight_recorder_open(struct recorder *r)
{
	const struct record_options *o = r->options;
	struct file_owner user;
	const char *why;
	if (file_owner_find(o->user, &user)) {
		fprintf(stderr, "forktail record: --user: no such user: %s\n", o->user);
		return 3;
	}
	if (segments_open(&r->ring, o->output, &o->keep, &user, &why)) {
		fprintf(stderr, "forktail record: cannot use the directory %s for a ring: %s\n", o->output,
			why);
		return 3;
	}
	return 0;
}

int flight_recorder_start_guard(struct recorder *r)
{
	const struct record_options *o = r->options;
	r->manager = manager_connect(getenv("NOTIFY_SOCKET")); /* now: its filter will allow no sockets */
	int err = o->guard.count ? guard_start(&o->guard, o->output, segments_owner(r->ring)) : 0;
	if (err)
		fprintf(stderr,
			"forktail record: cannot start forktail-guard, which must be in the directory of "
			"forktail-record%s: %s\n",
			err == -EACCES ? " and accessible to the ring's user" : "", strerror(-err));
	return err ? 3 : 0;
}

/* Returns the manifest of the segment that begins now. The caller frees it. */
static char *segment_manifest(struct recorder *r, uint64_t number)
{
	if (!r->manifest)
		r->manifest =
		    manifest(r->options, json_array(), &r->support, r->programs, r->start_ns, r->missing);
	json_put(r->manifest, "targets", descriptions_all(r->descriptions));
	json_put_count(r->manifest, "start_ns", r->start_ns);
	json_put_count(r->manifest, "ring_start_ns", r->ring_start_ns);
	json_put_count(r->manifest, "segment", number);
	json_put_text(r->manifest, "keep", r->options->keep_text);
	requests_manifest(r->requests, r->manifest);
	return r->manifest ? json_dumps(r->manifest, JSON_COMPACT) : NULL;
}

int flight_recorder_begin(struct recorder *r)
{
	r->ring_start_ns = r->start_ns;
	r->segments = 1;
	char *text = segment_manifest(r, segments_number(r->ring) + 1);
	int err = text ? segments_begin(r->ring, &r->writer, text, r->start_ns) : -ENOMEM;
	free(text);
	return err;
}

/* Writes the information from earlier segments that the new segment needs. */
static void begin_segment(struct recorder *r)
{
	report_clock(r);
	threads_begin_segment(&r->threads, r->writer);
	drain_begin_segment(&r->drain);
	samples_begin_segment(r->drain.samples);
	proc_metrics_begin_segment(r->metrics);
	quotas_begin_segment(r->quotas);
	sockets_begin_segment(r->drain.sockets);
	readers_begin_segment(r->readers);
	requests_begin_segment(r->requests);
	drain_write_open(&r->drain);
	self_report_begin_segment(r);
}

/* Once per second, or so rarely that on a host with very many threads it takes a thousandth of a CPU. */
static void ask_for_open(struct recorder *r)
{
	uint64_t begin_ns = ft_now_ns(), cpu_ns = own_cpu_ns();
	r->drain.open_count = 0;
	programs_report_open(r->programs);
	programs_drain(r->programs);
	drain_write_open(&r->drain);
	uint64_t wait_ns = 1000 * (own_cpu_ns() - cpu_ns);
	r->open_due_ns = begin_ns + (wait_ns > OPEN_NS ? wait_ns : OPEN_NS);
}

static void next_segment(struct recorder *r)
{
	ask_for_open(r);
	requests_flush(r->requests, r->writer);
	report_drops(r);
	report_misses(r);
	report_clock(r);
	report_cost(r);
	uint64_t now = ft_now_ns();
	char *summary = summary_text(r, "segment", now, json_array());
	r->start_ns = now;
	char *text = segment_manifest(r, segments_number(r->ring) + 1);
	if (summary && text && segments_next(r->ring, r->writer, text, summary, now) == 0) {
		r->segments++;
		begin_segment(r);
	}
	free(summary);
	free(text);
}

/* Write errors do not end the recorder: a ring with a gap is better than none. The error is over after a
 * period without errors, because removing old segments may allow short writes repeatedly. */
static void print_disk_state(struct recorder *r, uint64_t now)
{
	static const char alive[] = "WATCHDOG=1";
	int err = ft_writer_error(r->writer);
	if (err)
		r->disk_error_ns = now;
	/* The guard reports to the manager what it finds in the ring. While nothing can be written there it
	 * cannot distinguish a disk that refuses to write from a recorder that hangs. */
	if (err && now - r->alive_ns > ALIVE_NS) {
		r->alive_ns = now;
		manager_send(r->manager, alive, sizeof alive - 1);
	}
	if (err && !r->disk_error_reported) {
		fprintf(
		    stderr,
		    "forktail record: cannot write to %s: %s. Events are lost until writing works again\n",
		    r->options->output, strerror(-err));
		r->disk_error_reported = true;
	} else if (r->disk_error_reported && now - r->disk_error_ns > CALM_NS) {
		fprintf(stderr, "forktail record: writing to %s works again\n", r->options->output);
		r->disk_error_reported = false;
	}
}

void flight_recorder_tick(struct recorder *r)
{
	uint64_t now = ft_now_ns();
	bool again = segments_recover(r->ring, r->writer, now);
	print_disk_state(r, now);
	if (now >= r->open_due_ns)
		ask_for_open(r);
	if (again || segments_due(r->ring, r->writer, now))
		next_segment(r);
}

void flight_recorder_reload(struct recorder *r)
{
	write_json_note(r->writer, json_note(ft_now_ns(), "reload"));
	ft_writer_flush(r->writer);
}

void flight_recorder_trigger(struct recorder *r)
{
	json_t *note = json_note(ft_now_ns(), "trigger");
	json_put_text(note, "name", "SIGUSR1");
	write_json_note(r->writer, note);
	ft_writer_flush(r->writer);
}
