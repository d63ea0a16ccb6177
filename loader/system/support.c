/* SPDX-License-Identifier: MIT */
/* Probes what the host supports. The kernel's BTF answers where it can (tracepoints, their number of
 * arguments, helpers), because a version number says little about a distribution's kernel. Other questions,
 * mainly about privileges, are answered by trying. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bpf/events.h"
#include "loader/attach.h"
#include "loader/system.h"

static struct btf *vmlinux; /* read when it is first needed */

static struct btf *kernel_btf(void)
{
	if (!vmlinux) { /* what fails is reported in a sentence */
		const libbpf_print_fn_t print = libbpf_set_print(NULL);
		vmlinux = btf__load_vmlinux_btf();
		libbpf_set_print(print);
	}
	return libbpf_get_error(vmlinux) ? NULL : vmlinux;
}

void support_forget_btf(void)
{
	btf__free(vmlinux);
	vmlinux = NULL;
}

/* Arguments of a BTF tracepoint without the leading context, or -1 when there is none. */
static int tracepoint_arguments(const char *name)
{
	struct btf *btf = kernel_btf();
	char type[80];
	snprintf(type, sizeof type, "btf_trace_%s", name);
	int id = btf ? btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) : -1;
	if (id < 0)
		return -1;
	const struct btf_type *t = btf__type_by_id(btf, (__u32)id);
	t = btf__type_by_id(btf, t->type); /* pointer */
	t = btf__type_by_id(btf, t->type); /* function prototype */
	return btf_vlen(t) - 1;
}

bool support_has_tracepoint(const char *name)
{
	return tracepoint_arguments(name) >= 0;
}

bool support_sees_drops(void)
{
	return tracepoint_arguments("kfree_skb") >= 3;
}

void support_enum_names(const char *enumeration,
			void (*each)(void *context, uint32_t value, const char *name), void *context)
{
	struct btf *btf = kernel_btf();
	const int id = btf ? btf__find_by_name_kind(btf, enumeration, BTF_KIND_ENUM) : -1;
	if (id < 0)
		return;
	const struct btf_type *t = btf__type_by_id(btf, (__u32)id);
	const struct btf_enum *e = btf_enum(t);
	for (int i = 0; i < btf_vlen(t); i++)
		each(context, (uint32_t)e[i].val, btf__name_by_offset(btf, e[i].name_off));
}

bool support_has_event(const char *event)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	char path[256];
	for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
		snprintf(path, sizeof path, "%s/events/%s/id", roots[i], event);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

static int function_id(const char *name)
{
	struct btf *btf = kernel_btf();
	return btf ? btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) : -1;
}

bool support_has_function(const char *name)
{
	return function_id(name) > 0;
}

int support_function_arguments(const char *name)
{
	int id = function_id(name);
	if (id <= 0)
		return -1;
	return btf_vlen(btf__type_by_id(kernel_btf(), btf__type_by_id(kernel_btf(), (__u32)id)->type));
}

/* Whether BTF's enum bpf_func_id lists a helper. */
static bool has_member(const char *structure, const char *member)
{
	const struct btf *btf = kernel_btf();
	const int id = btf ? btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT) : -1;
	const struct btf_type *t = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);
	for (int i = 0; t && i < btf_vlen(t); i++)
		if (strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), member) == 0)
			return true;
	return false;
}

static bool has_helper(const char *name)
{
	struct btf *btf = kernel_btf();
	int id = btf ? btf__find_by_name_kind(btf, "bpf_func_id", BTF_KIND_ENUM) : -1;
	if (id < 0)
		return false;
	const struct btf_type *t = btf__type_by_id(btf, (__u32)id);
	const struct btf_enum *e = btf_enum(t);
	for (int i = 0; i < btf_vlen(t); i++)
		if (strcmp(btf__name_by_offset(btf, e[i].name_off), name) == 0)
			return true;
	return false;
}

__attribute__((format(printf, 6, 7))) static void add(struct support *s, const char *name, enum need need,
						      const char *without, bool available, const char *why,
						      ...)
{
	if (s->count == SUPPORT_FEATURES)
		return;
	struct feature *f = &s->features[s->count++];
	*f = (struct feature){.name = name, .without = without, .need = need, .available = available};
	if (!available) {
		va_list args;
		va_start(args, why);
		vsnprintf(f->why, sizeof f->why, why, args);
		va_end(args);
	}
}

