/* SPDX-License-Identifier: MIT */
/* The unwinding helper's input under libFuzzer: an input is an ELF file mapped by a target. Its last bytes
 * are also the registers and the stack of a sample in it. libdw itself is not instrumented, but its heap
 * is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader/samples.h"
#include "tests/fuzz/check.h"

enum { PAGE = 4096, SPACE = 7 };
#define AT 0x10000000ull

/* libdw leaks some memory for broken unwind tables. The helper's memory is limited
 * (loader/system/privileges.c). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libdw.so\n";
}

static int none(void *context, const uint8_t *build_id, size_t bytes)
{
	(void)context;
	if (bytes && build_id[0] == build_id[bytes - 1] && bytes > 1 << 20)
		abort(); /* read completely, with an impossible size for our files */
	return -1;
}

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
		perror("memfd");
		exit(3);
	}
	return fd;
}

/* Takes a number from the input's end. */
static uint64_t number(const uint8_t *data, size_t size, size_t which)
{
	uint64_t n = 0;
	if (size >= (which + 1) * sizeof n)
		memcpy(&n, data + size - (which + 1) * sizeof n, sizeof n);
	return n;
}

static void check(const struct unwind_stack *u)
{
	static struct stack_text text;
	struct stack_line line;
	const char *at = text.bytes;
	size_t frames = 0, lines = 0;
	if (u->count > UNWIND_FRAMES)
		abort();
	stack_text_begin(&text, "program");
	while (frames < u->count &&
	       stack_text_frame(&text, u->frames[frames].function, u->frames[frames].module))
		frames++;
	stack_text_line(&at, &line);
	while (stack_text_line(&at, &line)) {
		if (!line.module || line.function_length > STACK_NAME_BYTES ||
		    line.module_length > STACK_NAME_BYTES)
			abort();
		lines++;
	}
	if (lines != frames)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ft_event_sample_stack e;
	struct unwind_file file = {.start = AT, .end = AT + (size + PAGE - 1) / PAGE * PAGE, .name = "input"};
	struct unwinder *u = size ? unwinder_open(none, NULL, NULL) : NULL;
	struct unwind_stack unwound;
	if (!u)
		return 0;
	unwinder_begin_space(u, SPACE);
	unwinder_add_file(u, SPACE, &file, file_of(data, size));
	unwinder_end_space(u, SPACE, true);
	e.sample.ip = AT + number(data, size, 0) % (size + 16);
	e.sp = number(data, size, 1);
	e.saved[0] = number(data, size, 2);
	e.saved[1] = number(data, size, 3);
	e.stack_bytes = (uint32_t)(size < FT_USER_STACK_BYTES ? size : FT_USER_STACK_BYTES);
	memcpy(e.stack, data + size - e.stack_bytes, e.stack_bytes);
	/* Every stack word that may be an address is set to one within the file, so that there are callers.
	 */
	for (size_t i = 0; i + sizeof(uint64_t) <= e.stack_bytes; i += sizeof(uint64_t)) {
		uint64_t address = AT + (e.stack[i] | (uint64_t)e.stack[i + 1] << 8) % (size + 1);
		memcpy(e.stack + i, &address, sizeof address);
	}
	unwinder_unwind(u, SPACE, &e, true, &unwound);
	check(&unwound);
	unwinder_unwind(u, SPACE, &e, false, &unwound);
	check(&unwound);
	unwinder_close(u);
	return 0;
}
