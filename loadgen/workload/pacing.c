/* SPDX-License-Identifier: MIT */
/* Arrival instants: constant spacing, or a Poisson process (exponential gaps by inversion); with a profile,
 * the same spacing in its integral. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "loadgen/workload.h"

static void settle(struct pacing *p)
{
	uint64_t due = p->start_ns + (uint64_t)p->offset_ns;

	p->due_ns = due < p->end_ns ? due : PACING_NEVER;
}

/* Mean 1. */
static double exponential(struct pacing *p)
{
	return -log(random_unit(&p->random));
}

static double gap_ns(struct pacing *p)
{
	return exponential(p) * p->interval_ns;
}

void pacing_start(struct pacing *p, enum arrival arrival, double rate, double phase, uint64_t start_ns,
		  uint64_t end_ns, uint64_t count, struct random_stream random)
{
	*p = (struct pacing){
	    .arrival = arrival,
	    .interval_ns = 1e9 / rate,
	    .phase_ns = phase * 1e9 / rate,
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .random = random,
	    .due_ns = PACING_NEVER,
	};
	if (count == 0)
		return;
	p->left = count - 1;
	p->offset_ns = arrival == ARRIVAL_POISSON ? gap_ns(p) : p->phase_ns;
	settle(p);
}

/* The instant that belongs to p->reached. */
static void settle_profile(struct pacing *p)
{
	uint64_t offset_ns;

	p->due_ns = PACING_NEVER;
	p->at_s = profile_when(p->profile, p->reached, p->at_s);
	if (!(p->at_s < 1e10))
		return;
	/* Rounded, so that an instant at a border of the profile is on it, and not in a stretch without load:
	 * the first request after such a stretch is due at its end, not at its beginning. */
	offset_ns = profile_resume_ns(p->profile, (uint64_t)(p->at_s * 1e9 + 0.5));
	if (offset_ns < UINT64_MAX - p->start_ns && p->start_ns + offset_ns < p->end_ns)
		p->due_ns = p->start_ns + offset_ns;
}

void pacing_start_profile(struct pacing *p, enum arrival arrival, const struct profile *profile, double share,
			  double phase, uint64_t start_ns, uint64_t end_ns, uint64_t count,
			  struct random_stream random)
{
	*p = (struct pacing){
	    .arrival = arrival,
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .random = random,
	    .due_ns = PACING_NEVER,
	    .profile = profile,
	    .share = share,
	};
	if (count == 0 || share <= 0)
		return;
	p->left = count - 1;
	p->phase = phase;
	p->reached = (arrival == ARRIVAL_POISSON ? exponential(p) : phase) / share;
	settle_profile(p);
}

static void take_profile(struct pacing *p)
{
	if (p->due_ns == PACING_NEVER)
		return;
	if (p->arrival == ARRIVAL_POISSON)
		p->reached += exponential(p) / p->share;
	else
		p->reached = (p->phase + (double)p->index) / p->share;
	settle_profile(p);
}

void pacing_take(struct pacing *p)
{
	if (p->left == 0) {
		p->due_ns = PACING_NEVER;
		return;
	}
	p->left--;
	p->index++;
	if (p->profile) {
		take_profile(p);
		return;
	}
	if (p->arrival == ARRIVAL_POISSON)
		p->offset_ns += gap_ns(p);
	else
		p->offset_ns = p->phase_ns + (double)p->index * p->interval_ns;
	settle(p);
}

uint64_t pacing_end_ns(const struct pacing *p)
{
	struct pacing rest = *p;
	uint64_t last_ns = PACING_NEVER;

	if (p->end_ns != PACING_NEVER)
		return p->end_ns;
	if (p->left > UINT64_MAX / 2)
		return PACING_NEVER;
	for (; rest.due_ns != PACING_NEVER; pacing_take(&rest))
		last_ns = rest.due_ns;
	return last_ns;
}

void pacing_stop(struct pacing *p, uint64_t at_ns)
{
	if (p->end_ns > at_ns + 1)
		p->end_ns = at_ns + 1;
	if (p->due_ns >= p->end_ns)
		p->due_ns = PACING_NEVER;
}