static void add_tracepoint(struct support *s, const char *name, enum need need, const char *without)
{
	add(s, name, need, without, support_has_tracepoint(name),
	    "this kernel has no such tracepoint in its BTF");
}

int support_open_event(struct perf_event_attr attr, pid_t tid, int cpu)
{
	long fd = syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* Opens and closes a perf event. EACCES and ENOENT are distinguished for the user. */
static int try_event(struct perf_event_attr attr, pid_t tid, int cpu)
{
	attr.disabled = 1;
	int fd = support_open_event(attr, tid, cpu);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

const char *support_counters_name(enum ft_cpu_counters counters)
{
	static const char *const names[] = {[FT_COUNTERS_NONE] = "none",
					    [FT_COUNTERS_HARDWARE] = "hardware",
					    [FT_COUNTERS_SOFTWARE] = "software"};
	return names[counters];
}

int support_open_counter(enum ft_cpu_counters counters, enum ft_cpu_counter counter, int cpu, int leader)
{
	static const uint64_t hardware[] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
					    PERF_COUNT_HW_CACHE_MISSES},
			      software[] = {PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_PAGE_FAULTS,
					    PERF_COUNT_SW_CONTEXT_SWITCHES};
	struct perf_event_attr attr = {
	    .type = counters == FT_COUNTERS_SOFTWARE ? PERF_TYPE_SOFTWARE : PERF_TYPE_HARDWARE,
	    .size = sizeof attr,
	    .config = counters == FT_COUNTERS_SOFTWARE ? software[counter] : hardware[counter]};
	/* Software events in a group of the CPU's clock stay 0. */
	long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, counters == FT_COUNTERS_SOFTWARE ? -1 : leader,
			  PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* 0 or a negative errno. */
static int try_counters(void)
{
	int cycles = support_open_counter(FT_COUNTERS_HARDWARE, FT_CYCLES, 0, -1);
	if (cycles < 0)
		return cycles;
	int instructions = support_open_counter(FT_COUNTERS_HARDWARE, FT_INSTRUCTIONS, 0, cycles);
	close(cycles);
	if (instructions < 0)
		return instructions;
	close(instructions);
	return 0;
}

static int try_fault_event(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof attr,
				       .config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
				       .sample_period = 1};
	return try_event(attr, -1, 0);
}

struct perf_event_attr support_cpu_clock(uint64_t period_ns)
{
	return (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
					.size = sizeof(struct perf_event_attr),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = period_ns,
					.exclude_idle = 1};
}

/* Loads the smallest program that needs the same features as the recorder's programs. */
static int try_load(void)
{
	const struct bpf_insn insns[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
					 {.code = BPF_JMP | BPF_EXIT}};
	int fd = bpf_prog_load(BPF_PROG_TYPE_TRACEPOINT, "forktail_try", "GPL", insns, 2, NULL);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Attaches such a program to a function's exit and removes it again. */
static int try_function(const char *name)
{
	const struct bpf_insn insns[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
					 {.code = BPF_JMP | BPF_EXIT}};
	int id = function_id(name);
	if (id < 0)
		return -ENOENT;
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_FEXIT,
		    .attach_btf_id = (__u32)id);
	int fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "forktail_try", "GPL", insns, 2, &options);
	if (fd < 0)
		return fd;
	int link = bpf_raw_tracepoint_open(NULL, fd);
	close(fd);
	if (link < 0)
		return link;
	close(link);
	return 0;
}

/* Whether functions can be traced, tried with the most important system call: 0 or a negative errno. Before
 * Linux 5.12, the memory that a program leaves on the stack of a sleeping function is freed with the program.
 * BTF does not show whether this was fixed, so a helper of Linux 5.13 is checked instead. */
static int functions_error(void)
{
	char name[64];
	snprintf(name, sizeof name, "%sepoll_pwait", machine.call_prefix);
	return has_helper("BPF_FUNC_for_each_map_elem") ? try_function(name) : -ENOTSUP;
}

