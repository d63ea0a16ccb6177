/* SPDX-License-Identifier: MIT */
/* Written to the recording at intervals or on change. In a ring, every segment has its own reports that count
 * from its beginning, so those of several segments add up. */
#include "loader/self_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader/system/cpu_time.h"
#include "loader/system/text.h"
#include "loader/system/watchdog.h"
#include "recording/json/json_block.h"

void report_drops(struct recorder *r)
{
	uint64_t now = ft_now_ns(), drops[FT_DROP_SLOTS];
	programs_drops(r->programs, drops);
	drops[FT_DROP_SLOT_UNWIND] = samples_so_far(r->drain.samples).unwinding.not_unwound;
	drops[FT_DROP_SLOT_REQUESTS] = requests_so_far(r->requests).dropped_events;
	losses_dropped(&r->losses, r->writer, drops, now);
}

/* A read takes one system call per program, so it happens less often than reading drops. */
void report_misses(struct recorder *r)
{
	struct program_cost costs[PROGRAMS_MAX];
	uint64_t now = ft_now_ns();
	losses_missed(&r->losses, r->writer, costs, programs_costs(r->programs, costs, PROGRAMS_MAX), now);
}

static uint64_t rss_bytes(pid_t pid)
{
	unsigned long pages = 0;
	char text[64];
	if (pid && read_proc(pid, "statm", text, sizeof text) > 0 && sscanf(text, "%*u %lu", &pages) != 1)
		pages = 0;
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Switches the kernel's statistics and counts how long they were on. */
void measure_cost(struct recorder *r, bool on)
{
	const uint64_t now = ft_now_ns(), on_ns = !on && r->measure_from_ns ? now - r->measure_from_ns : 0;
	r->measured_ns += on_ns;
	if (on_ns)
		r->measure_from_ns = 0;
	if (programs_measure(r->programs, on) && !r->measure_from_ns)
		r->measure_from_ns = now;
	requests_measured(r->requests, on_ns);
}

/* Totals are extrapolated from the time the statistics were on to the whole recording or segment. */
void report_cost(struct recorder *r)
{
	struct program_cost costs[PROGRAMS_MAX];
	size_t n = programs_costs(r->programs, costs, PROGRAMS_MAX);
	uint64_t now = ft_now_ns();
	uint64_t on_ns = r->measured_ns + (r->measure_from_ns ? now - r->measure_from_ns : 0);
	double scale = on_ns ? (double)(now - r->base.t_ns) / (double)on_ns : 0;
	uint64_t counters[FT_COUNTERS];
	programs_counters(r->programs, counters);
	for (int i = 0; i < FT_COUNTERS; i++)
		counters[i] -= r->base.counters[i];
	const struct unwind_queue_figures unwinding = samples_so_far(r->drain.samples).unwinding;
	json_t *programs = json_array();
	double total_ns = 0;
	for (size_t i = 0; i < n; i++) {
		if (!costs[i].runs)
			continue;
		double run_ns = (double)costs[i].run_ns;
		total_ns += run_ns * scale;
		json_array_append_new(programs, json_pack("{s:s, s:I, s:f, s:I}", "name", costs[i].name,
							  "runs", (json_int_t)((double)costs[i].runs * scale),
							  "ns_per_run", run_ns / (double)costs[i].runs,
							  "total_ns", (json_int_t)(run_ns * scale)));
	}
	const char *name;
	json_t *o = json_object();
	json_put_count(o, "t_ns", now);
	json_put_count(o, "bpf_ns", (uint64_t)total_ns);
	json_put(o, "bpf_ns_is_estimate", json_true());
	json_put_count(o, "measured_ns", on_ns);
	json_put_count(o, "recorder_cpu_ns",
		       own_cpu_ns() - r->base.cpu_ns + unwinding.helper_cpu_ns +
			   requests_so_far(r->requests).helper_cpu_ns - r->base.helper_cpu_ns);
	json_put_count(o, "load_cpu_ns", r->load_cpu_ns);
	json_put_count(o, "recorder_rss_bytes",
		       rss_bytes(getpid()) + rss_bytes(unwinding.helper) + rss_bytes(unwinding.files_helper) +
			   rss_bytes(requests_so_far(r->requests).helper));
	json_put_count(o, "fault_begins", counters[FT_COUNT_FAULT_BEGIN]);
	json_put_count(o, "fault_ends", counters[FT_COUNT_FAULT_END]);
	json_put_count(o, "faults_abandoned", counters[FT_COUNT_FAULT_ABANDONED]);
	json_put_count(o, "fault_ends_unpaired", counters[FT_COUNT_FAULT_UNPAIRED]);
	json_put_count(o, "irqs_unpaired", counters[FT_COUNT_IRQ_UNPAIRED]);
	json_put_count(o, "switches_unseen", counters[FT_COUNT_SWITCH_UNSEEN]);
	json_put_count(o, "cpu_samples", counters[FT_COUNT_SAMPLE]);
	json_put_count(o, "unwound", unwinding.unwound - r->base.unwound);
	json_put_count(o, "unwind_ns", unwinding.unwind_ns - r->base.unwind_ns);
	json_put(o, "programs", programs);
	/* Since the recorder began. */
	json_t *deaths = json_put_object(o, "helper_deaths");
	uint64_t count = 0;
	for (size_t i = 0; (name = helper_deaths(i, &count)); i++)
		json_put_count(deaths, name, count);
	json_put_count(o, "main_loop_stalls", watchdog_stalls());
	write_json_block(r->writer, FT_BLOCK_COST, o);
}

static void on_cpu(void *context, int cpu, int error)
{
	struct recorder *r = context;
	char what[160], why[160];
	snprintf(
	    what, sizeof what,
	    "page faults and CPU samples on CPU %d%s: copy-on-write counted as on-CPU time of the server",
	    cpu, error ? "" : " for a moment");
	snprintf(why, sizeof why, "the CPU came online, and its perf events %s%s",
		 error ? "cannot be opened: " : "were opened again", error ? strerror(-error) : "");
	fprintf(stderr, "forktail record: CPU %d came online: %s\n", cpu,
		error ? why : "its page faults and samples are recorded again");
	json_t *note = json_note(ft_now_ns(), "missing");
	json_put_text(note, "what", what);
	json_put_text(note, "why", why);
	write_json_note(r->writer, note);
}

void report_cpus(struct recorder *r)
{
	programs_follow_cpus(r->programs, on_cpu, r);
}

void report_clock(struct recorder *r)
{
	struct ft_clock c;
	ft_clock_read(&c);
	ft_writer_record(r->writer, FT_BLOCK_CLOCK, &c);
}

void self_report_begin_segment(struct recorder *r)
{
	const struct unwind_queue_figures unwinding = samples_so_far(r->drain.samples).unwinding;
	r->base = (struct self_report_base){.t_ns = ft_now_ns(),
					    .cpu_ns = own_cpu_ns(),
					    .helper_cpu_ns = unwinding.helper_cpu_ns +
							     requests_so_far(r->requests).helper_cpu_ns,
					    .unwound = unwinding.unwound,
					    .unwind_ns = unwinding.unwind_ns,
					    .lost = losses_total(&r->losses) + ft_writer_lost(r->writer)};
	programs_counters(r->programs, r->base.counters);
}

char *summary_text(struct recorder *r, const char *reason, uint64_t end_ns, json_t *ended)
{
	uint64_t lost = losses_total(&r->losses) + ft_writer_lost(r->writer) - r->base.lost;
	json_t *o =
	    json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:I}", "end_ns", (json_int_t)end_ns, "reason", reason,
		      "spans", (json_int_t)r->drain.spans, "tallies", (json_int_t)r->drain.tallies, "io",
		      (json_int_t)r->drain.io, "cpu_samples",
		      (json_int_t)samples_so_far(r->drain.samples).samples, "dropped", (json_int_t)lost);
	json_put(o, "ended", ended);
	char *text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}
