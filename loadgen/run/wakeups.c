/* SPDX-License-Identifier: MIT */
/* Wake-ups as requests: due when the thread asked to be woken, answered when it was. So all outputs of a
 * load's log work for them too. */
#include "wakeups.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "intrinsic.h"
#include "loadgen/engine.h"
#include "loadgen/models.h"
#include "recording/recording.h"
#include "run_state.h"

#define SECOND_NS 1000000000ull

struct sleeper {
	struct load_thread *t; /* its stats and its lane of the log */
	struct intrinsic_options options;
	pthread_t handle;
	int rc;
};

int wakeups_build(struct run *r, char *error, size_t size)
{
	struct test *t = &r->suite.tests[0];
	const char *text = "WAKE";
	int n;

	snprintf(error, size, "not enough memory for the probe");
	n = workload_add(r->workload, NULL, &text, 1, error, size);
	if (n < 0)
		return n;
	r->suite.count = 1;
	snprintf(t->name, sizeof(t->name), "wake-up");
	mix_add(&t->mix, (uint32_t)n, 1);
	mix_close(&t->mix);
	return 0;
}

static void on_wake(void *arg, uint64_t intended_ns, uint64_t woken_ns)
{
	struct load_thread *t = arg;
	const struct pending_request p = {.intended_ns = intended_ns, .start_ns = intended_ns};

	record_end(t, t->index, &p, woken_ns, FT_STATUS_OK, 0);
	t->stats->last_end_ns = woken_ns;
	if (woken_ns - t->hand_over.second_ns >= SECOND_NS)
		hand_over_tick(t, woken_ns);
}

static void *sleep_and_wake(void *arg)
{
	struct sleeper *s = arg;
	struct intrinsic_result result;
	uint64_t one = 1;

	pthread_setname_np(pthread_self(), "intrinsic");
	s->rc = intrinsic_run(&s->options, on_wake, s->t, &result);
	log_lane_close(&s->t->lane, ft_now_ns());
	(void)!write(s->t->plan->ending.done_fd, &one, sizeof(one));
	return NULL;
}

/* Waits for all threads and prints each second, until a signal ends them. */
static void watch(struct run *r, struct phase *p, volatile int *stop)
{
	struct pollfd fds[2] = {{.fd = r->signal_fd, .events = POLLIN},
				{.fd = p->plan.ending.done_fd, .events = POLLIN}};
	uint64_t ended = 0, count;

	while (ended < p->thread_count) {
		struct signalfd_siginfo info;

		if (poll(fds, 2, 1000) == 0)
			phase_tick(r, p);
		if (fds[0].revents && read(r->signal_fd, &info, sizeof(info)) > 0) {
			__atomic_store_n(stop, 1, __ATOMIC_RELAXED);
			r->end = RUN_INTERRUPTED;
		}
		if (fds[1].revents && read(p->plan.ending.done_fd, &count, sizeof(count)) == sizeof(count))
			ended += count;
	}
}

static int set_up(struct run *r, struct phase *p, struct sleeper *sleepers, volatile int *stop)
{
	const struct options *o = r->o;

	p->totals = stats_new(&p->plan.mix);
	p->second = stats_new(&p->plan.mix);
	if (!p->totals || !p->second || p->plan.ending.done_fd < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->threads; i++) {
		struct load_thread *t = &p->threads[i];

		t->plan = &p->plan;
		t->index = i;
		t->counting = true;
		t->hand_over.second_ns = p->plan.start_ns;
		pthread_mutex_init(&t->hand_over.lock, NULL);
		log_lane_open(&t->lane, r->log);
		t->stats = stats_new(&p->plan.mix);
		t->hand_over.spare = stats_new(&p->plan.mix);
		if (!t->stats || !t->hand_over.spare)
			return -ENOMEM;
		sleepers[i] = (struct sleeper){
		    .t = t,
		    .options = {.period_ns = o->period_ns,
				.duration_ns = o->duration_ns,
				.cpu = o->cpu_count ? o->cpus[i % o->cpu_count] : -1,
				.stop = stop},
		};
		if (pthread_create(&sleepers[i].handle, NULL, sleep_and_wake, &sleepers[i]))
			return -EAGAIN;
		p->thread_count++;
	}
	return 0;
}

