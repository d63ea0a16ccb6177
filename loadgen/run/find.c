/* SPDX-License-Identifier: MIT */
/* The search for the highest rate that holds.
 *
 * The first run is a closed loop: it shows about how much the server can take, so that the search begins near
 * the answer. Every other run is an open loop, in which latency counts from when requests were due. */
#include "find.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "loadgen/results.h"
#include "run_state.h"
#include "search.h"

/* The search begins at this share of the closed loop's throughput. */
#define FIRST_SHARE 0.5

int find_check(const struct options *o, const struct workload *w, char *error, size_t size)
{
	for (uint32_t i = 0; i < o->find_count; i++) {
		bool known = !o->find[i].of[0];

		for (uint32_t k = 0; k < w->operation_count; k++)
			known |= strcasecmp(w->operations[k].name, o->find[i].of) == 0;
		if (!known) {
			snprintf(error, size, "--find: the load has no operation \"%s\"", o->find[i].of);
			return -EINVAL;
		}
	}
	return 0;
}

static bool can_go_on(const struct run *r)
{
	return r->find->told && r->end == RUN_DONE && !r->failed_tests && r->status != EXIT_ENVIRONMENT;
}

/* Runs the test at a rate; 0: as a closed loop. False: the search cannot go on. */
static bool run_at(struct run *r, double rate)
{
	struct test test = r->suite.tests[0];
	size_t length = strlen(test.name);

	r->rate = rate;
	r->find->told = false;
	if (rate > 0)
		snprintf(test.name + length, sizeof(test.name) - length, " at %.10g/s", rate);
	run_phase(r, &test);
	return can_go_on(r);
}

/* ---- the search ---- */

static bool search(struct run *r)
{
	struct find *find = r->find;
	double rate = r->o->rate;

	if (rate == 0) {
		if (!run_at(r, 0))
			return false;
		rate = find->closed_rps * FIRST_SHARE;
		if (rate < 1) {
			complain_of_limit(r,
					  "a closed loop got less than two answers per second, so there is "
					  "no rate to search. Set --rate or a longer --duration");
			return false;
		}
	}
	search_begin(&find->search, rate, r->o->repeat);
	while ((rate = search_next(&find->search)) > 0)
		if (!run_at(r, rate))
			return false;
	return true;
}

/* Whether a run at the rate failed, and another one after it. */
static bool fails_twice(struct run *r, double rate)
{
	const struct find *find = r->find;

	return run_at(r, rate) && !find->runs[find->count - 1].held && run_at(r, rate) &&
	       !find->runs[find->count - 1].held;
}

/* Runs rates far below the highest and just above it, unless one near each of them was run. A rate below it
 * that fails contradicts the search. */
static void complete_curve(struct run *r)
{
	static const double shares[] = {0.25, 0.5, 0.75, 1.1};
	const struct search_rate *highest = search_highest(&r->find->search);

	r->find->outside = true;
	for (size_t i = 0; highest && i < sizeof(shares) / sizeof(*shares); i++) {
		double rate = floor(highest->rate * shares[i]);
		bool near = rate < 1;

		for (uint32_t k = 0; k < r->find->count; k++)
			near |= fabs(r->find->runs[k].rate / rate - 1) < 0.1 &&
				(shares[i] < 1 || r->find->runs[k].rate >= rate);
		if (near)
			continue;
		if (shares[i] < 1 && fails_twice(r, rate))
			r->find->failed_below = rate;
		else if (shares[i] > 1)
			run_at(r, rate);
		if (!can_go_on(r))
			return;
	}
}

/* ---- the answer ---- */

