/* SPDX-License-Identifier: MIT */
/* A library in which a function's only name is in its debug file (unwind_queue_test.cc). */
static __attribute__((noinline)) void known_by_its_debug_file(void)
{
	__asm__ volatile("");
}

void (*stripped_function(void))(void)
{
	return known_by_its_debug_file;
}