const char *support_exact_name(enum exact_way way)
{
	return way == EXACT_BY_FUNCTIONS ? "fentry" : way == EXACT_BY_TRACEPOINTS ? "tracepoints" : "";
}

int support_choose_exact(struct support *s, enum exact_way wanted, char *why, size_t bytes)
{
	int err = wanted == EXACT_NOT || wanted == EXACT_BY_TRACEPOINTS ? 0 : functions_error();
	s->exact = wanted;
	if (wanted == EXACT_EITHER)
		s->exact = err ? EXACT_BY_TRACEPOINTS : EXACT_BY_FUNCTIONS;
	if (s->exact == EXACT_BY_FUNCTIONS && err) {
		snprintf(why, bytes, "this kernel does not allow tracing of functions: %s", strerror(-err));
		return err;
	}
	if (s->exact == EXACT_BY_TRACEPOINTS && !s->has_call_events) {
		snprintf(why, bytes,
			 "no tracepoints of system calls. Mount tracefs: mount -t tracefs nodev "
			 "/sys/kernel/tracing");
		return -ENOENT;
	}
	return 0;
}

bool support_requests_by_functions(void)
{
	return !support_has_tracepoint("sock_recv_length") || !support_has_tracepoint("sk_data_ready");
}

int support_requests_error(char *why, size_t bytes)
{
	if (!support_requests_by_functions())
		return 0;
	static const char lacks[] =
	    "this kernel has no tracepoints sk_data_ready and sock_recv_length (Linux "
	    "6.3 has them), and ";
	if (!has_helper("BPF_FUNC_task_pt_regs")) {
		snprintf(why, bytes, "%sis too old to trace functions in their place (Linux 5.15)", lacks);
		return -ENOTSUP;
	}
	int err = functions_error();
	if (err)
		snprintf(why, bytes, "%sdoes not allow tracing of functions: %s", lacks, strerror(-err));
	return err;
}

static void probe_required(struct support *s)
{
	struct utsname u = {0};
	if (uname(&u) == 0)
		snprintf(s->kernel, sizeof s->kernel, "%s", u.release);
	s->preemptible = strstr(u.version, "PREEMPT") != NULL;
	s->disables_preemption = s->preemptible && support_has_function("bpf_preempt_disable");
	s->cpus = libbpf_num_possible_cpus();
	add(s, machine.name, NEED_REQUIRED,
	    "page-fault kinds and system call numbers are those of the machine that this was built for",
	    strcmp(u.machine, machine.name) == 0, "this machine is %s", u.machine);
	add(s, "root", NEED_REQUIRED, "BPF programs cannot be loaded", geteuid() == 0,
	    "running as user %u. Run with sudo", geteuid());
	add(s, "kernel BTF", NEED_REQUIRED, "BPF programs cannot be adapted to this kernel",
	    kernel_btf() != NULL,
	    "cannot read /sys/kernel/btf/vmlinux: the kernel was built without CONFIG_DEBUG_INFO_BTF");
	int load = try_load();
	add(s, "loading BPF programs", NEED_REQUIRED, "nothing can be traced", load == 0,
	    "the kernel rejected a trivial program: %s", strerror(-load));
	add(s, "up to 1024 CPUs", NEED_REQUIRED, "the tables of the BPF programs are too small",
	    s->cpus <= FT_MAX_CPUS, "this host may have %d CPUs", s->cpus);
	add_tracepoint(s, "sched_switch", NEED_REQUIRED, "run states are not recorded");
	add_tracepoint(s, "sched_wakeup", NEED_REQUIRED, "run-queue waits are not recorded");
	add_tracepoint(s, "sched_process_fork", NEED_REQUIRED, "child processes are not followed");
	add_tracepoint(s, "sched_process_exit", NEED_REQUIRED, "threads that exit are not accounted for");
}

bool support_sees_timer(const char *clock_event)
{
	return !strstr(clock_event, "Hyper-V");
}

