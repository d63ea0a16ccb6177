/* SPDX-License-Identifier: MIT */
/* The kernel programs' life, over libbpf and the skeleton that bpftool makes.
 *
 * Attach order matters twice. The accounts are opened after everything is attached, so that no event of an
 * open account is missed; they are closed once every program has been told to leave them alone, so that
 * nothing changes a thread's state while it is summed up. Detaching, which takes long, comes last.
 */
#include "loader/attach/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forktail.skel.h"
#include "loader/attach/sampling_rate.h"
#include "loader/attach/stats_switch.h"
#include "loader/system/grow.h"
#include "loader/system/pid_namespace.h"
#include "recording/recording.h"

enum {
	OTHER_DESCRIPTORS = 512, /* links, maps, files */
	CPU_DESCRIPTORS = 3,	 /* perf events: of faults, two, and of samples, one */
};

struct programs {
	struct forktail_bpf *skeleton;
	struct ring_buffer *ring;
	struct bpf_link **links;
	size_t link_count, link_room;
	int *event_fds; /* perf events of faults, two a CPU */
	size_t event_count;
	struct bpf_program *fault_end[2]; /* minor, major */
	event_handler handler;
	void *context;
	struct bpf_link *open_walk, *tell_walk; /* walks over all tasks that are begun again and again */
	int closing_fd; /* a walk over all tasks that closes their accounts when it is read */
	struct sampling_rate *sampling_rate; /* NULL: no samples */
	struct sampling_periods sampling_periods;
	bool fault_events, samples, keep, measuring;
};

static char log_text[4096];

const char *programs_log(void)
{
	return log_text;
}

/* Keeps the last warnings; libbpf's debug chatter and its verifier dumps are of no use to a user. */
static int keep_log(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level != LIBBPF_WARN)
		return 0;
	size_t used = strlen(log_text);
	if (used > sizeof log_text / 2) {
		memmove(log_text, log_text + used / 2, used - used / 2 + 1);
		used = strlen(log_text);
	}
	return vsnprintf(log_text + used, sizeof log_text - used, format, args);
}

static int on_event(void *context, void *data, size_t bytes)
{
	struct programs *p = context;
	const struct ft_event_sample *sample = data;
	if (sample->type == FT_EVENT_SAMPLE_STACK)
		sampling_rate_raise(p->sampling_rate, sample->cpu, sample->t_ns);
	p->handler(p->context, data, bytes);
	return 0;
}

/* Raises the soft limit of open files to `wanted`; the hard one too, if that is allowed. */
static void allow_descriptors(size_t wanted)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return;
	struct rlimit more = {wanted, limit.rlim_max > wanted ? limit.rlim_max : wanted};
	if (setrlimit(RLIMIT_NOFILE, &more) == 0)
		return;
	limit.rlim_cur = limit.rlim_max; /* without CAP_SYS_RESOURCE */
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* A fault's end is a perf event: without those, none may begin. */
static void choose_fault_programs(struct forktail_bpf *s, const struct support *support)
{
	bool ends = support->has_fault_events;
	bpf_program__set_autoload(s->progs.fault_end_minor, ends && support->has_find_vma);
	bpf_program__set_autoload(s->progs.fault_end_minor_old, ends && !support->has_find_vma);
	bpf_program__set_autoload(s->progs.fault_end_major, ends);
	if (ends)
		return;
	bpf_program__set_autoload(s->progs.page_fault_user, false);
	bpf_program__set_autoload(s->progs.page_fault_kernel, false);
	bpf_program__set_autoload(s->progs.mm_page_alloc, false);
}