/* Shapes over time. Steps, ramps and square waves consist of pieces on which the value is linear, so the
 * integral is quadratic there and its inverse a square root; only the sine's inverse has no closed form. */

#define RATE_MAX 1e9
#define CONNECTIONS_MAX 1e6

enum { TEXT_MAX = 4096 };

/* What is being parsed, for error messages. */
struct parser {
	const char *text;
	char *error;
	size_t size;
	double value_max;
};

__attribute__((format(printf, 2, 3))) static bool fail(const struct parser *s, const char *format, ...)
{
	char reason[256];
	va_list values;

	va_start(values, format);
	vsnprintf(reason, sizeof(reason), format, values);
	va_end(values);
	snprintf(s->error, s->size, "profile \"%.200s\": %s", s->text, reason);
	return false;
}

static bool parse_value(const struct parser *s, const char *text, double *value)
{
	const char *rest = text;

	if (parse_number(&rest, value) && *rest == 0 && *value <= s->value_max)
		return true;
	return fail(s, "\"%.40s\" is not a number from 0 to %.0f", text, s->value_max);
}

static bool parse_time(const struct parser *s, const char *text, uint64_t *ns)
{
	return (parse_duration(text, TIME_ANY, TIME_S, ns) && *ns > 0) ||
	       fail(s, "\"%.40s\" is not a time above 0, such as 10s", text);
}

static void add_piece(struct profile *p, double first, double last, uint64_t length_ns)
{
	struct profile_piece *piece = &p->pieces[p->count++];

	*piece = (struct profile_piece){
	    .first = first,
	    .last = last,
	    .start_ns = p->length_ns,
	    .length_ns = length_ns,
	    .start = (double)p->length_ns / 1e9,
	    .length = (double)length_ns / 1e9,
	    .before = p->area,
	};
	piece->area = (first + last) / 2 * piece->length;
	p->length_ns += length_ns;
	p->length = (double)p->length_ns / 1e9;
	p->area += piece->area;
}

/* The minus between two values, not one in an exponent ("1e-3-5"). */
static char *find_dash(char *text)
{
	for (char *c = text; *c; c++)
		if (*c == '-' && c > text && c[-1] != 'e' && c[-1] != 'E')
			return c;
	return NULL;
}

/* One "VALUExTIME" or "VALUE-VALUExTIME". */
static bool parse_piece(const struct parser *s, struct profile *p, char *item, bool ramp)
{
	const char *form = ramp ? "FROM-TOxTIME" : "VALUExTIME";
	char *time = strchr(item, 'x'), *to = NULL;
	double first, last;
	uint64_t length_ns;

	if (!time)
		return fail(s, "\"%.40s\" is not of the form %s", item, form);
	*time++ = 0;
	if (ramp) {
		to = find_dash(item);
		if (!to)
			return fail(s, "\"%.40sx%.40s\" is not of the form %s", item, time, form);
		*to++ = 0;
	}
	if (!parse_value(s, item, &first))
		return false;
	last = first;
	if (ramp && !parse_value(s, to, &last))
		return false;
	if (!parse_time(s, time, &length_ns))
		return false;
	if (p->count == PROFILE_PIECES)
		return fail(s, "more than %d pieces", PROFILE_PIECES);
	add_piece(p, first, last, length_ns);
	return true;
}

static bool parse_pieces(const struct parser *s, struct profile *p, char *list, bool ramp)
{
	for (char *item = list, *next; item; item = next) {
		next = strchr(item, ',');
		if (next)
			*next++ = 0;
		if (!next && p->count > 0 && strcmp(item, "repeat") == 0) {
			p->repeat = true;
			return true;
		}
		if (!parse_piece(s, p, item, ramp))
			return false;
	}
	return true;
}