/* The type of the CPUs' timers: for some types the tracepoint never fires. */
static void add_timer(struct support *s)
{
	char device[64];
	read_text("/sys/devices/system/clockevents/clockevent0/current_device", device, sizeof device);
	device[strcspn(device, "\n")] = 0;
	add(s, "timer interrupts", NEED_PART, "time in timer interrupts counts as on-CPU time of the server",
	    support_sees_timer(device),
	    "the kernel has no tracepoint for the interrupts of this host's timer, \"%s\"", device);
}

static void add_fault_begin(struct support *s)
{
	const bool tracepoints = support_has_tracepoint("page_fault_user");
	const int err = tracepoints ? 0 : try_function("do_mem_abort");
	s->fault_begin = tracepoints ? FAULT_BEGIN_TRACEPOINTS
			 : err	     ? FAULT_BEGIN_EVENT
				     : FAULT_BEGIN_FUNCTION;
	add(s, "reasons of page faults", NEED_PART,
	    "the kind of a page fault is inferred from what it did: a read of untouched memory may count as "
	    "cow-reuse or page-file",
	    err == 0, "no tracepoints of page faults, and the function do_mem_abort cannot be traced: %s",
	    strerror(-err));
}

static void probe_parts(struct support *s)
{
	add_tracepoint(s, "sched_process_exec", NEED_PART,
		       "the CPU slices of load generators that start later are not recorded");
	add_tracepoint(s, "softirq_entry", NEED_PART, "softirq time counts as on-CPU time of the server");
	add_tracepoint(s, "irq_handler_entry", NEED_PART,
		       "device interrupts count as on-CPU time of the server");
	for (size_t i = 0; i < machine.interrupt_count; i++)
		add_tracepoint(s, machine.interrupts[i].tracepoint, NEED_PART, machine.interrupts[i].without);
	add_timer(s);
	add_tracepoint(s, "mm_vmscan_direct_reclaim_begin", NEED_PART, "direct reclaim is not recorded");
	add_tracepoint(s, "mm_vmscan_memcg_reclaim_begin", NEED_PART,
		       "reclaim of memory cgroups is not recorded");
	add_tracepoint(s, "mm_compaction_begin", NEED_PART, "compaction is not recorded");
	add_tracepoint(s, "block_rq_issue", NEED_PART, "block I/O is not recorded");
	bool writes =
	    support_has_tracepoint("writeback_dirty_folio") || support_has_tracepoint("writeback_dirty_page");
	add(s, "writeback_dirty_folio", NEED_PART, "the process whose data writeback writes is not recorded",
	    writes, "this kernel has no such tracepoint in its BTF");
	add_tracepoint(s, "tcp_retransmit_skb", NEED_PART, "TCP retransmissions are not recorded");
	add_tracepoint(s, "tcp_receive_reset", NEED_PART, "TCP resets that arrived are not recorded");
	add_tracepoint(s, "tcp_send_reset", NEED_PART, "TCP resets that were sent are not recorded");
	add(s, "kfree_skb with reasons", NEED_PART,
	    "packets of the server that this host dropped are not recorded", support_sees_drops(),
	    "its tracepoint has no reasons (Linux 5.17 has them)");
	add_fault_begin(s);
	add_tracepoint(s, "mm_page_alloc", NEED_PART, "cow-copy and cow-reuse cannot be distinguished");
	add_tracepoint(
	    s, "cpuhp_enter", NEED_PART,
	    "page faults and CPU samples on CPUs that come online while recording are not recorded");
	int fault = try_fault_event();
	s->has_fault_events = fault == 0;
	add(s, "perf page-fault events", NEED_PART,
	    "page faults are not recorded: copy-on-write counts as on-CPU time of the server", fault == 0,
	    "perf_event_open: %s", strerror(-fault));
	int clock = try_event(support_cpu_clock(1000000), -1, 0);
	s->has_cpu_clock = clock == 0;
	add(s, "perf CPU clock", NEED_PART, "no CPU samples: on-CPU time by function is not recorded",
	    clock == 0, "perf_event_open: %s", strerror(-clock));
	int counters = try_counters();
	s->has_counters = counters == 0;
	add(s, "hardware counters", NEED_EXTRA,
	    "instructions per cycle, frequency and cache misses of the server's threads are not recorded",
	    counters == 0, "this host has no PMU, as most virtual machines (perf_event_open: %s)",
	    strerror(-counters));
	add(s, "kernel symbols", NEED_PART,
	    "kernel stacks of blocked threads show addresses instead of names", symbols_shown(),
	    "/proc/kallsyms shows no addresses: kernel.kptr_restrict hides them");
}