/* Leaves out programs whose tracepoint this kernel lacks: loading them would fail the whole object. */
static void choose_programs(struct forktail_bpf *skeleton, const struct programs_wanted *wanted,
			    enum exact_way exact)
{
	struct bpf_program *prog;
	bpf_object__for_each_program(prog, skeleton->obj)
	{
		const char *section = bpf_program__section_name(prog);
		if (strncmp(section, "tp_btf/", 7) == 0)
			bpf_program__set_autoload(prog, support_has_tracepoint(section + 7));
		else if (strncmp(section, "tracepoint/", 11) == 0)
			bpf_program__set_autoload(prog, exact == EXACT_BY_TRACEPOINTS &&
							    support_has_event(section + 11));
		else if (strncmp(section, "fentry/", 7) == 0 || strncmp(section, "fexit/", 6) == 0)
			bpf_program__set_autoload(prog, exact == EXACT_BY_FUNCTIONS &&
							    support_has_function(strchr(section, '/') + 1));
	}
	struct bpf_program *const interrupts[] = {skeleton->progs.irq_handler_entry,
						  skeleton->progs.irq_handler_exit,
						  skeleton->progs.local_timer_entry,
						  skeleton->progs.local_timer_exit,
						  skeleton->progs.reschedule_entry,
						  skeleton->progs.reschedule_exit,
						  skeleton->progs.call_function_entry,
						  skeleton->progs.call_function_exit,
						  skeleton->progs.call_function_single_entry,
						  skeleton->progs.call_function_single_exit,
						  skeleton->progs.irq_work_entry,
						  skeleton->progs.irq_work_exit};
	for (size_t i = 0; !wanted->interrupts && i < sizeof interrupts / sizeof *interrupts; i++)
		bpf_program__set_autoload(interrupts[i], false);
	if (!wanted->softirqs) {
		bpf_program__set_autoload(skeleton->progs.softirq_entry, false);
		bpf_program__set_autoload(skeleton->progs.softirq_exit, false);
	}
}

int programs_load(struct programs **out, const struct support *support, const struct programs_wanted *wanted,
		  event_handler handler, void *context)
{
	*out = NULL;
	log_text[0] = 0;
	libbpf_set_print(keep_log);
	/* Needed before 5.11 only, and refused without CAP_SYS_RESOURCE: the load itself tells. */
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	allow_descriptors(OTHER_DESCRIPTORS + CPU_DESCRIPTORS * (size_t)support->cpus);

	struct programs *p = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	p->closing_fd = -1;
	p->handler = handler;
	p->context = context;
	p->keep = wanted->keep;
	p->fault_events = support->has_fault_events;
	p->samples = wanted->samples_slow && support->has_cpu_clock;
	int err = -ENOMEM;
	struct forktail_bpf *s = p->skeleton = forktail_bpf__open();
	if (!s) {
		err = -errno;
		goto fail;
	}
	s->rodata->has_task_storage = support->has_task_storage;
	s->rodata->has_prev_state_arg = support->has_prev_state_arg;
	s->rodata->has_block_queue_arg = support->has_block_queue_arg;
	s->rodata->has_task_pt_regs = support->has_task_pt_regs;
	s->rodata->min_span_ns = wanted->min_span_ns;
	s->rodata->pid_ns = pid_namespace();
	s->rodata->with_client = wanted->with_client;
	s->rodata->exact = support->exact != EXACT_NOT;
	s->rodata->fast_period = wanted->samples_fast;
	p->sampling_periods = (struct sampling_periods){wanted->samples_slow, wanted->samples_fast};
	s->rodata->ring_wake_bytes = bpf_map__max_entries(s->maps.ring) / 8;
	bpf_map__set_autocreate(s->maps.states, support->has_task_storage);
	bpf_map__set_autocreate(s->maps.states_hash, !support->has_task_storage);
	choose_programs(s, wanted, support->exact);
	p->fault_end[0] = support->has_find_vma ? s->progs.fault_end_minor : s->progs.fault_end_minor_old;
	p->fault_end[1] = s->progs.fault_end_major;
	choose_fault_programs(s, support);
	bpf_program__set_autoload(s->progs.cpu_sample, p->samples);
	bpf_program__set_autoload(s->progs.tell_open, wanted->keep);
	if ((err = forktail_bpf__load(s)))
		goto fail;
	p->ring = ring_buffer__new(bpf_map__fd(s->maps.ring), on_event, p, NULL);
	if (!p->ring) {
		err = -errno;
		goto fail;
	}
	*out = p;
	return 0;
fail:
	programs_free(p);
	return err;
}

static int keep_link(struct programs *p, struct bpf_link *link)
{
	if (!grow(&p->links, &p->link_room, p->link_count, sizeof *p->links)) {
		bpf_link__destroy(link);
		return -ENOMEM;
	}
	p->links[p->link_count++] = link;
	return 0;
}

