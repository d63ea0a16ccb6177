/* SPDX-License-Identifier: MIT */
/* Unwinding and naming with libdw. libdw finds callers using the unwind tables that every program contains
 * (.eh_frame), and names using the symbol tables of the file and its debug file. libdw would scan all symbols
 * of a file for each address, so a sorted table is built once per file instead. There are few files but many
 * address spaces (one per process), so data of a file is stored with the file and shared. */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "loader/samples.h"
#include "loader/system.h"

enum {
	FILES_KEPT = 64, /* files that no address space uses any more, usually a child's; another child will
			    need them */
	FUNCTION_NAME = 256,
};

struct function {
	uint64_t start, end; /* as the file numbers them */
	size_t name;	     /* offset into the file's names */
};

struct file {
	uint64_t key[4];
	size_t users; /* modules */
	Elf *elf;
	int fd;
	void *memory; /* in place of a descriptor */
	bool named;   /* its functions have been read, if it has any */
	struct function *functions;
	size_t count;
	char *names;
	size_t names_length, names_room;
	struct file *prev, *next;
};

/* A file at its address. A Dwfl_Module's user data points to it. */
struct module {
	struct unwinder *unwinder;
	struct file *file;
	char name[UNWIND_NAME];
	struct module *next;
};

struct space {
	uint32_t id;
	Dwfl *dwfl;
	bool ready;
	struct module *modules;
	const struct ft_event_sample_stack *sample; /* the sample being unwound */
};

struct unwinder {
	debug_file_finder find_debug_file;
	void *context;
	file_reporter report;
	struct file *files;
	size_t file_count;
	struct space **spaces;
	size_t count, room;
};

/* libdw releases the reference that it receives. */
static int find_elf(Dwfl_Module *dwfl_module, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	(void)dwfl_module;
	(void)name;
	(void)base;
	(void)file_name;
	const struct module *m = *userdata;
	*elf = m ? elf_begin(-1, ELF_C_READ, m->file->elf) : NULL;
	return -1;
}

static int find_debuginfo(Dwfl_Module *dwfl_module, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link_file, GElf_Word link_crc,
			  char **debug_file_name)
{
	(void)name;
	(void)base;
	(void)file_name;
	(void)link_file;
	(void)link_crc;
	(void)debug_file_name;
	const struct module *m = *userdata;
	const unsigned char *bits;
	GElf_Addr address;
	int bytes = dwfl_module_build_id(dwfl_module, &bits, &address);
	if (!m || bytes <= 0 || !m->unwinder->find_debug_file)
		return -1;
	return m->unwinder->find_debug_file(m->unwinder->context, bits, (size_t)bytes);
}

static bool read_stack(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *context)
{
	(void)dwfl;
	const struct space *p = context;
	uint64_t at = address - p->sample->sp, bytes = p->sample->stack_bytes;
	if (bytes > FT_USER_STACK_BYTES || at > bytes || bytes - at < sizeof *word)
		return false;
	memcpy(word, p->sample->stack + at, sizeof *word);
	*word &= machine.address_bits;
	return true;
}

static bool set_register(Dwfl_Thread *thread, int number, Dwarf_Word value)
{
	return dwfl_thread_state_registers(thread, number, 1, &value);
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	const struct ft_event_sample_stack *e = ((const struct space *)context)->sample;
	bool set = set_register(thread, machine.stack_register, e->sp);
	for (int i = 0; i < FT_SAVED_REGISTERS; i++)
		set = set &&
		      set_register(thread, machine.saved_registers[i], e->saved[i] & machine.address_bits);
	if (machine.instruction_register >= 0)
		return set && set_register(thread, machine.instruction_register, e->sample.ip);
	dwfl_thread_state_register_pc(thread, e->sample.ip);
	return set;
}

/* The thread is described by the copied stack, and its process has only this thread. */
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

static const Dwfl_Callbacks file_callbacks = {.find_elf = find_elf, .find_debuginfo = find_debuginfo};
static const Dwfl_Thread_Callbacks thread_callbacks = {.next_thread = next_thread,
						       .get_thread = get_thread,
						       .memory_read = read_stack,
						       .set_initial_registers = set_registers};

/* qsort passes no context. */
static const char *sorted_names;

