/* SPDX-License-Identifier: MIT */
/* The kernel programs: what the host supports, attaching them, and the counters and symbols that they
 * need. */
#ifndef FORKTAIL_LOADER_ATTACH_H
#define FORKTAIL_LOADER_ATTACH_H

#include <linux/perf_event.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "loader/system.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names of kernel addresses, from /proc/kallsyms. */

/* Whether the kernel shows their addresses. */
bool symbols_shown(void);
/* Begins to read the table in another thread, which takes some 50 ms of CPU, and 2 MB for good. Only once. */
void symbols_begin(void);
/* Waits until it is read. Call it before recording: the recorder would hold the CPU when the first stack
 * arrives, and before privileges are dropped. Returns the number of symbols. */
size_t symbols_wait(void);

/* Writes "name+0x1f" for a kernel address, or "?" if the kernel reveals no name. The address itself is not
 * written to recordings, which may be passed on, because it reveals where this kernel is in memory. */
void symbol_name(uint64_t address, char *text, size_t size);

/* The code of the first of these functions that the kernel has; bytes 0: of none. `names` ends with NULL.
 * Call symbols_wait first. */
struct ft_kernel_code_range symbol_code(const char *const *names);

/* Probes what this host supports: kernel, BTF, tracepoints, privileges, perf events. The recorder loads what
 * is available and writes what is missing, with the reason, to the recording. `forktail doctor` prints the
 * same list, so both always agree. */

enum need {
	NEED_REQUIRED, /* required for a recording */
	NEED_PART,     /* without it, a recording lacks something */
	NEED_EXTRA,    /* most hosts lack it (virtual machines): a recording is full without it */
};

/* How system calls are traced. */
enum exact_way {
	EXACT_NOT,
	EXACT_EITHER, /* functions if supported, otherwise tracepoints; only for `wanted` */
	EXACT_BY_FUNCTIONS,
	EXACT_BY_TRACEPOINTS,
};

/* What shows the begin of a page fault: the first of these that the kernel has. The last one does not show
 * the reason (bpf/faults.bpf.c). */
enum fault_begin {
	FAULT_BEGIN_TRACEPOINTS,
	FAULT_BEGIN_FUNCTION,
	FAULT_BEGIN_EVENT,
};

/* One feature that is probed. */
struct feature {
	const char *name;    /* name: "sched_switch tracepoint" */
	const char *without; /* what a recording lacks without the feature; for a required one, what fails */
	enum need need;
	bool available;
	char why[160]; /* if not available: what was tried and its result */
};

enum { SUPPORT_FEATURES = 48 };

struct support {
	char kernel[65]; /* uname -r */
	int cpus;	 /* configured */
	/* The programs' settings, see bpf/compat.h. has_find_vma selects one of two programs. */
	bool has_task_storage, has_prev_state_arg, has_block_queue_arg, has_task_pt_regs, has_find_vma,
	    has_scheduler_waits;
	/* The kernel may preempt its own code, at least by a setting. */
	bool preemptible;
	/* It may, and programs can prevent that while they run (Linux 6.10, see bpf/program.h). */
	bool disables_preemption;
	/* System calls have tracepoints in a mounted tracefs. */
	bool has_call_events;
	enum exact_way exact; /* set by support_choose_exact */
	/* Perf software events for faults can be opened. */
	bool has_fault_events;
	enum fault_begin fault_begin;
	/* The CPUs' clocks can be sampled with perf events. */
	bool has_cpu_clock;
	/* Cycles and instructions can be counted. */
	bool has_counters;
	struct feature features[SUPPORT_FEATURES];
	size_t count;
};

/* Frees the kernel's BTF, some 5 MB, which the other functions here read when they need it. */
void support_forget_btf(void);

/* Fills *s. Never fails: a feature that cannot be probed counts as not available. */
void support_probe(struct support *s);

/* Returns the first required feature that is missing, or NULL. */
const struct feature *support_blocker(const struct support *s);

/* Decides how system calls are traced, depending on what is wanted and supported. It attaches a program to a
 * function as a trial, so it is not part of support_probe. Returns 0, or a negative errno and a sentence. */
int support_choose_exact(struct support *s, enum exact_way wanted, char *why, size_t bytes);

/* Returns "fentry", "tracepoints", or "" when system calls are not traced. */
const char *support_exact_name(enum exact_way way);

/* Whether programs can be attached to the entry and exit of a kernel function of this name. Call
 * support_probe first. */
bool support_has_function(const char *name);

/* Whether the kernel has a raw tracepoint of this name with BTF. Call support_probe first. */
bool support_has_tracepoint(const char *name);
/* Whether the kernel tells why it drops a packet (5.17). */
bool support_sees_drops(void);
/* Calls `each` for each enumerator of an enumeration of the kernel, if it has it. */
void support_enum_names(const char *enumeration,
			void (*each)(void *context, uint32_t value, const char *name), void *context);