/* "p99 < 2ms and errors < 1%", as the user wrote them. */
static void limits_text(const struct options *o, char *out, size_t size)
{
	size_t at = 0;

	*out = 0;
	for (uint32_t i = 0; i < o->find_count && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s", i ? " and " : "", o->find_text[i]);
}

static double busiest_at(const struct find *find, double rate)
{
	double busiest = 0;

	for (uint32_t i = 0; i < find->count; i++)
		if (find->runs[i].rate == rate)
			busiest = fmax(busiest, find->runs[i].busiest);
	return busiest;
}

/* ", where 12.5 % of the requests failed", of the runs at a rate; "" if none failed. */
static void errors_at(const struct find *find, double rate, char *out, size_t size)
{
	uint64_t errors = 0, requests = 0;

	*out = 0;
	for (uint32_t i = 0; i < find->count; i++)
		if (find->runs[i].rate == rate) {
			errors += find->runs[i].figures.errors;
			requests += find->runs[i].figures.requests;
		}
	if (errors)
		snprintf(out, size, ", where %.3g %% of the requests failed",
			 100 * (double)errors / (double)requests);
}

static void answer(const struct run *r, char *out, size_t size)
{
	const struct find *find = r->find;
	const struct search *s = &find->search;
	const struct search_rate *highest = search_highest(s), *beyond = search_beyond(s);
	const char *hold = r->o->find_count > 1 ? "hold" : "holds";
	char limits[256], errors[64] = "";

	limits_text(r->o, limits, sizeof(limits));
	if (beyond)
		errors_at(find, beyond->rate, errors, sizeof(errors));
	if (s->end == SEARCH_NONE_HELD)
		snprintf(out, size, "%s %s at no rate down to %.10g/s%s", limits, hold, beyond->rate, errors);
	else if (s->end == SEARCH_GOES_ON || !highest || !beyond)
		snprintf(out, size, "%s: the search ended without an answer", limits);
	else if (find->failed_below)
		snprintf(
		    out, size,
		    "%s: no answer. Runs at %.10g/s held, but a run at %.10g/s failed after them: something "
		    "else disturbed this host or the server. Repeat it with a longer --duration and a "
		    "larger --repeat",
		    limits, highest->rate, find->failed_below);
	else if (s->end == SEARCH_CLIENT)
		snprintf(out, size,
			 "%s %s at least up to %.10g requests/s. The client may be the limit: at %.10g/s its "
			 "busiest load thread was on a CPU for %.0f %% of the time. Use more --threads",
			 limits, hold, highest->rate, beyond->rate, busiest_at(find, beyond->rate) * 100);
	else
		snprintf(out, size,
			 "%s %s up to %.10g requests/s: in %u of %u runs at this rate, in %u of %u at "
			 "%.10g/s%s%s",
			 limits, hold, highest->rate, highest->held, highest->runs, beyond->held,
			 beyond->runs, beyond->rate, errors,
			 s->end == SEARCH_FOUND ? "" : ". The runs vary too much for a better answer");
}

static void print_answer(struct run *r)
{
	const struct find *find = r->find;
	const struct curve *curve = &find->curve;
	char headline[256], text[512];

	answer(r, text, sizeof(text));
	report_headline(headline, sizeof(headline), r->o, r->suite.tests[0].name);
	if (r->csv)
		curve_csv(r->csv, curve);
	if (r->csv != stdout) {
		printf("%s\n", headline);
		curve_table(stdout, curve);
		printf("\n%s\n", text);
	}
	if (r->o->svg_path && !curve_svg(r->o->svg_path, curve, text))
		complain(r, "gnuplot could not write the chart of --svg");
	fflush(stdout);
	if ((!search_highest(&find->search) || find->failed_below) && r->status == EXIT_DONE)
		r->status = EXIT_NO;
}

void find_rate(struct run *r)
{
	const struct search_rate *highest;

	r->find = calloc(1, sizeof(*r->find));
	if (!r->find) {
		complain(r, "not enough memory for the search");
		return;
	}
	if (r->o->svg_path && !curve_can_draw()) {
		complain(r, "--svg needs the program gnuplot (Debian's gnuplot-nox)");
		return;
	}
	if (search(r))
		complete_curve(r);
	if (r->find->failed_below)
		r->find->search.end = SEARCH_UNDECIDED;
	highest = r->find->search.end == SEARCH_GOES_ON || r->find->failed_below
		      ? NULL
		      : search_highest(&r->find->search);
	curve_make(&r->find->curve, r->find->runs, r->find->count, highest ? highest->rate : 0);
	if (r->find->count)
		print_answer(r);
}

static void put_rate(json_t *j, const struct run *r, const char *name, const struct search_rate *rate)
{
	uint64_t begin_ns, end_ns;
	struct ft_clock clock;

	if (!rate)
		return;
	ft_clock_read(&clock);
	begin_ns = r->find->begin_ns[rate - r->find->search.rates];
	end_ns = r->find->end_ns[rate - r->find->search.rates];
	j = json_put_object(j, name);
	json_put_number(j, "rate", rate->rate);
	json_put_count(j, "runs", rate->runs);
	json_put_count(j, "held", rate->held);
	json_put_truth(j, "client_at_limit", rate->client);
	json_put_count(j, "start_ns", begin_ns);
	json_put_count(j, "end_ns", end_ns);
	/* For explain --since and --until, in microseconds, because a number has ten digits there. */
	json_put_count(j, "start_unix_us", (clock.realtime_ns - clock.monotonic_ns + begin_ns) / 1000);
	json_put_count(j, "end_unix_us", (clock.realtime_ns - clock.monotonic_ns + end_ns) / 1000);
}

void find_json(const struct run *r, json_t *summary)
{
	static const char *const ends[] = {"interrupted", "found", "client limit", "none held", "undecided"};
	char text[512];
	json_t *j;

	if (!r->find)
		return;
	j = json_put_object(summary, "search");
	limits_text(r->o, text, sizeof(text));
	json_put_text(j, "limit", text);
	json_put_text(j, "result", ends[r->find->search.end]);
	json_put_number(j, "closed_loop_per_s", r->find->closed_rps);
	put_rate(j, r, "highest", search_highest(&r->find->search));
	put_rate(j, r, "beyond", search_beyond(&r->find->search));
	curve_json(json_put_array(j, "curve"), &r->find->curve);
}

void find_free(struct run *r)
{
	free(r->find);
	r->find = NULL;
}

/* A rate holds if all limits hold, the answers kept up with the rate, and no request failed: without the last
 * two conditions, a server that refuses or delays everything could meet a limit of its latency. */

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

/* Rates are compared by their ratio, so the middle of two is their geometric mean. */

#define WIDEN_UP 1.3
#define WIDEN_DOWN 0.5
#define RATE_MAX 1e9

/* Rounds to four digits, so that a rate in the output can be given to --rate. */
static double rounded(double rate)
{
	double unit = pow(10, floor(log10(rate)) - 3);

	return round(rate / unit) * unit;
}

static bool holds(const struct search_rate *r)
{
	return 2 * r->held > r->runs;
}

/* A first failed run is repeated. */
static bool fails(const struct search_rate *r)
{
	uint32_t failed = r->runs - r->held;

	return r->far || (failed > 1 && failed > r->held);
}

const struct search_rate *search_beyond(const struct search *s)
{
	const struct search_rate *lowest = NULL;

	for (uint32_t i = 0; i < s->count; i++)
		if (fails(&s->rates[i]) && (!lowest || s->rates[i].rate < lowest->rate))
			lowest = &s->rates[i];
	return lowest;
}

const struct search_rate *search_highest(const struct search *s)
{
	const struct search_rate *beyond = search_beyond(s), *highest = NULL;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct search_rate *r = &s->rates[i];

		if (holds(r) && !fails(r) && (!beyond || r->rate < beyond->rate) &&
		    (!highest || r->rate > highest->rate))
			highest = r;
	}
	return highest;
}

