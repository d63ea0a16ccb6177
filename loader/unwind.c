/* SPDX-License-Identifier: MIT */
/* Unwinding and naming, with libdw.
 *
 * libdw finds a process' files, their debug files on this host (by build id or debug link), and the callers
 * by the unwind tables every program carries (.eh_frame). Never over the network: what asks a debuginfod
 * server is switched off. Names it would look up by going through all symbols of a file for each address; a
 * sorted table per file is made once instead.
 */
#include "unwind.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recording/recording.h"

enum {
	PROCESSES = 64,
	/* A process' mappings are looked at again when an address is in none of them, but not more often than
	   this: code made at run time is in no file. */
	LOOK_AGAIN_NS = 1000000000,
};

/* x86-64's registers as DWARF numbers them. */
enum { DWARF_RBX = 3, DWARF_RBP = 6, DWARF_RSP = 7, DWARF_R12 = 12, DWARF_RIP = 16 };

struct function {
	uint64_t start, end;
	const char *name; /* in the file's string table */
};

/* A file's functions by address; hangs off its Dwfl_Module. */
struct module {
	const char *name;
	struct function *functions;
	size_t count;
};

struct process {
	pid_t pid; /* 0: unused */
	Dwfl *dwfl;
	uint64_t looked_ns;
	char program[NAME_MAX + 1];
	const struct ft_event_sample_stack *sample; /* being unwound */
};

struct unwinder {
	struct process processes[PROCESSES];
	size_t next; /* to be replaced when all are in use */
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* libdw asks for a file by its path as the process sees it; a process in a container sees other files. */
static pid_t asking_for;

static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, char **file_name,
		    Elf **elf)
{
	if (name[0] == '/') {
		char path[PATH_MAX + 32];
		snprintf(path, sizeof path, "/proc/%d/root%s", asking_for, name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			*file_name = strdup(path);
			return fd;
		}
	}
	return dwfl_linux_proc_find_elf(module, userdata, name, base, file_name, elf);
}

static bool read_stack(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *context)
{
	(void)dwfl;
	const struct process *p = context;
	uint64_t at = address - p->sample->sp;
	if (at > p->sample->stack_bytes || p->sample->stack_bytes - at < sizeof *word)
		return false;
	memcpy(word, p->sample->stack + at, sizeof *word);
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	const struct ft_event_sample_stack *e = ((const struct process *)context)->sample;
	const Dwarf_Word bx = e->bx, frame[] = {e->bp, e->sp}, others[] = {e->r12, e->r13, e->r14, e->r15},
			 ip = e->sample.ip;
	return dwfl_thread_state_registers(thread, DWARF_RBX, 1, &bx) &&
	       dwfl_thread_state_registers(thread, DWARF_RBP, 2, frame) &&
	       dwfl_thread_state_registers(thread, DWARF_R12, 4, others) &&
	       dwfl_thread_state_registers(thread, DWARF_RIP, 1, &ip);
}

/* A thread is known by what was copied of it; its process has just the one. */
static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread_context)
{
	(void)dwfl;
	(void)tid;
	*thread_context = context;
	return true;
}

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread_context)
{
	(void)dwfl;
	(void)context;
	(void)thread_context;
	return 0;
}

static const Dwfl_Callbacks file_callbacks = {.find_elf = find_elf,
					      .find_debuginfo = dwfl_standard_find_debuginfo};
static const Dwfl_Thread_Callbacks thread_callbacks = {.next_thread = next_thread,
						       .get_thread = get_thread,
						       .memory_read = read_stack,
						       .set_initial_registers = set_registers};

static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* Of several names for one function the plain one: "write" rather than "__write". */
	return (int)strspn(x->name, "_") - (int)strspn(y->name, "_");
}

static void load_functions(Dwfl_Module *dwfl_module, struct module *m)
{
	int symbols = dwfl_module_getsymtab(dwfl_module);
	if (symbols <= 0)
		return;
	m->functions = malloc((size_t)symbols * sizeof *m->functions);
	for (int i = 1; i < symbols && m->functions; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		const char *name =
		    dwfl_module_getsym_info(dwfl_module, i, &symbol, &address, NULL, NULL, NULL);
		int type = GELF_ST_TYPE(symbol.st_info);
		if (!name || !*name || (type != STT_FUNC && type != STT_GNU_IFUNC) ||
		    symbol.st_shndx == SHN_UNDEF || !symbol.st_size)
			continue;
		m->functions[m->count++] = (struct function){address, address + symbol.st_size, name};
	}
	if (!m->functions)
		return;
	qsort(m->functions, m->count, sizeof *m->functions, by_start);
	size_t kept = 0;
	for (size_t i = 0; i < m->count; i++)
		if (!kept || m->functions[i].start != m->functions[kept - 1].start)
			m->functions[kept++] = m->functions[i];
	m->count = kept;
}