/* Has the program run on every one of a CPU's page faults of a kind. Returns the event's descriptor. */
static int watch(uint64_t kind, int cpu, const struct bpf_program *prog)
{
	const struct perf_event_attr attr = {
	    .type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = kind, .sample_period = 1};
	int fd = support_open_event(attr, -1, cpu);
	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(prog))) {
		int err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* The ends of page faults on every CPU that is online now: both kinds or none, because a begin counts where
 * ends are seen. Of CPUs and not of threads: a thread's events are taken off the CPU and put on it again at
 * each of its switches. */
static int watch_faults(struct programs *p)
{
	static const uint64_t kinds[2] = {PERF_COUNT_SW_PAGE_FAULTS_MIN, PERF_COUNT_SW_PAGE_FAULTS_MAJ};
	int cpus = libbpf_num_possible_cpus(), first_error = 0;
	p->event_fds = cpus > 0 ? calloc(2 * (size_t)cpus, sizeof *p->event_fds) : NULL;
	if (!p->event_fds)
		return cpus < 0 ? cpus : -ENOMEM;
	for (int cpu = 0; cpu < cpus; cpu++) {
		int minor = watch(kinds[0], cpu, p->fault_end[0]);
		int major = minor < 0 ? minor : watch(kinds[1], cpu, p->fault_end[1]);
		if (major < 0) {
			if (minor >= 0)
				close(minor);
			if (major != -ENODEV && !first_error) /* that: it is offline */
				first_error = major;
			continue;
		}
		p->event_fds[p->event_count++] = minor;
		p->event_fds[p->event_count++] = major;
		p->skeleton->bss->cpus[cpu].fault_ends = 1;
	}
	return first_error;
}

/* What a CPU's samples stand for from now on. */
static void note_period(void *context, int cpu, uint32_t period)
{
	struct programs *p = context;
	if (cpu < FT_MAX_CPUS)
		p->skeleton->bss->cpus[cpu].sample_period = period;
}

/* A walk of an iterator program over all tasks, which begins when it is read; or a negative errno. `keep`:
 * where what it is begun by is left, for further ones. */
static int open_walk(const struct bpf_program *prog, struct bpf_link **keep)
{
	struct bpf_link *link = bpf_program__attach_iter(prog, NULL);
	if (!link)
		return -errno;
	int fd = bpf_iter_create(bpf_link__fd(link));
	fd = fd < 0 ? -errno : fd;
	if (keep)
		*keep = link;
	else
		bpf_link__destroy(link);
	return fd;
}

/* Goes through with it, and closes it. */
static int walk_tasks(int fd)
{
	char unused[256];
	ssize_t n;
	if (fd < 0)
		return fd;
	while ((n = read(fd, unused, sizeof unused)) > 0)
		;
	int err = n < 0 ? -errno : 0;
	close(fd);
	return err;
}

int programs_attach(struct programs *p, skip_handler skipped, void *context)
{
	struct bpf_program *prog;
	bpf_object__for_each_program(prog, p->skeleton->obj)
	{
		const char *section = bpf_program__section_name(prog);
		if (!bpf_program__autoload(prog) || strncmp(section, "iter/", 5) == 0 ||
		    strcmp(section, "perf_event") == 0 || strcmp(section, "raw_tp") == 0)
			continue;
		struct bpf_link *link = bpf_program__attach(prog);
		if (!link) {
			skipped(context, bpf_program__name(prog), -errno);
			continue;
		}
		int err = keep_link(p, link);
		if (err)
			return err;
	}
	int err = p->fault_events ? watch_faults(p) : 0;
	if (err)
		skipped(context, "page-fault events of a CPU", err);
	err = p->samples ? sampling_rate_open(&p->sampling_rate, &p->sampling_periods,
					      bpf_program__fd(p->skeleton->progs.cpu_sample), note_period, p)
			 : 0;
	if (err)
		skipped(context, bpf_program__name(p->skeleton->progs.cpu_sample), err);
	return 0;
}

int programs_trace(struct programs *p, const pid_t *pids, size_t count, enum ft_traced_as as)
{
	for (size_t i = 0; i < count; i++) {
		__u32 tgid = (__u32)pids[i], value = as;
		if (bpf_map_update_elem(bpf_map__fd(p->skeleton->maps.targets), &tgid, &value, BPF_NOEXIST) &&
		    errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* On every CPU that is online, in an interrupt on top of what runs there. */
static int adopt_running(struct programs *p)
{
	int cpus = libbpf_num_possible_cpus(), prog = bpf_program__fd(p->skeleton->progs.adopt_current);
	for (int cpu = 0; cpu < cpus; cpu++) {
		LIBBPF_OPTS(bpf_test_run_opts, options, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = (__u32)cpu);
		int err = bpf_prog_test_run_opts(prog, &options);
		if (err && err != -ENXIO) /* that: the CPU is offline */
			return err;
	}
	return 0;
}

/* By a walk that has been prepared, or failed to be. */
static int open_accounts(struct programs *p, int walk)
{
	p->skeleton->bss->opening = 1;
	int err = walk_tasks(walk);
	err = err ? err : adopt_running(p);
	p->skeleton->bss->opening = 0;
	return err;
}

int programs_open_accounts(struct programs *p)
{
	int err =
	    open_accounts(p, open_walk(p->skeleton->progs.open_accounts, p->keep ? &p->open_walk : NULL));
	/* By the time it is read the recorder may no longer make one. */
	p->closing_fd = open_walk(p->skeleton->progs.close_accounts, NULL);
	int told = p->keep && !err ? walk_tasks(open_walk(p->skeleton->progs.tell_open, &p->tell_walk)) : 0;
	return err ? err : p->closing_fd < 0 ? p->closing_fd : told;
}

static int walk_again(const struct bpf_link *link)
{
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -EINVAL;
	return fd < 0 && link ? -errno : fd;
}

int programs_open_more(struct programs *p)
{
	return open_accounts(p, walk_again(p->open_walk));
}

void programs_forget(struct programs *p, pid_t pid)
{
	__u32 tgid = (__u32)pid;
	bpf_map_delete_elem(bpf_map__fd(p->skeleton->maps.targets), &tgid);
}

int programs_tell_open(struct programs *p)
{
	p->skeleton->bss->open_ns = ft_now_ns();
	return walk_tasks(walk_again(p->tell_walk));
}

int programs_fd(struct programs *p)
{
	return ring_buffer__epoll_fd(p->ring);
}

int programs_drain(struct programs *p)
{
	sampling_rate_lower(p->sampling_rate, ft_now_ns());
	return ring_buffer__consume(p->ring);
}

static void detach(struct programs *p)
{
	for (size_t i = 0; i < p->event_count; i++)
		close(p->event_fds[i]);
	for (size_t i = 0; i < p->link_count; i++)
		bpf_link__destroy(p->links[i]);
	bpf_link__destroy(p->open_walk);
	bpf_link__destroy(p->tell_walk);
	p->open_walk = p->tell_walk = NULL;
	p->event_count = p->link_count = 0;
	sampling_rate_close(p->sampling_rate);
	p->sampling_rate = NULL;
}

int programs_stop(struct programs *p)
{
	p->skeleton->bss->closing_ns = ft_now_ns();
	usleep(10000);	   /* a program that had begun before has long ended */
	programs_drain(p); /* room for what closing the accounts brings */
	int err = walk_tasks(p->closing_fd);
	p->closing_fd = -1;
	int drained = programs_drain(p);
	detach(p);
	return err ? err : drained < 0 ? drained : 0;
}

void programs_free(struct programs *p)
{
	if (!p)
		return;
	detach(p);
	if (p->closing_fd >= 0)
		close(p->closing_fd);
	free(p->links);
	free(p->event_fds);
	ring_buffer__free(p->ring);
	forktail_bpf__destroy(p->skeleton);
	free(p);
}

void programs_quota(struct programs *p, bool in_force)
{
	p->skeleton->bss->quota_in_force = in_force;
}

void programs_counters(const struct programs *p, uint64_t counters[FT_COUNTERS])
{
	int cpus = libbpf_num_possible_cpus();
	for (int k = 0; k < FT_COUNTERS; k++) {
		counters[k] = 0;
		for (int i = 0; i < cpus && i < FT_MAX_CPUS; i++)
			counters[k] += p->skeleton->bss->cpus[i].counters[k];
	}
}

void programs_drops(const struct programs *p, uint64_t drops[FT_DROP_SLOTS])
{
	for (int k = 0; k < FT_DROP_SLOTS; k++)
		drops[k] = p->skeleton->bss->drops[k];
}

bool programs_measure(struct programs *p, bool on)
{
	if (p->measuring != on)
		p->measuring = stats_switch(on);
	return p->measuring;
}

size_t programs_costs(struct programs *p, struct program_cost *costs, size_t room)
{
	size_t n = 0;
	struct bpf_program *prog;
	bpf_object__for_each_program(prog, p->skeleton->obj)
	{
		struct bpf_prog_info info = {};
		__u32 size = sizeof info;
		if (n == room || bpf_program__fd(prog) < 0 ||
		    bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size))
			continue;
		costs[n++] = (struct program_cost){bpf_program__name(prog), info.run_cnt, info.run_time_ns,
						   info.recursion_misses};
	}
	return n;
}