/* Returns how many arguments a kernel function has, or -1 if it lacks the function. */
int support_function_arguments(const char *name);

/* Whether the requests of clients can be recorded on this kernel. Returns 0, or a negative errno and a
 * sentence. It may attach a program to a function as a trial. Call support_probe first. */
int support_requests_error(char *why, size_t bytes);

/* Whether requests are seen at functions, in place of tracepoints that this kernel lacks. */
bool support_requests_by_functions(void);

/* Whether tracefs has this event ("syscalls/sys_enter_fsync"). Mounts nothing. */
bool support_has_event(const char *event);

/* Whether the interrupts of a CPU's timer can be traced, given the name of its clock event device. */
bool support_sees_timer(const char *clock_event);

/* Returns the attributes of the perf event that samples a CPU once per period, for perf_event_open. */
struct perf_event_attr support_cpu_clock(uint64_t period_ns);

/* "hardware", "software" or "none". */
const char *support_counters_name(enum ft_cpu_counters counters);

/* Opens a counter of a CPU in the group of another one; leader -1: it is a group's first. Returns a
 * descriptor or a negative errno. */
int support_open_counter(enum ft_cpu_counters counters, enum ft_cpu_counter counter, int cpu, int leader);

/* Calls perf_event_open. Returns a descriptor or a negative errno. */
int support_open_event(struct perf_event_attr attr, pid_t tid, int cpu);

/* Whether a recording is possible, as a sentence. Returns the exit status of doctor_print(). */
int support_verdict(const struct support *s, char *sentence, size_t size);

/* `forktail doctor`: prints the list. Returns the exit status: 0 everything is supported, 1 a recording would
 * lack something, 3 no recording is possible. */
int doctor_print(void);

/* The perf events of each CPU: the ends of page faults, their begins where nothing else shows them, samples,
 * and the CPU's counters. The kernel removes those of a CPU that goes offline, also for a suspend, so they
 * are opened again when it comes online. */

struct cpu_events;

enum cpu_event {
	CPU_EVENT_FAULT_MINOR,
	CPU_EVENT_FAULT_MAJOR,
	CPU_EVENT_FAULT_BEGIN,
	CPU_EVENT_CLOCK,
	CPU_EVENTS
};

struct cpu_events_wanted {
	int programs[CPU_EVENTS]; /* descriptor of the loaded program of each event; negative: not wanted */
	uint64_t clock_period_ns;
	enum ft_cpu_counters counters;
};

/* NULL without memory. */
struct cpu_events *cpu_events_new(const struct cpu_events_wanted *wanted);
/* Opens the CPU's events in place of earlier ones: all or none, because a page fault's begin counts only
 * where both kinds of ends are seen. Returns 0 or a negative errno, -ENODEV if the CPU is offline. */
int cpu_events_open(struct cpu_events *e, int cpu);
extern const struct helper_setup events_helper;
/* Starts a process that opens events from now on, because the recorder will no longer be allowed to. Returns
 * 0 or a negative errno: no more events can be opened then. */
int cpu_events_delegate(struct cpu_events *e);
/* The descriptor of the event that samples the CPU, or a negative number. */
int cpu_events_clock(const struct cpu_events *e, int cpu);
/* The descriptor of a counter of the CPU, or a negative number. They are opened with its other events, but
 * not required. */
int cpu_events_counter(const struct cpu_events *e, int cpu, enum ft_cpu_counter counter);
void cpu_events_close(struct cpu_events *e);

/* The sampling rate of each CPU: low until an event-loop iteration of a server is long, then high. Each
 * sample costs a timer interrupt, 7 to 18 us in a virtual machine. Only a stall is worth that cost. */

/* Periods in sixteenths of a millisecond: a sample's record has space for this unit. */
struct sampling_periods {
	uint32_t slow, fast;
};

struct sampling_rate;
struct cpu_events;

/* The period for perf_event_open. */
uint64_t sampling_rate_period_ns(uint32_t sixteenths);

/* Sets the rate of `events`. `on_period(context, cpu, period)` is called before each new period takes effect.
 * NULL without memory. */
struct sampling_rate *sampling_rate_open(const struct sampling_periods *wanted,
					 const struct cpu_events *events,
					 void (*on_period)(void *context, int cpu, uint32_t period),
					 void *context);

/* Before the event that samples this CPU slowly is opened. */
void sampling_rate_begin(struct sampling_rate *p, int cpu);

/* An event-loop iteration on this CPU is long: samples the CPU fast from now on. */
void sampling_rate_raise(struct sampling_rate *p, int cpu, uint64_t now_ns);

/* Slows down sampling on CPUs without long iterations for a while. Call it regularly. */
void sampling_rate_lower(struct sampling_rate *p, uint64_t now_ns);