/* "LOW,HIGH,PERIOD" */
static bool parse_wave(const struct parser *s, struct profile *p, char *list)
{
	char *high_text = strchr(list, ','), *period_text = high_text ? strchr(high_text + 1, ',') : NULL;
	double low, high;
	uint64_t period_ns;

	if (!period_text)
		return fail(s, "lowest value, highest value and period are required");
	*high_text++ = 0;
	*period_text++ = 0;
	if (!parse_value(s, list, &low) || !parse_value(s, high_text, &high) ||
	    !parse_time(s, period_text, &period_ns))
		return false;
	if (low > high)
		return fail(s, "the lowest value, %s, is above the highest, %s", list, high_text);
	if (period_ns < 2)
		return fail(s, "the period is below 2 ns");
	p->repeat = true;
	if (p->kind == PROFILE_LINEAR) {
		add_piece(p, low, low, period_ns / 2);
		add_piece(p, high, high, period_ns - period_ns / 2);
		return true;
	}
	p->length_ns = period_ns;
	p->length = (double)period_ns / 1e9;
	p->mean = (low + high) / 2;
	p->swing = (high - low) / 2;
	p->area = p->mean * p->length;
	return true;
}

static char *skip(char *text, const char *word)
{
	const size_t length = strlen(word);

	return strncmp(text, word, length) == 0 ? text + length : NULL;
}

bool profile_parse(const char *text, struct profile *p, char *error, size_t size)
{
	struct parser s = {text, error, size, RATE_MAX};
	char copy[TEXT_MAX], *shape = copy, *list;

	if (strlen(text) >= sizeof(copy))
		return fail(&s, "longer than %d characters", TEXT_MAX - 1);
	strcpy(copy, text);
	memset(p, 0, sizeof(*p));
	if ((list = skip(shape, "rate:"))) {
		shape = list;
	} else if ((list = skip(shape, "connections:"))) {
		shape = list;
		p->subject = PROFILE_CONNECTIONS;
		s.value_max = CONNECTIONS_MAX;
	}
	if ((list = skip(shape, "steps:")))
		return parse_pieces(&s, p, list, false);
	if ((list = skip(shape, "ramp:")))
		return parse_pieces(&s, p, list, true);
	if ((list = skip(shape, "square:")))
		return parse_wave(&s, p, list);
	p->kind = PROFILE_SINE;
	if ((list = skip(shape, "sine:")))
		return parse_wave(&s, p, list);
	return fail(
	    &s,
	    "expected steps:..., ramp:..., square:... or sine:..., optionally after rate: or connections:");
}

/* The last piece that starts at or before `at`, which is within the shape. */
static const struct profile_piece *piece_at(const struct profile *p, double at)
{
	uint32_t i = p->count - 1;

	while (i > 0 && p->pieces[i].start > at)
		i--;
	return &p->pieces[i];
}

/* Subtracts whole periods from *seconds; returns their number. */
static double whole_periods(const struct profile *p, double *seconds)
{
	double rest = fmod(*seconds, p->length), periods = round((*seconds - rest) / p->length);

	*seconds = rest;
	return periods;
}

static double sine_value(const struct profile *p, double x)
{
	return p->mean + p->swing * sin(2 * M_PI * x / p->length);
}

/* Over 0 .. x within a period: 1 - cos a is written as 2 sin^2(a/2), which keeps its digits near 0. */
static double sine_integral(const struct profile *p, double x)
{
	const double half = sin(M_PI * x / p->length);

	return p->mean * x + p->swing * p->length / M_PI * half * half;
}

double profile_value(const struct profile *p, double seconds)
{
	const struct profile_piece *piece;

	if (!p->repeat && seconds >= p->length)
		return p->pieces[p->count - 1].last;
	if (p->repeat)
		whole_periods(p, &seconds);
	if (p->kind == PROFILE_SINE)
		return sine_value(p, seconds);
	piece = piece_at(p, seconds);
	return piece->first + (piece->last - piece->first) * (seconds - piece->start) / piece->length;
}

double profile_integral(const struct profile *p, double seconds)
{
	const struct profile_piece *piece;
	double before = 0, x;

	if (!p->repeat && seconds >= p->length)
		return p->area + p->pieces[p->count - 1].last * (seconds - p->length);
	if (p->repeat)
		before = whole_periods(p, &seconds) * p->area;
	if (p->kind == PROFILE_SINE)
		return before + sine_integral(p, seconds);
	piece = piece_at(p, seconds);
	x = seconds - piece->start;
	return before + piece->before +
	       x * (piece->first + (piece->last - piece->first) * x / piece->length / 2);
}

