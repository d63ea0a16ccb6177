/* SPDX-License-Identifier: MIT */
/* A rate holds if all limits hold, the answers kept up with the rate, and no request failed: without the
 * last two conditions, a server that refuses or delays everything could meet a limit of its latency. */
#include "find_run.h"

#include <math.h>

#include "complain.h"
#include "loadgen/results/limit_figure.h"

/* The client is at its limit when a load thread needs this share of a core. */
#define CLIENT_LIMIT 0.95
/* Answers that arrive this share of the run, or this time, later than the fastest answer to the last request
 * could are behind the rate. */
#define BEHIND_SHARE 0.01
#define BEHIND_S 0.01
/* A run this much longer than planned shows a rate far above what the server takes. */
#define FAR_SHARE 0.1

static bool about_errors(const struct options *o)
{
	for (uint32_t i = 0; i < o->find_count; i++)
		if (o->find[i].figure == LIMIT_ERRORS || o->find[i].figure == LIMIT_ERROR_PERCENT)
			return true;
	return false;
}

/* Whether the rate held; `why` gets a sentence about the deciding figure. */
static enum search_verdict judge(const struct run *r, const struct result_figures *f, char *why, size_t size)
{
	const struct options *o = r->o;
	const struct operation_figures *total = &f->operations[TOTAL];
	double planned_s = (double)o->duration_ns * 1e-9,
	       behind_s = f->seconds - planned_s - (double)total->min_ns * 1e-9;
	double unanswered = (double)(total->requests - figures_answers(total));

	*why = 0;
	/* One such run is enough: a rate is not reported if its requests sometimes fail. */
	if (!about_errors(o) && total->errors) {
		snprintf(why, size, "%llu of %llu requests failed", (unsigned long long)total->errors,
			 (unsigned long long)total->requests);
		return SEARCH_FAILED_FAR;
	}
	if (behind_s > fmax(FAR_SHARE * planned_s, 5 * BEHIND_S) ||
	    unanswered > FAR_SHARE * (double)total->requests) {
		snprintf(why, size, "the answers did not keep up with the rate");
		return SEARCH_FAILED_FAR;
	}
	if (behind_s > fmax(BEHIND_SHARE * planned_s, BEHIND_S)) {
		snprintf(why, size, "the last answer came %.3f s after the end", behind_s);
		return SEARCH_FAILED;
	}
	for (uint32_t i = 0; i < o->find_count; i++) {
		const struct limit *l = &o->find[i];
		double value = limit_figure(f, limit_operation(f, r->workload, l), l);

		limit_sentence(l, LIMIT_HAS_TO_HOLD, value, why, size);
		if (limit_broken(l, LIMIT_HAS_TO_HOLD, value))
			return SEARCH_FAILED;
	}
	return SEARCH_HELD;
}

static void print_run(struct run *r, bool held, const char *why)
{
	if (!r->o->progress)
		return;
	end_progress(r);
	fprintf(stderr, "%.10g/s %s: %s\n", r->rate, held ? "held" : "failed", why);
}

void find_take(struct run *r, const struct phase *p, const struct result_figures *f, json_t *figures)
{
	struct find *find = r->find;
	struct curve_run *run = &find->runs[find->count];
	bool client = f->busiest >= CLIENT_LIMIT && !r->o->busy_poll && !r->o->blocking;
	enum search_verdict verdict;
	char why[192];

	find->told = true;
	if (r->rate == 0) {
		find->closed_rps = figures_per_second(f, (double)figures_answers(&f->operations[TOTAL]));
		return;
	}
	verdict = judge(r, f, why, sizeof(why));
	*run = (struct curve_run){.rate = r->rate, .busiest = f->busiest, .held = verdict == SEARCH_HELD};
	report_summarize(&run->figures, p->name, f);
	find->count++;
	json_put_number(figures, "rate", r->rate);
	json_put_truth(figures, "held", run->held);
	json_put_text(figures, "why", why);
	print_run(r, run->held, why);
	if (find->outside)
		return;
	find->begin_ns[find->search.current] = p->plan.measure_ns ? p->plan.measure_ns : p->plan.start_ns;
	find->end_ns[find->search.current] = p->totals->last_end_ns;
	search_tell(&find->search, verdict, client);
}
