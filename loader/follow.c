/* SPDX-License-Identifier: MIT */
/* A process that matches what the user named gets accounts in the same way as the first targets: it is added
 * to the targets, and an iterator over all tasks opens the accounts of its threads. Its events before it was
 * found, at most a second, are not in the recording. */
#include "loader/follow.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text/visible.h"
#include "loader/self_report.h"
#include "loader/system/cpu_time.h"
#include "loader/system/text.h"
#include "loader/targets/descriptions.h"
#include "recording/json/json_block.h"

#define LOOK_NS 1000000000ull
#define LONGEST_NS 5000000000ull
enum { SHARE = 500 }; /* looking for targets takes at most one part in this many of a CPU's time */

/* Printed on stderr, so that the log of a service contains it. */
static void print(pid_t pid, const char *comm, size_t length, const char *what)
{
	char visible[VISIBLE_MOST * 16 + 1];
	visible_text(visible, sizeof visible, comm, length);
	fprintf(stderr, "%s (%d) %s\n", visible, pid, what);
}

static void print_ended(const struct recorder *r, pid_t pid)
{
	for (size_t i = 0; i < r->threads.ended_count; i++) {
		const struct ended_target *e = &r->threads.ended[i];
		if (e->pid != pid || !e->t_ns)
			continue;
		char how[64], what[80];
		exit_text(e->exit_code, e->exit_flags, how, sizeof how);
		snprintf(what, sizeof what, "ended%s%s", *how ? ", " : "", how);
		print(pid, e->comm, strnlen(e->comm, sizeof e->comm), what);
	}
}

/* Targets without remaining threads. Other processes may get their ids. */
static void drop_ended(struct recorder *r)
{
	for (size_t i = 0; i < r->targets->count;) {
		pid_t pid = r->targets->pids[i];
		if (threads_alive(&r->threads, pid)) {
			i++;
			continue;
		}
		print_ended(r, pid);
		programs_forget(r->programs, pid);
		r->targets->pids[i] = r->targets->pids[--r->targets->count];
		descriptions_forget(r->descriptions, pid);
		selectors_forget(r->options->selectors);
	}
}

/* A zombie no longer has a program. */
static bool is_alive(pid_t pid)
{
	char path[32], text[8];
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	return readlink(path, text, sizeof text) > 0;
}

/* Skips processes that are already traced, including children of targets. */
static void keep_new(struct recorder *r, struct targets *found)
{
	size_t left = 0;
	programs_drain(r->programs); /* a child that was forked a moment ago */
	for (size_t i = 0; i < found->count && r->targets->count + left < TARGETS_MAX; i++)
		if (!targets_has(r->targets, found->pids[i]) &&
		    !threads_of_other(&r->threads, found->pids[i]) && is_alive(found->pids[i]))
			found->pids[left++] = found->pids[i];
	found->count = left;
}

/* Has threads announced again whose begin was lost because the ring was full. */
static void find_lost(struct recorder *r)
{
	const uint64_t lost = r->losses.drops[FT_DROP_SLOT_THREAD_EVENT];
	if (lost != r->thread_events_lost && programs_open_more(r->programs) == 0)
		r->thread_events_lost = lost;
}

static void begin(struct recorder *r, pid_t pid)
{
	char comm[32];
	int n = read_proc(pid, "comm", comm, sizeof comm);
	json_t *note = json_note(ft_now_ns(), "target-began");
	if (!threads_alive(&r->threads, pid) || targets_add_pid(r->targets, pid) < 0) {
		programs_forget(r->programs, pid); /* it has exited, or there are too many */
		selectors_forget(r->options->selectors);
		json_decref(note);
		return;
	}
	char cmdline[DESCRIPTION_CMDLINE_BYTES];
	target_files_title_now(r->files, pid, cmdline, sizeof cmdline);
	json_t *described = descriptions_add(r->descriptions, pid, cmdline, ft_now_ns());
	json_object_update(note, described);
	write_json_note(r->writer, note);
	samples_prepare(r->drain.samples, pid);
	requests_target(r->requests, r->writer, described);
	print(pid, comm, n > 0 ? (size_t)n : 0, "began");
}

static void look(struct recorder *r)
{
	static struct targets found;
	find_lost(r);
	found.count = 0;
	for (size_t i = 0; i < r->options->selectors->count; i++)
		selector_find_more(&r->options->selectors->all[i], &found);
	keep_new(r, &found);
	if (!found.count)
		return;
	if (programs_trace(r->programs, found.pids, found.count, FT_TRACED_TARGET) ||
	    programs_open_more(r->programs))
		selectors_forget(r->options->selectors); /* again in one second */
	programs_drain(r->programs);
	for (size_t i = 0; i < found.count; i++)
		begin(r, found.pids[i]);
}

void follow_tick(struct recorder *r)
{
	uint64_t now = ft_now_ns();
	drop_ended(r);
	requests_target(r->requests, r->writer, descriptions_tick(r->descriptions, now));
	if (now < r->follow_due_ns)
		return;
	uint64_t cpu_ns = own_cpu_ns();
	look(r);
	uint64_t wait_ns = SHARE * (own_cpu_ns() - cpu_ns);
	wait_ns = wait_ns < LOOK_NS ? LOOK_NS : wait_ns;
	r->follow_due_ns = now + (wait_ns < LONGEST_NS ? wait_ns : LONGEST_NS);
}

void follow_soon(struct recorder *r)
{
	r->follow_due_ns = 0;
	selectors_forget(r->options->selectors);
}
