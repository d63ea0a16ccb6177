/* SPDX-License-Identifier: MIT */
/* The end of a test: its figures, error messages, its table, and its limits. */
#include "phase_report.h"

#include <stdlib.h>
#include <string.h>

#include "common/text/visible.h"
#include "complain.h"
#include "find_run.h"
#include "loadgen/models/replay_lanes.h"
#include "loadgen/models/routing.h"
#include "loadgen/output/node_report.h"
#include "loadgen/results/limit_figure.h"
#include "phase_deliveries.h"
#include "recording/json/json_block.h"
#include "recording/recording.h"

static void complain_of_replay(struct run *r, struct phase *p)
{
	const struct replay *replay = r->o->replay;
	uint64_t abandoned = 0;
	int64_t refused = -1;
	char text[160];

	for (uint32_t i = 0; i < p->thread_count; i++) {
		abandoned += replay_abandoned_count(&p->threads[i]);
		if (replay_refused_database(&p->threads[i]) >= 0)
			refused = replay_refused_database(&p->threads[i]);
	}
	if (refused >= 0) {
		snprintf(text, sizeof(text),
			 "%s database %lld, which the recording uses. Its commands were not sent",
			 r->nodes ? "a cluster has no" : "the server refused", (long long)refused);
		complain(r, text);
	}
	if (abandoned) {
		snprintf(text, sizeof(text),
			 "%llu commands were not sent because their connections were lost",
			 (unsigned long long)abandoned);
		complain(r, text);
	}
	/* Every live file may have a truncated tail; after other damage, commands are missing. */
	if (replay && replay->damage && !replay->cut)
		r->status = EXIT_ENVIRONMENT;
}

/* Prints a sentence for each problem. */
static void complain_of(struct run *r, struct phase *p, const struct result_figures *f)
{
	const uint64_t *status = f->operations[TOTAL].status;
	const char *why = NULL;
	uint32_t lost = 0, away = 0, all = 0;
	uint64_t drops = 0;
	char text[512];

	for (uint32_t i = 0; i < p->thread_count; i++) {
		const struct load_thread *t = &p->threads[i];

		lost += t->trouble.lost;
		all += thread_connections(t);
		for (uint32_t k = 0; k < thread_connections(t); k++) {
			const struct connection *c = thread_connection(t, k);
			away += c->fd < 0 && c->life.backoff_ms > 0;
		}
		drops += t->lane.all_drops + (i == 0 ? p->delivery_counts.log_drops : 0);
		if (t->trouble.why)
			why = t->trouble.why;
		if (t->trouble.wrong.found) {
			snprintf(text, sizeof(text),
				 "--verify: the value of key number %llu is not what was written: %s%lld",
				 (unsigned long long)t->trouble.wrong.key,
				 t->trouble.wrong.offset < 0 ? "unexpected type of reply, code "
							     : "the first wrong byte is at offset ",
				 (long long)t->trouble.wrong.offset);
			complain_of_limit(r, text);
		}
	}
	if (status[FT_STATUS_TIMEOUT] + status[FT_STATUS_UNSENT] && r->end == RUN_DONE && lost < all &&
	    away < all && !r->o->timeout_ns && !r->find) {
		snprintf(
		    text, sizeof(text),
		    "within --drain after the end, %llu requests were not answered and %llu were not sent",
		    (unsigned long long)status[FT_STATUS_TIMEOUT],
		    (unsigned long long)status[FT_STATUS_UNSENT]);
		complain(r, text);
	}
	if (r->end == RUN_ERRORS) {
		snprintf(text, sizeof(text), "stopped at an error (%s)",
			 r->o->on_error == ON_ERROR_STOP ? "--on-error stop" : "--max-errors");
		complain(r, text);
	}
	if (all > 0 && (lost == all || away == all)) {
		size_t length = (size_t)snprintf(text, sizeof(text), "all %u connections were lost%s: %s",
						 all, lost == all ? "" : " and not reopened before the end",
						 why ? why : "the reason is not known");

		if (status[FT_STATUS_UNSENT] && length < sizeof(text))
			snprintf(text + length, sizeof(text) - length,
				 ". %llu requests that were due by the planned end were never sent",
				 (unsigned long long)status[FT_STATUS_UNSENT]);
		complain(r, text);
		if (r->end == RUN_DONE)
			r->end = RUN_SERVER_LOST;
	} else if (lost > 0) {
		fprintf(stderr, "forktail-load: %u of %u connections were lost: ", lost, all);
		put_visible(stderr, why ? why : "the reason is not known");
		fputc('\n', stderr);
	}
	complain_of_replay(r, p);
	if (drops)
		fprintf(stderr,
			"forktail-load: the disk was too slow: %llu requests are missing from the log\n",
			(unsigned long long)drops);
}