/* The smallest x with integral y over the piece's first x seconds: the root of slope/2 x^2 + first x = y, in
 * the form that avoids cancellation. */
static double piece_when(const struct profile_piece *piece, double y)
{
	const double slope = (piece->last - piece->first) / piece->length;
	const double root = sqrt(fmax(piece->first * piece->first + 2 * slope * y, 0));

	return fmin(2 * y / (piece->first + root), piece->length);
}

/* Within 0 .. area. Newton's method, kept inside a shrinking bracket: where the rate touches 0, its steps
 * alone would diverge. `from` is a good first guess when arrivals are requested in order. */
static double sine_when(const struct profile *p, double y, double from)
{
	const double enough = fmax(1e-11, p->length * 0x1p-51);
	double low = 0, high = p->length, x = y / p->mean;

	if (from > 0 && from < high) {
		const double missing = y - sine_integral(p, from), rate = sine_value(p, from);

		if (missing >= 0) {
			low = from;
			if (rate > 0 && from + missing / rate < high)
				x = from + missing / rate;
		}
	}
	for (int i = 0; i < 200 && high - low > enough; i++) {
		double error, rate, next;

		if (!(x >= low && x <= high))
			x = low + (high - low) / 2;
		error = sine_integral(p, x) - y;
		if (error == 0)
			return x;
		if (error > 0)
			high = x;
		else
			low = x;
		rate = sine_value(p, x);
		next = rate > 0 ? x - error / rate : -1;
		if (!(next > low && next < high))
			next = low + (high - low) / 2;
		/* Near a rate of 0 a step may be a third of the remaining error. */
		if (fabs(next - x) * 4 < enough)
			return next;
		x = next;
	}
	return high;
}

double profile_when(const struct profile *p, double value, double from_seconds)
{
	double periods = 0, t;
	uint32_t i = 0;

	if (profile_integral(p, from_seconds) >= value)
		return from_seconds;
	if (!p->repeat && value > p->area) {
		const double last = p->pieces[p->count - 1].last;

		return last > 0 ? fmax(p->length + (value - p->area) / last, from_seconds) : INFINITY;
	}
	if (p->repeat) {
		if (p->area <= 0 || !isfinite(value))
			return INFINITY;
		/* The first instant: a value at a border of periods is reached in the earlier period. */
		periods = fmax(ceil(value / p->area) - 1, 0);
		value = fmin(fmax(value - periods * p->area, 0), p->area);
	}
	if (p->kind == PROFILE_SINE) {
		t = sine_when(p, value, from_seconds - periods * p->length);
	} else {
		while (i + 1 < p->count && p->pieces[i].before + p->pieces[i].area < value)
			i++;
		t = value > p->pieces[i].before
			? p->pieces[i].start + piece_when(&p->pieces[i], value - p->pieces[i].before)
			: p->pieces[i].start;
	}
	return fmax(periods * p->length + t, from_seconds);
}

uint64_t profile_resume_ns(const struct profile *p, uint64_t ns)
{
	uint64_t base = 0, at = ns;
	uint32_t i;

	if (p->area <= 0 && (p->repeat || p->pieces[p->count - 1].last <= 0))
		return UINT64_MAX;
	if (p->kind == PROFILE_SINE)
		return ns;
	if (p->repeat) {
		at = ns % p->length_ns;
		base = ns - at;
	}
	for (i = 0; i < p->count; i++) {
		const struct profile_piece *piece = &p->pieces[i];

		if (piece->area > 0 && at < piece->start_ns + piece->length_ns)
			return base + (at > piece->start_ns ? at : piece->start_ns);
	}
	if (!p->repeat && p->pieces[p->count - 1].last <= 0)
		return UINT64_MAX;
	base += p->length_ns;
	if (!p->repeat)
		return ns > base ? ns : base;
	for (i = 0; p->pieces[i].area <= 0; i++)
		;
	return base + p->pieces[i].start_ns;
}

double profile_length(const struct profile *p)
{
	return p->repeat ? INFINITY : p->length;
}
