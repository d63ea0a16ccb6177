/* SPDX-License-Identifier: MIT */
/* The shape of a load over time: a rate of requests, or a number of connections, that steps, rises or
 * oscillates. A shape is a value at each instant, with its integral in closed form. The integral of a rate is
 * the number of requests due so far, so request k is due where it reaches k: that is exact for every shape,
 * while stepping through time with the current rate would drift. */
#ifndef FORKTAIL_LOADGEN_PROFILE_H
#define FORKTAIL_LOADGEN_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PROFILE_PIECES = 64 };

enum profile_subject { PROFILE_RATE, PROFILE_CONNECTIONS };
enum profile_kind { PROFILE_LINEAR, PROFILE_SINE };

/* A stretch of time in which the value changes linearly from `first` to `last`. */
struct profile_piece {
	double first, last;
	uint64_t start_ns, length_ns;
	double start, length; /* the same in seconds */
	double before, area;  /* integral up to its start, and over it */
};

struct profile {
	enum profile_subject subject;
	enum profile_kind kind;
	bool repeat;
	uint32_t count;
	struct profile_piece pieces[PROFILE_PIECES]; /* linear */
	uint64_t length_ns;			     /* of the shape, or of one period */
	double length, area;			     /* the same in seconds; the integral over it */
	double mean, swing;			     /* sine: mean + swing * sin(2 pi t / length) */
};

/* "steps:1000x10s,2000x10s" holds each value for its time. "ramp:1000-10000x60s" changes linearly from one
 * value to the other; more ramps may follow after commas. "square:1000,5000,10s" alternates, half a period of
 * 10 s each, the low value first. "sine:1000,5000,60s" oscillates between minimum and maximum, from the mean
 * upwards at first. Steps and ramps hold their last value after their end, or start again with ",repeat" at
 * the end. "rate:" (the default, per second) or "connections:" may precede it. Values are 0 to 10^9,
 * connections to 10^6. Returns false with one sentence in `error`. */
bool profile_parse(const char *text, struct profile *p, char *error, size_t size);

/* Seconds count from the start of the load and are at least 0. At a jump, the new value applies. */
double profile_value(const struct profile *p, double seconds);

/* The integral of the value from 0 to `seconds`. */
double profile_integral(const struct profile *p, double seconds);

/* The first instant at or after `from_seconds` at which the integral has reached `value`, in seconds;
 * INFINITY if it never does. Less than 1 ns off for instants up to 10^5 s, as far as a double can hold the
 * integral. */
double profile_when(const struct profile *p, double value, double from_seconds);

/* The first instant at or after `ns` from which on the value is above 0, however small; UINT64_MAX if there
 * is none. It counts in nanoseconds so that an instant at a border is on one definite side of it. */
uint64_t profile_resume_ns(const struct profile *p, uint64_t ns);

/* Seconds until the shape's end, INFINITY if it's periodic. */
double profile_length(const struct profile *p);

#ifdef __cplusplus
}
#endif
#endif