void sampling_rate_close(struct sampling_rate *p);

/* Switches the kernel's run-time statistics of BPF programs on and off during a recording. */

extern const struct helper_setup stats_helper;
/* Starts the process that switches. Returns a negative errno if the process cannot start; statistics then
 * stay off. */
int stats_switch_start(void);
/* Returns after switching: whether the statistics are on now. If the process has ended, it is started again
 * later. */
bool stats_switch(bool on);
/* Switches the statistics off and ends the process. */
void stats_switch_end(void);

/* Attaches and detaches programs while the recorder runs, which may no longer do so itself. */

extern const struct helper_setup switch_helper;
/* Starts a process that may only do this, for at most HELPER_KEPT_MAX loaded programs of BTF tracepoints or
 * functions. Returns 0 or a negative errno. */
int hook_switch_start(struct helper_process *h, const int *programs, size_t count);
enum { HOOKS_NONE = 0, HOOKS_ALL = (1 << HELPER_KEPT_MAX) - 1 };
/* Attaches the programs whose bits are set in `on` (the first one's is the lowest), and detaches the others,
 * which takes some milliseconds. Returns 0 or a negative errno. */
int hook_switch_set(const struct helper_process *h, unsigned on);

/* Soft interrupts on top of targets. Their programs are exact, and run for each soft interrupt of the host:
 * above 50,000 a second they take 1 % of a CPU or more. Then they are detached, and CPU samples tell how much
 * time soft interrupts took, until samples suggest that they delay a target. */

enum softirq_way {
	SOFTIRQS_NONE,
	SOFTIRQS_AUTO,	  /* timed, or sampled while there are very many that delay no target */
	SOFTIRQS_EXACT,	  /* timed */
	SOFTIRQS_SAMPLED, /* sampled */
};

/* What is known at a time. All but the time are sums that only grow. */
struct softirq_look {
	uint64_t now_ns;
	uint64_t count;	   /* soft interrupts of the host; not used before softirq_budget_count_due() */
	uint64_t timed_ns; /* time of timed ones on top of targets */
	uint64_t hits;	   /* samples of targets in one that was not timed */
};

struct softirq_budget {
	bool timed;
	uint64_t per_second;		  /* of the host, when `timed` changed */
	uint64_t window_ns, window_count; /* where the count's window began */
	uint64_t exact_until_ns;
	struct softirq_look last, before; /* the last look, and the one before it */
};

/* Whether a look at this time needs the count. */
bool softirq_budget_count_due(const struct softirq_budget *b, uint64_t now_ns);
/* Decides at each tick of the recorder (4 to 20 times a second). Returns whether `timed` has changed. */
bool softirq_budget_look(struct softirq_budget *b, const struct softirq_look *look);
/* Soft interrupts since the host started, from /proc/stat; 0: not known. */
uint64_t softirqs_of_host(void);
/* Finds the code that samples look for. Returns whether the kernel has it. Call symbols_wait first. */
bool softirq_code(struct ft_kernel_code_range code[FT_KERNEL_CODES]);

/* Life cycle of the kernel programs: open, configure, load, attach, open and close accounts, measure cost. */

struct programs;

/* Receives one event of the ring. `bytes` is the size of the event as the kernel wrote it. */
typedef void (*event_handler)(void *context, const void *event, size_t bytes);

/* What to record. */
struct programs_wanted {
	uint64_t min_span_ns; /* shorter intervals are summed up */
	bool with_client;     /* CPU slices of load generators are traced too */
	/* CPU samples: the period in sixteenths of a millisecond (1 to 255), and the period while an
	 * event-loop iteration is long. 0: no samples. */
	uint32_t samples_slow, samples_fast;
	enum ft_cpu_counters counters; /* of the CPUs, read with CPU samples; hardware: if the host has any */
	bool interrupts; /* hardware interrupts (devices, timers, other CPUs) on top of traced threads */
	enum softirq_way softirqs; /* soft interrupts on top of traced threads */
	bool keep;	      /* continuous recording: the recorder asks for open states and adds processes */
	uint32_t ring_bytes;  /* of the ring of events, a power of two; 0: 16 MB */
	enum exact_way exact; /* system calls are traced: iterations that never wait, connections, the
				 complete time of an fsync */
};

/* Opens, configures and loads the programs that are wanted and that `support` reports as available.
 * programs_log() returns libbpf's messages, which are printed when loading fails. Returns a negative errno on
 * failure. */
int programs_load(struct programs **out, const struct support *support, const struct programs_wanted *wanted,
		  event_handler handler, void *context);

/* Called with a program that cannot be attached or used. */
typedef void (*skip_handler)(void *context, const char *program, int error);

