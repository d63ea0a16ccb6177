/* SPDX-License-Identifier: MIT */
/* When soft interrupts are timed by programs, and when by CPU samples. Of a server that answers 100,000
 * requests a second over loopback, the soft interrupts are its own work, which is in its account anyway; so
 * the programs would cost it something for nothing. As soon as samples meet soft interrupts of others, the
 * programs are attached, and stay for ten seconds from the last such time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/attach.h"
#include "loader/system.h"

enum {
	SECOND = 1000000000,
	PAIR_NS = 200,		    /* of an entry and an exit: their calls and two readings of the clock */
	BUDGET_NS = SECOND / 100,   /* a second */
	MOST = BUDGET_NS / PAIR_NS, /* soft interrupts a second */
	FEW = MOST * 4 / 5,
	WORTH_PERCENT = 4, /* of the time between two looks */
	HITS = 3,	   /* in HITS_NS, of 25 samples or more */
	HITS_NS = SECOND / 10,
};
static const uint64_t CALM_NS = 10ull * SECOND, TIMED_WINDOW_NS = SECOND, SAMPLED_WINDOW_NS = 10ull * SECOND;

static uint64_t window_of(const struct softirq_budget *b)
{
	return b->timed ? TIMED_WINDOW_NS : SAMPLED_WINDOW_NS;
}

bool softirq_budget_count_due(const struct softirq_budget *b, uint64_t now_ns)
{
	return !b->window_count || now_ns - b->window_ns >= window_of(b);
}

/* A window is over: how many soft interrupts there were in a second of it, or 0 in the first look. */
static uint64_t next_window(struct softirq_budget *b, const struct softirq_look *look)
{
	const uint64_t count = look->count - b->window_count, ns = look->now_ns - b->window_ns;
	const bool first = !b->window_count;
	b->window_ns = look->now_ns;
	b->window_count = look->count;
	return first || !ns ? 0 : (uint64_t)((double)count * SECOND / (double)ns);
}

static void change(struct softirq_budget *b, bool timed, uint64_t per_second)
{
	b->timed = timed;
	b->per_second = per_second;
	b->window_count = 0;
}

bool softirq_budget_look(struct softirq_budget *b, const struct softirq_look *look)
{
	const struct softirq_look last = b->last;
	const uint64_t hits = look->hits - b->before.hits, hits_ns = look->now_ns - b->before.now_ns;
	const uint64_t timed_ns = look->timed_ns - last.timed_ns;
	const bool timed = b->timed, due = softirq_budget_count_due(b, look->now_ns);
	b->before = last;
	b->last = *look;
	if (timed ? last.now_ns && timed_ns * 100 >= (look->now_ns - last.now_ns) * WORTH_PERCENT
		  : hits >= HITS && hits * HITS_NS >= HITS * hits_ns)
		b->exact_until_ns = look->now_ns + CALM_NS;
	const bool worth = look->now_ns < b->exact_until_ns;
	const uint64_t per_second = due ? next_window(b, look) : 0;
	if (timed && per_second > MOST && !worth)
		change(b, false, per_second);
	else if (!timed && (worth || (per_second && per_second < FEW)))
		change(b, true, per_second);
	return b->timed != timed;
}

uint64_t softirqs_of_host(void)
{
	char line[4096];
	uint64_t count = 0;
	FILE *f = fopen("/proc/stat", "re");
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, "softirq ", 8) == 0)
			count = strtoull(line + 8, NULL, 10);
	if (f)
		fclose(f);
	return count;
}

bool softirq_code(struct ft_kernel_code_range code[FT_KERNEL_CODES])
{
	/* Older names of the same function follow newer ones. */
	static const char *const names[FT_KERNEL_CODES][3] = {
	    [FT_CODE_HANDLER] = {"tasklet_hi_action"},
	    [FT_CODE_HANDLER + 1] = {"run_timer_softirq"},
	    [FT_CODE_HANDLER + 2] = {"net_tx_action"},
	    [FT_CODE_HANDLER + 3] = {"net_rx_action"},
	    [FT_CODE_HANDLER + 4] = {"blk_done_softirq"},
	    [FT_CODE_HANDLER + 5] = {"irq_poll_softirq"},
	    [FT_CODE_HANDLER + 6] = {"tasklet_action"},
	    [FT_CODE_HANDLER + 7] = {"sched_balance_softirq", "run_rebalance_domains"},
	    [FT_CODE_HANDLER + 8] = {"hrtimer_run_softirq"},
	    [FT_CODE_HANDLER + 9] = {"rcu_core_si"},
	    [FT_CODE_HANDLER_END + 9] = {"rcu_core"},
	    [FT_CODE_RUNNER] = {"handle_softirqs", "__do_softirq"},
	    [FT_CODE_CALL] = {"__local_bh_enable_ip"},
	    [FT_CODE_INTERRUPT] = {"__irq_exit_rcu", "irq_exit_rcu"},
	    [FT_CODE_INTERRUPT + 1] = {"irq_exit_rcu", "irq_exit"},
	};
	for (int i = 0; i < FT_KERNEL_CODES; i++)
		code[i] = symbol_code(names[i]);
	return code[FT_CODE_RUNNER].bytes && code[FT_CODE_CALL].bytes && code[FT_CODE_INTERRUPT].bytes;
}
