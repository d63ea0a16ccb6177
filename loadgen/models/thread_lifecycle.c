/* SPDX-License-Identifier: MIT */
/* Set-up of a load thread, including its load model, its start and its end. */
#include "thread_lifecycle.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "group.h"
#include "load_models.h"
#include "recording/recording.h"

#define SECOND_NS 1000000000ull

/* The only place that chooses the load model. */
static const struct load_model *model_of(const struct load_plan *plan)
{
	if (plan->workload->recorded.replay)
		return plan->nodes ? &routed_replay : &replay_send;
	if (plan->blocking)
		return plan->open_loop ? &blocking_open_loop : &blocking_closed_loop;
	if (plan->nodes)
		return plan->open_loop ? &routed_open_loop : &routed_closed_loop;
	return plan->open_loop ? &open_loop : &closed_loop;
}

int load_thread_init(struct load_thread *t, struct load_plan *plan, uint32_t index, uint32_t count,
		     struct request_log *log)
{
	struct alarms *a = &t->alarms;
	int rc;

	*t = (struct load_thread){
	    .plan = plan,
	    .model = model_of(plan),
	    .index = index,
	    .connection_count = count,
	    .cpu = -1,
	    .counting = plan->measure_ns == 0,
	    .alarms.due_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
	    .alarms.tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
	    .alarms.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
	    .alarms.timers.fd = -1,
	};
	pthread_mutex_init(&t->hand_over.lock, NULL);
	log_lane_open(&t->lane, log);
	t->read_buffer = malloc(READ_BYTES);
	t->stats = stats_new_with(&plan->mix, plan->arrival_times);
	t->hand_over.spare = stats_new_with(&plan->mix, plan->arrival_times);
	if (!t->read_buffer || !t->stats || !t->hand_over.spare)
		return -ENOMEM;
	/* One timer per connection, and one each for time-outs and a profile. */
	rc = timers_init(&a->timers, count + 2);
	if (rc == 0)
		rc = request_buffer_init(&t->requests, plan->workload, plan_ring_size(plan),
					 random_begin(plan->seed, index, 4));
	if (rc == 0)
		rc = t->model->init(t);
	return rc;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Pins it to its CPU. The options have already refused CPUs that don't exist. */
static void settle_on_cpu(const struct load_thread *t)
{
	cpu_set_t set;

	if (t->cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)t->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *run_thread(void *arg)
{
	struct load_thread *t = arg;
	struct rusage used;
	uint64_t one = 1;
	char name[16];

	snprintf(name, sizeof(name), "load-%u", t->index);
	pthread_setname_np(pthread_self(), name);
	atomic_store(&t->tid, (int)gettid());
	prctl(PR_SET_TIMERSLACK, 1ul);
	settle_on_cpu(t);
	t->model->run(t);
	log_lane_close(&t->lane, ft_now_ns());
	if (getrusage(RUSAGE_THREAD, &used) == 0)
		t->cpu_ns = ((uint64_t)used.ru_utime.tv_sec + (uint64_t)used.ru_stime.tv_sec) * SECOND_NS +
			    ((uint64_t)used.ru_utime.tv_usec + (uint64_t)used.ru_stime.tv_usec) * 1000;
	atomic_store(&t->ended, 1);
	if (write(t->plan->ending.done_fd, &one, sizeof(one)) < 0) {
		/* Writing one to an eventfd fails only if 2^64 - 2 are unread. */
	}
	return NULL;
}

int load_thread_start(struct load_thread *t)
{
	uint64_t end = t->plan->end_ns;

	t->hand_over.second_ns = t->plan->start_ns;
	t->give_up_ns = end < PACING_NEVER - t->plan->drain_ns ? end + t->plan->drain_ns : PACING_NEVER;
	return -pthread_create(&t->handle, NULL, run_thread, t);
}

void load_thread_wake(struct load_thread *t)
{
	uint64_t one = 1;

	if (write(t->alarms.wake_fd, &one, sizeof(one)) < 0) {
		/* As above. */
	}
}

void load_thread_join(struct load_thread *t)
{
	pthread_join(t->handle, NULL);
}

void load_thread_free(struct load_thread *t)
{
	if (t->base)
		event_base_free(t->base); /* it checks the connections' events once more */
	for (uint32_t i = 0; i < t->group_count; i++)
		group_free(t->groups[i]);
	free(t->groups);
	if (t->model->free)
		t->model->free(t);
	close_fd(t->alarms.due_fd);
	close_fd(t->alarms.tick_fd);
	close_fd(t->alarms.wake_fd);
	timers_free(&t->alarms.timers);
	request_buffer_free(&t->requests);
	chooser_free(&t->chooser);
	free(t->key_name.at);
	free(t->read_buffer);
	stats_free(t->stats);
	stats_free(t->hand_over.ready);
	stats_free(t->hand_over.spare);
	pthread_mutex_destroy(&t->hand_over.lock);
}