/* Attaches everything. After that (not before), */
int programs_attach(struct programs *p, skip_handler skipped, void *context);
/* names processes to trace (processes named earlier keep their kind) */
int programs_trace(struct programs *p, const pid_t *pids, size_t count, enum ft_traced_as as);
/* and opens the accounts of their threads, whose events follow through the ring. */
int programs_open_accounts(struct programs *p);
/* For continuous recording: opens accounts of threads that have none yet, after more processes were named.
 * Announces again threads whose begin was lost. */
int programs_open_more(struct programs *p);
/* No longer names a process, whose id may be reused. Open accounts of its threads stay open. */
void programs_forget(struct programs *p, pid_t pid);
/* Requests events of type FT_EVENT_OPEN, which follow through the ring and describe the current moment. */
int programs_report_open(struct programs *p);
/* Called with a CPU that came online: its perf events are open (0), or cannot be opened (negative errno). */
typedef void (*cpu_handler)(void *context, int cpu, int error);
/* At intervals: opens the perf events of CPUs that came online. */
void programs_follow_cpus(struct programs *p, cpu_handler handler, void *context);
/* A descriptor that becomes readable when the ring fills quickly, and stays so until the ring is empty. */
int programs_fd(struct programs *p);
/* Passes the events in the ring to the handler, and those that arrive meanwhile, but in total no more bytes
 * than the ring holds: events may arrive faster than they are read. Returns 0 or a negative errno. */
int programs_drain(struct programs *p);
/* The same, but no more than 256 kB: reading a whole ring takes seconds on a CPU of which the recorder gets a
 * tenth, and what is due meanwhile would wait for it. */
int programs_drain_piece(struct programs *p);

/* The counters that are read. */
enum ft_cpu_counters programs_cpu_counters(const struct programs *p);

/* At intervals: passes what processes wrote to the page cache lately, which becomes a separate event only
 * with the next write. */
void programs_take_writes(struct programs *p);

/* Closes the accounts, drains the rest and detaches everything. */
int programs_stop(struct programs *p);
void programs_free(struct programs *p);

/* At each tick: times soft interrupts or samples them, as is wanted. Returns 1 if that has changed, 0, or a
 * negative errno: their programs cannot be attached, and they stay sampled. */
int programs_follow_softirqs(struct programs *p, uint64_t now_ns);
/* Whether they are sampled now. *per_second: how many the host had when that began; 0: not known. */
bool programs_softirqs_sampled(const struct programs *p, uint64_t *per_second);

/* Sets whether a CPU quota applies to a target. Without one, the programs don't check for throttling. Returns
 * 0 or a negative errno: throttling is not recorded. */
int programs_quota(struct programs *p, bool in_force);

/* Current sums over all CPUs. Drops are indexed by enum ft_drop_slot. */
void programs_counters(const struct programs *p, uint64_t counters[FT_COUNTERS]);
void programs_drops(const struct programs *p, uint64_t drops[FT_DROP_SLOTS]);

/* The kernel's run-time statistics cost time themselves (two clock reads per run). They are switched on for
 * short windows only, which give the time of a run. */
bool programs_measure(struct programs *p, bool on); /* whether the statistics are on */

/* The map of targets, which another object may share. */
int programs_targets_map(const struct programs *p);
/* An iterator of a link, or a negative errno. */
struct bpf_link;
int iterator_again(const struct bpf_link *link);
/* Reads an iterator to its end and closes it. Returns 0 or a negative errno, also one that is given as `fd`.
 */
int iterator_run(int fd);
struct bpf_object;
/* Loaded programs and the counts of their runs (bpf/programs.h). */
struct counted_programs {
	struct bpf_object *object; /* NULL: none */
	const __u64 *runs;	   /* program_runs: so many counts (`row`) for each CPU */
	size_t row, count;
	const char *const *names; /* of the first `count` of a row */
	/* What a skipped run of a program would have seen, a later one or a look sees, or it is no event: of
	 * those whose name begins with this. NULL: of none. */
	const char *skips_lose_nothing;
};
/* The cost of these programs is included from now on, after those of `p`. */
void programs_include(struct programs *p, struct counted_programs more);

struct program_cost {
	const char *name;
	bool counted;	     /* else it runs on the recorder's behalf, and its time is the recorder's */
	uint64_t runs;	     /* all, on all CPUs */
	uint64_t sampled;    /* while the statistics were on */
	uint64_t sampled_ns; /* of those */
	/* Runs that the kernel skipped because the same program was already running on that CPU, or any
	 * program for tracepoints and perf events. 0 before Linux 5.12, which does not report them. */
	uint64_t missed;
};
enum { PROGRAMS_MAX = 96 }; /* more than the number of programs */
/* Writes one entry per loaded program, always in the same order. Returns their number. */
size_t programs_costs(struct programs *p, struct program_cost *costs, size_t room);

/* Returns libbpf's latest messages, for an error message. */
const char *programs_log(void);

#ifdef __cplusplus
}
#endif
#endif