static void release(struct phase *p)
{
	for (uint32_t i = 0; i < p->thread_count; i++) {
		stats_free(p->threads[i].stats);
		stats_free(p->threads[i].hand_over.ready);
		stats_free(p->threads[i].hand_over.spare);
		pthread_mutex_destroy(&p->threads[i].hand_over.lock);
	}
	stats_free(p->totals);
	stats_free(p->second);
	if (p->plan.ending.done_fd >= 0)
		close(p->plan.ending.done_fd);
}

void wakeups_measure(struct run *r)
{
	const struct options *o = r->o;
	struct load_thread *threads = calloc(o->threads, sizeof(*threads));
	struct sleeper *sleepers = calloc(o->threads, sizeof(*sleepers));
	volatile int stop = 0;
	struct phase p = {
	    .name = r->suite.tests[0].name,
	    .plan = {.workload = r->workload,
		     .mix = r->suite.tests[0].mix,
		     .start_ns = ft_now_ns(),
		     .end_ns = o->duration_ns ? ft_now_ns() + o->duration_ns : PACING_NEVER,
		     .ending.done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)},
	    .threads = threads,
	    .second_ns = ft_now_ns(),
	};
	double cpu_s = cpu_seconds();
	char text[128];
	int rc = threads && sleepers ? set_up(r, &p, sleepers, &stop) : -ENOMEM;

	if (rc)
		__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	p.started = p.thread_count;
	watch(r, &p, &stop);
	for (uint32_t i = 0; i < p.thread_count; i++) {
		pthread_join(sleepers[i].handle, NULL);
		rc = rc ? rc : sleepers[i].rc;
		stats_merge(p.second, p.threads[i].stats); /* phase_tick handles the rest */
	}
	if (rc) {
		snprintf(text, sizeof(text), "cannot measure the wake-ups of this host: %s", strerror(-rc));
		complain(r, text);
	} else {
		phase_tick(r, &p);
		phase_report(r, &p, cpu_seconds() - cpu_s);
	}
	release(&p);
	free(threads);
	free(sleepers);
}

/* Uses absolute sleeps, because relative ones add each delay to the next instant and so hide it. Timer slack
 * is 1 ns: the default of 50 us saves power and is not a property of the host. */

#define INTRINSIC_SECOND_NS 1000000000u

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

static void watch_cpu(const struct intrinsic_options *o, uint64_t period_ns, intrinsic_woken woken, void *arg,
		      struct intrinsic_result *result)
{
	const uint64_t instants = o->duration_ns ? o->duration_ns / period_ns : UINT64_MAX;
	uint64_t due_ns, now_ns;

	result->start_ns = ft_now_ns();
	due_ns = result->start_ns + period_ns;
	while (result->instants < instants && !stopped(o)) {
		struct timespec until = {.tv_sec = (time_t)(due_ns / INTRINSIC_SECOND_NS),
					 .tv_nsec = (long)(due_ns % INTRINSIC_SECOND_NS)};

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
	if (period_ns < SHORTEST_PERIOD_NS || period_ns > INTRINSIC_SECOND_NS || options->cpu >= CPU_LIMIT ||
	    (options->duration_ns ? options->duration_ns < period_ns : !options->stop))
		return -EINVAL;
	if (options->cpu >= 0) {
		rc = pin(options->cpu, &before);
		if (rc)
			return rc;
	}
	slack_ns = prctl(PR_GET_TIMERSLACK);
	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	watch_cpu(options, period_ns, woken, arg, result);
	if (slack_ns > 0)
		prctl(PR_SET_TIMERSLACK, slack_ns);
	unpin(&before);
	return 0;
}