/* "ERR unknown command 'FROB'; no answer": the first text of each kind of error. */
static void errors_text(const struct result_figures *f, char *out, size_t size)
{
	size_t at = 0;

	*out = 0;
	for (int i = 0; i < ERROR_WORDS && f->errors[i].times.count && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "; " : "",
				       *f->errors[i].text ? f->errors[i].text : f->errors[i].word);
	for (unsigned k = 0; k < STATUSES && at < size; k++)
		if (status_is_error(k) && k != FT_STATUS_ERROR_REPLY && f->operations[TOTAL].status[k])
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "; " : "", status_names[k]);
}

static const struct error_word *moved_reply(const struct result_figures *f)
{
	for (int i = 0; i < ERROR_WORDS && f->errors[i].times.count; i++)
		if (strcmp(f->errors[i].word, "MOVED") == 0)
			return &f->errors[i];
	return NULL;
}

/* A test that shows nothing about the server: all of its requests failed, or only one node of a cluster was
 * asked. A search runs rates that are too high, so there it counts for the closed loop only. `explained`: a
 * sentence has said why requests failed. */
static void complain_of_failure(struct run *r, const struct result_figures *f, const char *test,
				bool explained)
{
	const struct operation_figures *total = &f->operations[TOTAL];
	const struct error_word *moved = r->o->deployment == DEPLOYMENT_CLUSTER ? NULL : moved_reply(f);
	int status = r->status;
	char text[512], errors[384];

	if (moved) {
		snprintf(text, sizeof(text),
			 "%llu of %llu requests were answered with MOVED (first: %s), because the server is "
			 "a node of a cluster. Use --cluster",
			 (unsigned long long)moved->times.count, (unsigned long long)total->requests,
			 moved->text);
	} else {
		if (explained || !total->requests || total->errors < total->requests ||
		    (r->find && r->rate > 0))
			return;
		errors_text(f, errors, sizeof(errors));
		if (r->suite.count > 1)
			snprintf(text, sizeof(text), "%s: every request failed: %s", test, errors);
		else
			snprintf(text, sizeof(text), "every request failed: %s", errors);
	}
	complain(r, text);
	r->status = status;
	r->moved |= moved != NULL;
	r->failed_tests++;
}

static void check_limits(struct run *r, const struct result_figures *f, const char *name)
{
	char sentence[192], text[256];

	for (uint32_t i = 0; i < r->o->limit_count; i++) {
		const struct limit *l = &r->o->limits[i];
		const struct operation_figures *o = limit_operation(f, r->workload, l);
		double value = limit_figure(f, o, l);

		if (!o && r->suite.count > 1)
			continue; /* belongs to another test */
		if (!limit_broken(l, LIMIT_FAILS_IF, value))
			continue;
		limit_sentence(l, LIMIT_FAILS_IF, value, sentence, sizeof(sentence));
		snprintf(text, sizeof(text), "%s: %s", name, sentence);
		complain_of_limit(r, text);
	}
}

/* Writes a histogram to the log if single requests are not logged. */
static void log_histograms(struct run *r, const struct phase *p)
{
	for (uint32_t i = 0; i < r->workload->operation_count; i++) {
		const struct operation_stats *s = p->totals->operations[i];
		json_t *b, *slots;

		if (!s)
			continue;
		b = json_object();
		json_put_text(b, "test", p->name);
		json_put_text(b, "operation", r->workload->operations[i].name);
		json_put_count(b, "op", i);
		json_put_count(b, "start_ns", p->plan.measure_ns ? p->plan.measure_ns : p->plan.start_ns);
		json_put_count(b, "end_ns", p->totals->last_end_ns);
		json_put_count(b, "sub_bits", FT_HIST_SUB_BITS);
		json_put_count(b, "count", s->latency.count);
		json_put_count(b, "min_ns", s->latency.min_ns);
		json_put_count(b, "max_ns", s->latency.max_ns);
		slots = json_put_array(b, "slots"); /* [highest value in ns, count], ... */
		for (unsigned k = 0; k < FT_HIST_SLOTS; k++) {
			json_t *slot;

			if (!s->latency.slots[k])
				continue;
			slot = json_put_array(slots, NULL);
			json_put_count(slot, NULL, ft_histogram_slot_value(k));
			json_put_count(slot, NULL, s->latency.slots[k]);
		}
		write_json_block(request_log_writer(r->log), FT_BLOCK_HISTOGRAM, b);
	}
}