static struct module *module_of(Dwfl_Module *dwfl_module)
{
	void **userdata;
	const char *name = dwfl_module_info(dwfl_module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	if (!*userdata) {
		struct module *m = calloc(1, sizeof *m);
		if (!m)
			return NULL;
		/* libdw calls the kernel's part "[vdso: 4711]" by the process' id. */
		m->name = !name ? "" : strncmp(name, "[vdso", 5) == 0 ? "[vdso]" : base_name(name);
		load_functions(dwfl_module, m);
		*userdata = m;
	}
	return *userdata;
}

static const char *function_at(const struct module *m, uint64_t address)
{
	size_t low = 0, high = m->count; /* first function above the address */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (m->functions[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < m->functions[low - 1].end ? m->functions[low - 1].name : "";
}

static int free_module(Dwfl_Module *dwfl_module, void **userdata, const char *name, Dwarf_Addr start,
		       void *context)
{
	(void)dwfl_module;
	(void)name;
	(void)start;
	(void)context;
	struct module *m = *userdata;
	if (m)
		free(m->functions);
	free(m);
	*userdata = NULL;
	return DWARF_CB_OK;
}

static int load_module(Dwfl_Module *dwfl_module, void **userdata, const char *name, Dwarf_Addr start,
		       void *context)
{
	(void)userdata;
	(void)name;
	(void)start;
	(void)context;
	Dwarf_Addr bias;
	dwfl_module_eh_cfi(dwfl_module, &bias);
	module_of(dwfl_module);
	return DWARF_CB_OK;
}

static void close_process(struct process *p)
{
	if (p->dwfl) {
		dwfl_getmodules(p->dwfl, free_module, NULL, 0);
		dwfl_end(p->dwfl);
	}
	memset(p, 0, sizeof *p);
}

/* False if its mappings can't be read: it has ended, as a rule. */
static bool open_process(struct process *p, pid_t pid)
{
	char path[64], program[PATH_MAX];
	p->pid = asking_for = pid;
	p->looked_ns = ft_now_ns();
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	ssize_t n = readlink(path, program, sizeof program - 1);
	program[n < 0 ? 0 : n] = 0;
	snprintf(p->program, sizeof p->program, "%.*s", NAME_MAX, base_name(program));
	p->dwfl = dwfl_begin(&file_callbacks);
	if (p->dwfl && dwfl_linux_proc_report(p->dwfl, pid) == 0 &&
	    dwfl_report_end(p->dwfl, NULL, NULL) == 0 &&
	    dwfl_attach_state(p->dwfl, NULL, pid, &thread_callbacks, p))
		return true;
	close_process(p);
	return false;
}

static struct process *known_process(struct unwinder *u, pid_t pid)
{
	for (size_t i = 0; i < PROCESSES; i++)
		if (u->processes[i].pid == pid)
			return &u->processes[i];
	return NULL;
}

static struct process *process_of(struct unwinder *u, pid_t pid)
{
	if (!pid)
		return NULL;
	struct process *p = known_process(u, pid);
	if (p)
		return p;
	p = known_process(u, 0);
	if (!p) {
		p = &u->processes[u->next++ % PROCESSES];
		close_process(p);
	}
	return open_process(p, pid) ? p : NULL;
}

/* The process whose mappings hold e's address, looked at again if they don't: it has loaded a library, or is
 * another program since exec. NULL if there are no mappings at all. */
static struct process *process_for(struct unwinder *u, const struct ft_event_sample *e, pid_t parent)
{
	struct process *p = process_of(u, (pid_t)e->tgid);
	if (!p)
		p = process_of(u, parent);
	if (p && !dwfl_addrmodule(p->dwfl, e->ip) && e->t_ns > p->looked_ns + LOOK_AGAIN_NS) {
		pid_t pid = p->pid;
		close_process(p);
		p = process_of(u, pid);
	}
	if (p)
		asking_for = p->pid;
	return p;
}

struct unwinder *unwinder_open(void)
{
	unsetenv("DEBUGINFOD_URLS");
	return calloc(1, sizeof(struct unwinder));
}

void unwinder_close(struct unwinder *u)
{
	for (size_t i = 0; u && i < PROCESSES; i++)
		close_process(&u->processes[i]);
	free(u);
}

void unwinder_prepare(struct unwinder *u, pid_t pid)
{
	struct process *p = process_of(u, pid);
	if (p)
		dwfl_getmodules(p->dwfl, load_module, NULL, 0);
}

void unwinder_forget(struct unwinder *u, pid_t pid)
{
	struct process *p = known_process(u, pid);
	if (p)
		close_process(p);
}

static void add_frame(struct unwound *out, struct process *p, uint64_t address)
{
	Dwfl_Module *dwfl_module = dwfl_addrmodule(p->dwfl, address);
	const struct module *m = dwfl_module ? module_of(dwfl_module) : NULL;
	out->frames[out->count++] =
	    m ? (struct unwound_frame){function_at(m, address), m->name} : (struct unwound_frame){"", ""};
}

struct frames {
	struct unwound *out;
	struct process *process;
};

static int on_frame(Dwfl_Frame *frame, void *context)
{
	const struct frames *f = context;
	Dwarf_Addr ip;
	bool activation;
	if (f->out->count == UNWIND_FRAMES || !dwfl_frame_pc(frame, &ip, &activation))
		return DWARF_CB_ABORT;
	/* A return address may be the next function's first: the call is before it. */
	add_frame(f->out, f->process, activation ? ip : ip - 1);
	return DWARF_CB_OK;
}

void unwinder_locate(struct unwinder *u, const struct ft_event_sample *e, pid_t parent, struct unwound *out)
{
	struct process *p = process_for(u, e, parent);
	*out = (struct unwound){.program = p ? p->program : "", .count = 0};
	if (p)
		add_frame(out, p, e->ip);
}

void unwinder_unwind(struct unwinder *u, const struct ft_event_sample_stack *e, pid_t parent,
		     struct unwound *out)
{
	struct process *p = process_for(u, &e->sample, parent);
	*out = (struct unwound){.program = p ? p->program : "", .count = 0};
	if (!p)
		return;
	p->sample = e;
	struct frames frames = {out, p};
	out->cut = dwfl_getthread_frames(p->dwfl, (pid_t)e->sample.tid, on_frame, &frames) != 0;
	p->sample = NULL;
	if (!out->count)
		add_frame(out, p, e->sample.ip);
}