/* Features that the programs can use in one way or another. */
static void probe_choices(struct support *s)
{
	/* A helper is listed in BTF from the version that has it. Task storage for tracing programs (5.13) is
	 * not listed, so bpf_task_pt_regs, which came two versions later, is checked instead. */
	s->has_task_pt_regs = has_helper("BPF_FUNC_task_pt_regs");
	s->has_task_storage = s->has_task_pt_regs;
	s->has_scheduler_waits = s->has_task_storage && has_member("task_struct", "sched_info") &&
				 has_member("sched_info", "last_queued") &&
				 has_member("sched_entity", "cfs_rq");
	s->has_find_vma = has_helper("BPF_FUNC_find_vma");
	s->has_prev_state_arg = tracepoint_arguments("sched_switch") >= 4;
	s->has_block_queue_arg = tracepoint_arguments("block_rq_issue") >= 2;
	s->has_call_events = support_has_event("syscalls/sys_enter_epoll_pwait");
}

void support_probe(struct support *s)
{
	memset(s, 0, sizeof *s);
	probe_required(s);
	probe_parts(s);
	probe_choices(s);
}

const struct feature *support_blocker(const struct support *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->features[i].need == NEED_REQUIRED && !s->features[i].available)
			return &s->features[i];
	return NULL;
}

int support_verdict(const struct support *s, char *sentence, size_t size)
{
	const struct feature *blocker = support_blocker(s);
	size_t missing = 0;
	for (size_t i = 0; i < s->count; i++)
		missing += !s->features[i].available && s->features[i].need != NEED_EXTRA;
	if (blocker)
		snprintf(sentence, size, "This host cannot make a recording: %s.", blocker->why);
	else if (missing)
		snprintf(sentence, size, "This host can make a recording that lacks %zu thing%s.", missing,
			 missing == 1 ? "" : "s");
	else
		snprintf(sentence, size, "This host can make a full recording.");
	return blocker ? 3 : missing ? 1 : 0;
}

int doctor_print(void)
{
	struct support s;
	support_probe(&s);
	printf("kernel %s, %d CPUs\n\n", s.kernel, s.cpus);
	for (size_t i = 0; i < s.count; i++) {
		const struct feature *f = &s.features[i];
		if (f->available) {
			printf("  yes  %s\n", f->name);
			continue;
		}
		printf("  %s %s: %s\n       %s: %s\n", f->need == NEED_EXTRA ? "no  " : "NO  ", f->name,
		       f->why, f->need == NEED_REQUIRED ? "without it nothing can be recorded" : "without it",
		       f->without);
	}
	printf("\nsystem call of a waiting thread read from: %s\nprevious state passed by sched_switch: "
	       "%s\nkinds of mappings distinguished: %s\n",
	       s.has_task_pt_regs ? "bpf_task_pt_regs" : "kernel stack", s.has_prev_state_arg ? "yes" : "no",
	       s.has_find_vma ? "yes" : "no, a read of untouched memory counts as page-file");
	char why[400];
	bool can = support_choose_exact(&s, EXACT_EITHER, why, sizeof why) == 0;
	printf("system calls can be traced (--exact): %s%s\n", can ? "by " : "no, ",
	       can ? support_exact_name(s.exact) : why);
	can = support_requests_error(why, sizeof why) == 0;
	printf("requests of clients can be recorded (--requests): %s%s\n", can ? "yes" : "no, ",
	       !can				 ? why
	       : support_requests_by_functions() ? ", by fentry"
						 : "");
	printf("servers on io_uring: threads that wait in io_uring_enter count as idle, and event-loop "
	       "iterations are recorded.\n  Not recorded: the serving thread of a connection, and the "
	       "kernel's io_uring workers. Requests (--requests) have times and sizes, and no commands.\n");
	printf("thread accounts are stored in: %s\n", s.has_task_storage ? "task storage" : "a hash");
	const int status = support_verdict(&s, why, sizeof why);
	printf("\n%s\n", why);
	return status;
}