static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* Of several names for one function, choose the plain one: "write" rather than "__write". */
	return (int)strspn(sorted_names + x->name, "_") - (int)strspn(sorted_names + y->name, "_");
}

/* Offset of a copy of this name in the file's names. SIZE_MAX: no memory. */
static size_t keep_name(struct file *f, const char *name)
{
	size_t length = strnlen(name, FUNCTION_NAME), at = f->names_length;
	if (!grow_to(&f->names, &f->names_room, at + length + 1, 1))
		return SIZE_MAX;
	memcpy(f->names + at, name, length);
	f->names[at + length] = 0;
	f->names_length += length + 1;
	return at;
}

static void keep_function(struct file *f, Dwfl_Module *dwfl_module, int index, GElf_Addr bias)
{
	GElf_Sym symbol;
	GElf_Addr address;
	const char *name = dwfl_module_getsym_info(dwfl_module, index, &symbol, &address, NULL, NULL, NULL);
	int type = GELF_ST_TYPE(symbol.st_info);
	if (!name || !*name || (type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF ||
	    !symbol.st_size)
		return;
	size_t kept = keep_name(f, name);
	address -= bias;
	if (kept != SIZE_MAX)
		f->functions[f->count++] = (struct function){address, address + symbol.st_size, kept};
}

static void load_functions(Dwfl_Module *dwfl_module, struct file *f)
{
	GElf_Addr bias;
	f->named = true;
	int symbols = dwfl_module_getelf(dwfl_module, &bias) ? dwfl_module_getsymtab(dwfl_module) : 0;
	if (symbols <= 0)
		return;
	f->functions = malloc((size_t)symbols * sizeof *f->functions);
	for (int i = 1; i < symbols && f->functions; i++)
		keep_function(f, dwfl_module, i, bias);
	if (!f->count)
		return;
	sorted_names = f->names;
	qsort(f->functions, f->count, sizeof *f->functions, by_start);
	size_t kept = 0;
	for (size_t i = 0; i < f->count; i++)
		if (!kept || f->functions[i].start != f->functions[kept - 1].start)
			f->functions[kept++] = f->functions[i];
	f->count = kept;
	struct function *smaller = realloc(f->functions, kept * sizeof *f->functions);
	f->functions = smaller ? smaller : f->functions;
}

static void report_reading(const struct module *m)
{
	if (m->unwinder->report)
		m->unwinder->report(m->file->key, m->name);
}

static struct module *module_of(Dwfl_Module *dwfl_module)
{
	void **userdata;
	if (!dwfl_module)
		return NULL;
	dwfl_module_info(dwfl_module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	struct module *m = *userdata;
	if (m)
		report_reading(m);
	if (m && !m->file->named)
		load_functions(dwfl_module, m->file);
	return m;
}

static const char *function_at(const struct file *f, uint64_t address)
{
	size_t low = 0, high = f->count; /* first function above the address */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (f->functions[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < f->functions[low - 1].end ? f->names + f->functions[low - 1].name : "";
}

/* The kernel's code page is in no file, but in every process, including this one. */
static Elf *own_vdso(struct file *f)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	if (!image)
		return NULL;
	const Elf64_Ehdr *header = image;
	size_t bytes = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	f->memory = malloc(bytes);
	return f->memory ? elf_memory(memcpy(f->memory, image, bytes), bytes) : NULL;
}

static void free_file(struct file *f)
{
	elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	free(f->memory);
	free(f->functions);
	free(f->names);
	free(f);
}

static struct file *open_file(const uint64_t key[4], int fd)
{
	struct file *f = calloc(1, sizeof *f);
	if (!f) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	memcpy(f->key, key, sizeof f->key);
	f->fd = fd;
	f->elf = fd < 0 ? own_vdso(f) : elf_begin(fd, ELF_C_READ, NULL);
	GElf_Ehdr header;
	if (f->elf && elf_kind(f->elf) == ELF_K_ELF && gelf_getehdr(f->elf, &header) &&
	    header.e_machine == machine.elf && (header.e_type == ET_DYN || header.e_type == ET_EXEC))
		return f;
	free_file(f);
	return NULL;
}

/* Returns the file with this key, opened if it is new. NULL: a file without functions. */
static struct file *file_of(struct unwinder *u, const uint64_t key[4], int fd)
{
	for (struct file *f = u->files; f; f = f->next) {
		if (memcmp(f->key, key, sizeof f->key) != 0)
			continue;
		if (fd >= 0)
			close(fd);
		return f;
	}
	struct file *f = open_file(key, fd);
	if (f) {
		DL_PREPEND(u->files, f);
		u->file_count++;
	}
	return f;
}

/* Forgets unused files, except the most recently used ones. */
static void forget_files(struct unwinder *u, size_t keep)
{
	size_t unused = 0;
	struct file *f, *next;
	DL_FOREACH_SAFE(u->files, f, next)
	{
		if (f->users || ++unused <= keep)
			continue;
		DL_DELETE(u->files, f);
		free_file(f);
		u->file_count--;
	}
}

static struct space *space_of(const struct unwinder *u, uint32_t id)
{
	for (size_t i = 0; i < u->count; i++)
		if (u->spaces[i]->id == id)
			return u->spaces[i];
	return NULL;
}

static void free_space(struct space *s)
{
	if (s->dwfl)
		dwfl_end(s->dwfl);
	while (s->modules) {
		struct module *m = s->modules;
		s->modules = m->next;
		m->file->users--;
		free(m);
	}
	free(s);
}

struct unwinder *unwinder_open(debug_file_finder find_debug_file, void *context, file_reporter report)
{
	struct unwinder *u = calloc(1, sizeof *u);
	if (!u)
		return NULL;
	elf_version(EV_CURRENT);
	u->find_debug_file = find_debug_file;
	u->context = context;
	u->report = report;
	return u;
}

void unwinder_close(struct unwinder *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->count; i++)
		free_space(u->spaces[i]);
	forget_files(u, 0);
	free(u->spaces);
	free(u);
}

void unwinder_forget_space(struct unwinder *u, uint32_t id)
{
	for (size_t i = 0; i < u->count; i++) {
		if (u->spaces[i]->id != id)
			continue;
		free_space(u->spaces[i]);
		u->spaces[i] = u->spaces[--u->count];
		forget_files(u, FILES_KEPT);
		return;
	}
}

void unwinder_abandon_space(struct unwinder *u, uint32_t id)
{
	for (size_t i = 0; i < u->count; i++)
		if (u->spaces[i]->id == id)
			u->spaces[i] = u->spaces[--u->count];
}

void unwinder_begin_space(struct unwinder *u, uint32_t id)
{
	unwinder_forget_space(u, id);
	struct space *s =
	    grow(&u->spaces, &u->room, u->count, sizeof *u->spaces) ? calloc(1, sizeof *s) : NULL;
	if (!s)
		return;
	s->id = id;
	s->dwfl = dwfl_begin(&file_callbacks);
	u->spaces[u->count++] = s;
}

void unwinder_add_file(struct unwinder *u, uint32_t id, const struct unwind_file *file, int fd)
{
	struct space *s = space_of(u, id);
	struct module *m = s && s->dwfl && !s->ready ? calloc(1, sizeof *m) : NULL;
	if (!m) {
		if (fd >= 0)
			close(fd);
		return;
	}
	m->unwinder = u;
	memcpy(m->name, file->name, sizeof m->name - 1);
	if (u->report)
		u->report(file->key, m->name);
	m->file = file_of(u, file->key, fd);
	Dwfl_Module *dwfl_module =
	    m->file ? dwfl_report_module(s->dwfl, m->name, file->start, file->end) : NULL;
	if (!dwfl_module) {
		free(m);
		return;
	}
	void **userdata;
	dwfl_module_info(dwfl_module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	if (*userdata) { /* the same address twice */
		free(m);
		return;
	}
	*userdata = m;
	m->file->users++;
	m->next = s->modules;
	s->modules = m;
}

static int load_module(Dwfl_Module *dwfl_module, void **userdata, const char *name, Dwarf_Addr start,
		       void *context)
{
	(void)userdata;
	(void)name;
	(void)start;
	(void)context;
	Dwarf_Addr bias;
	module_of(dwfl_module);
	dwfl_module_eh_cfi(dwfl_module, &bias);
	return DWARF_CB_OK;
}

void unwinder_end_space(struct unwinder *u, uint32_t id, bool preload)
{
	struct space *s = space_of(u, id);
	if (!s || !s->dwfl || s->ready)
		return;
	s->ready = true;
	dwfl_report_end(s->dwfl, NULL, NULL);
	/* Without it there are names but no callers. The process id has no meaning here. */
	dwfl_attach_state(s->dwfl, NULL, 1, &thread_callbacks, s);
	if (preload)
		dwfl_getmodules(s->dwfl, load_module, NULL, 0);
}

static void add_frame(struct unwind_stack *out, struct space *s, uint64_t address)
{
	Dwfl_Module *dwfl_module = dwfl_addrmodule(s->dwfl, address);
	const struct module *m = module_of(dwfl_module);
	GElf_Addr bias = 0;
	if (m)
		dwfl_module_getelf(dwfl_module, &bias);
	out->frames[out->count++] = m ? (struct unwind_frame){function_at(m->file, address - bias), m->name}
				      : (struct unwind_frame){"", ""};
}

struct frames {
	struct unwind_stack *out;
	struct space *space;
};

static int on_frame(Dwfl_Frame *frame, void *context)
{
	const struct frames *f = context;
	Dwarf_Addr ip;
	bool activation;
	if (f->out->count == UNWIND_FRAMES || !dwfl_frame_pc(frame, &ip, &activation))
		return DWARF_CB_ABORT;
	/* A return address may be the start of the next function, but the call is before it. */
	add_frame(f->out, f->space, activation ? ip : ip - 1);
	return DWARF_CB_OK;
}

void unwinder_unwind(struct unwinder *u, uint32_t id, const struct ft_event_sample_stack *e, bool callers,
		     struct unwind_stack *out)
{
	struct space *s = space_of(u, id);
	*out = (struct unwind_stack){.count = 0};
	if (!s || !s->ready)
		return;
	s->sample = e;
	struct frames frames = {out, s};
	module_of(dwfl_addrmodule(s->dwfl, e->sample.ip)); /* whose unwind table is read first */
	if (callers)
		out->cut = dwfl_getthread_frames(s->dwfl, 1, on_frame, &frames) != 0;
	s->sample = NULL;
	if (!out->count)
		add_frame(out, s, e->sample.ip);
}

/* libdw is large, and it reads files that the owner of a target made. So it runs not in the privileged
 * recorder but in a process without privileges: an attacker who exploits an error in it gains only that
 * process. The process may also hang or crash; the recorder handles that (unwind_queue.c). */

enum {
	SOCKET_BYTES = 8 << 20, /* for the samples of one tick of the recorder on a large host */
	ANSWER_MS = 2000,	/* how long to wait for a debug file */
	CRASHES_MAX = 8,	/* each of them leaves memory behind */
};

static struct {
	int spaces, questions; /* -1: none */
	struct unwinder *unwinder;
	volatile struct helper_note *note;
	sigjmp_buf before; /* a request */
	int crashes;
} helper = {.spaces = -1, .questions = -1};

static void disconnect(void)
{
	close(helper.spaces);
	close(helper.questions);
	helper.spaces = helper.questions = -1;
}

/* A debug_file_finder: asks the process that opens files. */
static int ask(void *context, const uint8_t *build_id, size_t bytes)
{
	struct debug_file_question question = {.bytes = (uint8_t)bytes};
	struct pollfd p = {.fd = helper.questions, .events = POLLIN};
	char unused;
	int fd = -1;
	(void)context;
	if (bytes > BUILD_ID_MAX || helper.questions < 0)
		return -1;
	memcpy(question.build_id, build_id, bytes);
	if (send_packet(helper.questions, &question, sizeof question, -1, 0) || poll(&p, 1, ANSWER_MS) != 1 ||
	    receive_packet(helper.questions, &unused, sizeof unused, &fd, 0) <= 0) {
		/* A late answer would be taken for another one's. */
		close(helper.questions);
		helper.questions = -1;
	}
	return fd;
}

/* A file_reporter: what is read from now on. */
static void report_file(const uint64_t key[4], const char *name)
{
	helper_note_file(helper.note, key, name);
}

static void answer(int socket, struct unwinder *u, const struct unwind_request *r)
{
	static struct stack_text text;
	static struct unwind_answer a;
	uint64_t start_ns = own_cpu_ns();
	struct unwind_stack unwound;
	unwinder_unwind(u, r->space, &r->sample, r->flag, &unwound);
	stack_text_begin(&text, "");
	size_t program = text.length, i = 0;
	while (i < unwound.count &&
	       stack_text_frame(&text, unwound.frames[i].function, unwound.frames[i].module))
		i++;
	a.serial = r->serial;
	a.cut = unwound.cut || i < unwound.count;
	a.took_ns = own_cpu_ns() - start_ns;
	size_t length = text.length - program;
	memcpy(a.text, text.bytes + program, length);
	report_file(NULL, ""); /* before the recorder knows that it is done */
	send_packet(socket, &a, offsetof(struct unwind_answer, text) + length, -1, 0);
}

static void take_source(const int *fds, size_t count)
{
	if (count != 2)
		return;
	disconnect();
	helper.spaces = fds[0];
	helper.questions = fds[1];
}

static void handle(const struct unwind_request *r, int fd)
{
	switch (r->kind) {
	case UNWIND_BEGIN_SPACE:
		unwinder_begin_space(helper.unwinder, r->space);
		break;
	case UNWIND_ADD_FILE:
		unwinder_add_file(helper.unwinder, r->space, &r->file, fd);
		break;
	case UNWIND_END_SPACE:
		unwinder_end_space(helper.unwinder, r->space, r->flag);
		break;
	case UNWIND_FORGET_SPACE:
		unwinder_forget_space(helper.unwinder, r->space);
		break;
	case UNWIND_SAMPLE:
		answer(HELPER_SOCKET, helper.unwinder, r);
		break;
	}
	report_file(NULL, "");
}

/* A file that was shortened while libdw had it mapped. What libdw was doing is abandoned; if it held
 * something, that is lost, so after some of these the process is replaced. */
static void on_bus_error(int signal)
{
	(void)signal;
	if (++helper.crashes > CRASHES_MAX)
		_exit(4);
	siglongjmp(helper.before, 1);
}

/* Handles a request that may fail in the middle. The space that it was about is not used any more: its files
 * are not as they were. */
static void try_to_handle(const struct unwind_request *r, int fd)
{
	if (sigsetjmp(helper.before, 1) == 0) {
		handle(r, fd);
		return;
	}
	unwinder_abandon_space(helper.unwinder, r->space);
	if (r->kind == UNWIND_SAMPLE)
		answer(HELPER_SOCKET, helper.unwinder, r);
	report_file(NULL, "");
}

/* Takes what is there about address spaces: a sample may be about them. */
static void take_spaces(struct unwind_request *r)
{
	int fd;
	while (helper.spaces >= 0) {
		const ssize_t n = receive_packet(helper.spaces, r, sizeof *r, &fd, MSG_DONTWAIT);
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			close(helper.spaces); /* its process has ended: there will be another one */
			helper.spaces = -1;
			return;
		}
		if (r->kind <= UNWIND_END_SPACE)
			try_to_handle(r, fd);
		else if (fd >= 0)
			close(fd);
	}
}

/* Runs until the recorder has exited. */
static void serve(void)
{
	static struct unwind_request r, of_space;
	for (;;) {
		int fds[2];
		size_t count;
		struct pollfd polled[] = {{.fd = HELPER_SOCKET, .events = POLLIN},
					  {.fd = helper.spaces, .events = POLLIN}};
		poll(polled, 2, -1);
		if (!polled[0].revents) {
			take_spaces(&of_space);
			continue;
		}
		if (receive_packet_fds(HELPER_SOCKET, &r, sizeof r, fds, 2, &count, 0) <= 0)
			return;
		take_spaces(&of_space);
		if (r.kind == UNWIND_SOURCE)
			take_source(fds, count);
		else
			try_to_handle(&r, -1);
	}
}

static void live(pid_t parent, size_t kept_count)
{
	(void)kept_count;
	unsetenv("DEBUGINFOD_URLS");
	helper.note = helper_note_of(&unwind_helper);
	helper.unwinder = unwinder_open(ask, NULL, report_file);
	if (!helper.unwinder || signal(SIGBUS, on_bus_error) == SIG_ERR ||
	    privileges_confine_unwinding(parent))
		_exit(3);
	serve();
}

const struct helper_setup unwind_helper = {
    .name = "forktail-unwind", .live = live, .socket_bytes = SOCKET_BYTES, .low_priority = true};