void search_begin(struct search *s, double rate, uint32_t repeat)
{
	memset(s, 0, sizeof(*s));
	s->repeat = repeat;
	s->rates[0].rate = rounded(fmin(rate, RATE_MAX));
	s->count = 1;
}

/* Makes `rate` the current one. A rate that was rounded to one that was run already would not make progress.
 */
static double go_to(struct search *s, double rate)
{
	rate = rounded(fmin(rate, RATE_MAX));
	for (s->current = 0; s->current < s->count; s->current++)
		if (s->rates[s->current].rate == rate)
			return rate;
	if (s->count == SEARCH_RATES_MAX) {
		s->end = SEARCH_UNDECIDED;
		return 0;
	}
	s->rates[s->count++] = (struct search_rate){.rate = rate};
	return rate;
}

static double finish(struct search *s, enum search_end end)
{
	s->end = end;
	return 0;
}

/* Between a rate that held and one that failed. */
static double narrow(struct search *s, const struct search_rate *low, const struct search_rate *high)
{
	double ratio = high->rate / low->rate, middle = rounded(sqrt(low->rate * high->rate));

	if (high->client && ratio <= SEARCH_RATIO_CLIENT)
		return finish(s, SEARCH_CLIENT);
	if (ratio > SEARCH_RATIO && middle > low->rate && middle < high->rate)
		return go_to(s, middle);
	if (low->runs < s->repeat)
		return go_to(s, low->rate);
	if (!high->far && high->runs < s->repeat)
		return go_to(s, high->rate);
	return finish(s, SEARCH_FOUND);
}

double search_next(struct search *s)
{
	const struct search_rate *current = &s->rates[s->current], *high, *low;

	if (s->end != SEARCH_GOES_ON)
		return 0;
	if (s->runs == SEARCH_RUNS_MAX)
		return finish(s, SEARCH_UNDECIDED);
	if (!holds(current) && !fails(current))
		return current->rate;
	high = search_beyond(s);
	low = search_highest(s);
	if (low && high)
		return narrow(s, low, high);
	if (low)
		return low->rate < RATE_MAX ? go_to(s, low->rate * WIDEN_UP) : finish(s, SEARCH_UNDECIDED);
	if (high->rate * WIDEN_DOWN < s->rates[0].rate * SEARCH_LOWEST)
		return finish(s, SEARCH_NONE_HELD);
	return go_to(s, high->rate * WIDEN_DOWN);
}

void search_tell(struct search *s, enum search_verdict verdict, bool client)
{
	struct search_rate *r = &s->rates[s->current];

	s->runs++;
	r->runs++;
	r->held += verdict == SEARCH_HELD;
	r->far |= verdict == SEARCH_FAILED_FAR;
	r->client |= verdict != SEARCH_HELD && client;
}