/* A sorted table of kernel functions. Symbolizers such as libdw and blazesym read ELF files. For the kernel,
 * /proc/kallsyms is the only source that needs no debug package, and it is almost sorted. A thread reads it
 * while the kernel verifies the programs. */

/* No function is longer than this: an address further beyond a name has no name. */
enum { FUNCTION_BYTES = 1 << 20 };

static const char kallsyms[] = "/proc/kallsyms";

struct symbol {
	uint64_t address;
	uint32_t name; /* offset into names */
} __attribute__((packed, aligned(4)));

static struct {
	struct symbol *all;
	size_t count;
	char *names;
	pthread_t reader;
	bool reading;
} symbols;

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const struct symbol *)a)->address, y = ((const struct symbol *)b)->address;
	return x < y ? -1 : x > y;
}

bool symbols_shown(void)
{
	/* If they are hidden, all of them are 0. */
	char text[4096];
	for (const char *line = read_text(kallsyms, text, sizeof text) > 0 ? text : NULL; line && *line;) {
		if (strtoull(line, NULL, 16))
			return true;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return false;
}

/* Reads "ffffffff81000000 T name", and a tab and "[module]". Returns the function's name, or NULL for another
 * symbol and for the padding before functions, which is never executed. sscanf() would take ten times as
 * long.
 */
static char *parse_function(char *line, uint64_t *address)
{
	static const char padding[] = "__pfx_";
	char *name;
	*address = strtoull(line, &name, 16);
	if (!*address || (strncmp(name, " t ", 3) != 0 && strncmp(name, " T ", 3) != 0))
		return NULL;
	name += 3;
	name[strcspn(name, "\t\n")] = '\0';
	return strncmp(name, padding, sizeof padding - 1) == 0 ? NULL : name;
}

static void *read_symbols(void *unused)
{
	FILE *f = fopen(kallsyms, "re");
	size_t room = 0, names_size = 0, names_room = 0;
	char line[512];
	(void)unused;
	while (f && fgets(line, sizeof line, f)) {
		uint64_t address;
		const char *name = parse_function(line, &address);
		const size_t length = name ? strlen(name) + 1 : 0;
		if (!name)
			continue;
		if (!grow(&symbols.all, &room, symbols.count, sizeof *symbols.all) ||
		    !grow_to(&symbols.names, &names_room, names_size + length, 1))
			break;
		memcpy(symbols.names + names_size, name, length);
		symbols.all[symbols.count++] = (struct symbol){address, (uint32_t)names_size};
		names_size += length;
	}
	if (f)
		fclose(f);
	if (symbols.count)
		qsort(symbols.all, symbols.count, sizeof *symbols.all, by_address);
	return NULL;
}

void symbols_begin(void)
{
	if (symbols.count || symbols.reading)
		return;
	symbols.reading = pthread_create(&symbols.reader, NULL, read_symbols, NULL) == 0;
	if (!symbols.reading)
		read_symbols(NULL);
}

size_t symbols_wait(void)
{
	if (symbols.reading)
		pthread_join(symbols.reader, NULL);
	symbols.reading = false;
	return symbols.count;
}

struct ft_kernel_code_range symbol_code(const char *const *wanted)
{
	for (; *wanted; wanted++) {
		size_t i = 0, next;
		while (i < symbols.count && strcmp(symbols.names + symbols.all[i].name, *wanted) != 0)
			i++;
		for (next = i; next < symbols.count && symbols.all[next].address == symbols.all[i].address;)
			next++;
		if (next < symbols.count)
			return (struct ft_kernel_code_range){
			    symbols.all[i].address, symbols.all[next].address - symbols.all[i].address};
	}
	return (struct ft_kernel_code_range){.bytes = 0};
}

void symbol_name(uint64_t address, char *text, size_t size)
{
	size_t low = 0, high = symbols.count; /* first symbol above the address */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (symbols.all[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - symbols.all[low - 1].address >= FUNCTION_BYTES)
		snprintf(text, size, "?");
	else
		snprintf(text, size, "%s+0x%" PRIx64, symbols.names + symbols.all[low - 1].name,
			 address - symbols.all[low - 1].address);
}