static void exact_from_log(struct run *r, struct phase *p, struct result_figures *f)
{
	if (!r->log || request_log_error(r->log))
		return;
	request_log_drain(r->log);
	if (r->o->log_mode == LOG_SLOW)
		log_histograms(r, p);
	ft_writer_flush(request_log_writer(r->log));
	if (r->o->log_mode == LOG_ALL)
		figures_from_log(f, r->o->log_path, p->log_offset, p->plan.measure_ns);
}

/* The merged outages of all threads, which the caller frees. NULL: one server, or no memory. */
static struct outages *all_outages(const struct run *r, const struct phase *p)
{
	struct outages *all = r->nodes ? calloc(1, sizeof(*all)) : NULL;

	for (uint32_t i = 0; all && i < p->thread_count; i++)
		if (p->threads[i].routing)
			outages_add(all, routing_outages(&p->threads[i]));
	if (all)
		outages_drop_unfelt(all);
	return all;
}

static void print(struct run *r, struct phase *p, const struct result_figures *f, const struct outages *o)
{
	char headline[256];

	if (r->csv) {
		report_csv_row(r->csv, p->name, f);
		fflush(r->csv);
	}
	if (r->csv != stdout) {
		report_headline(headline, sizeof(headline), r->o, p->name);
		report_table(stdout, f, r->workload, headline, p->plan.start_ns);
		if (o)
			node_report(stdout, r->nodes, p->totals, o, p->plan.start_ns, f->seconds);
		if (r->o->replay)
			replay_describe(r->o->replay, stdout);
		if (r->o->distribution_table)
			report_distribution(stdout, p->totals);
		fflush(stdout);
	}
}

void phase_report(struct run *r, struct phase *p, double cpu_s)
{
	uint64_t last = p->totals->last_end_ns, now = ft_now_ns(), busiest_ns = 0;
	uint64_t begin = p->plan.measure_ns ? p->plan.measure_ns : p->plan.start_ns;
	uint64_t end = last > begin ? last : now;
	struct result_figures *f = malloc(sizeof(*f));
	struct outages *o;
	json_t *figures;
	int status = r->status;

	if (!f) {
		complain(r, "not enough memory for the figures");
		return;
	}
	figures_from_stats(f, p->totals, &r->o->wanted, (double)(end - begin) * 1e-9);
	f->cpu_s = cpu_s;
	f->by_second.count = p->rates.count;
	f->by_second.most = second_rates_reached(&p->rates, 99);
	f->by_second.half = second_rates_reached(&p->rates, 50);
	f->by_second.all = second_rates_reached(&p->rates, 100);
	for (uint32_t i = 0; i < p->started; i++) {
		f->log_drops += p->threads[i].lane.all_drops;
		if (p->threads[i].cpu_ns > busiest_ns)
			busiest_ns = p->threads[i].cpu_ns;
	}
	f->busiest = (double)busiest_ns / (double)(now - p->plan.start_ns);
	o = all_outages(r, p);
	if (o && r->log)
		node_report_notes(request_log_writer(r->log), r->nodes, o);
	exact_from_log(r, p, f);
	r->status = EXIT_DONE;
	complain_of(r, p, f);
	complain_of_failure(r, f, p->name, r->status != EXIT_DONE);
	if (r->status == EXIT_DONE || status == EXIT_ENVIRONMENT)
		r->status = status;
	figures = json_put_object(r->runs, NULL);
	if (r->find) {
		find_take(r, p, f, figures);
	} else {
		print(r, p, f, o);
		if (p->deliveries)
			phase_deliveries_report(r, p, r->csv == stdout ? NULL : stdout);
		check_limits(r, f, p->name);
		report_summarize(&r->summaries[r->summary_count++], p->name, f);
	}
	json_put_text(figures, "name", p->name);
	json_put_count(figures, "start_ns", begin);
	json_put_count(figures, "end_ns", end);
	report_json(figures, f, r->workload);
	if (p->deliveries)
		phase_deliveries_json(p, r->o, figures);
	if (o)
		node_report_json(figures, r->nodes, p->totals, o);
	free(o);
	free(f);
}
