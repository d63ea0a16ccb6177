/* SPDX-License-Identifier: MIT */
/* Uses absolute sleeps, because relative ones add each delay to the next instant and so hide it. Timer slack
 * is 1 ns: the default of 50 us saves power and is not a property of the host. */
#include "intrinsic.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

#include "recording/recording.h"

#define SECOND_NS 1000000000u

enum { DEFAULT_PERIOD_NS = 1000000, SHORTEST_PERIOD_NS = 1000, SLACK_NS = 1, CPU_LIMIT = 1 << 16 };

/* Affinity masks of any size: this host's may be larger than cpu_set_t. */
struct affinity {
	cpu_set_t *set;
	size_t bytes;
};

static int pin(int cpu, struct affinity *before)
{
	size_t bytes = CPU_ALLOC_SIZE(CPU_LIMIT);
	cpu_set_t *only;
	int rc = 0;

	*before = (struct affinity){CPU_ALLOC(CPU_LIMIT), bytes};
	only = CPU_ALLOC(CPU_LIMIT);
	if (!before->set || !only) {
		rc = -ENOMEM;
	} else {
		CPU_ZERO_S(bytes, only);
		CPU_SET_S((size_t)cpu, bytes, only);
		if (sched_getaffinity(0, bytes, before->set) || sched_setaffinity(0, bytes, only))
			rc = -errno;
	}
	CPU_FREE(only);
	if (rc) {
		CPU_FREE(before->set);
		before->set = NULL;
	}
	return rc;
}

static void unpin(struct affinity *before)
{
	if (!before->set)
		return;
	sched_setaffinity(0, before->bytes, before->set);
	CPU_FREE(before->set);
}

static bool stopped(const struct intrinsic_options *o)
{
	return o->stop && __atomic_load_n(o->stop, __ATOMIC_RELAXED) != 0;
}

static void watch(const struct intrinsic_options *o, uint64_t period_ns, intrinsic_woken woken, void *arg,
		  struct intrinsic_result *result)
{
	const uint64_t instants = o->duration_ns ? o->duration_ns / period_ns : UINT64_MAX;
	uint64_t due_ns, now_ns;

	result->start_ns = ft_now_ns();
	due_ns = result->start_ns + period_ns;
	while (result->instants < instants && !stopped(o)) {
		struct timespec until = {.tv_sec = (time_t)(due_ns / SECOND_NS),
					 .tv_nsec = (long)(due_ns % SECOND_NS)};

		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
			continue; /* a signal: perhaps it set the stop */
		now_ns = ft_now_ns();
		for (bool first = true; due_ns <= now_ns && result->instants < instants; first = false) {
			woken(arg, due_ns, now_ns);
			result->instants++;
			result->missed += !first;
			due_ns += period_ns;
		}
	}
}

int intrinsic_run(const struct intrinsic_options *options, intrinsic_woken woken, void *arg,
		  struct intrinsic_result *result)
{
	uint64_t period_ns = options->period_ns ? options->period_ns : DEFAULT_PERIOD_NS;
	struct affinity before = {0};
	int slack_ns, rc;

	*result = (struct intrinsic_result){0};
	if (period_ns < SHORTEST_PERIOD_NS || period_ns > SECOND_NS || options->cpu >= CPU_LIMIT ||
	    (options->duration_ns ? options->duration_ns < period_ns : !options->stop))
		return -EINVAL;
	if (options->cpu >= 0) {
		rc = pin(options->cpu, &before);
		if (rc)
			return rc;
	}
	slack_ns = prctl(PR_GET_TIMERSLACK);
	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	watch(options, period_ns, woken, arg, result);
	if (slack_ns > 0)
		prctl(PR_SET_TIMERSLACK, slack_ns);
	unpin(&before);
	return 0;
}
