/* SPDX-License-Identifier: MIT */
/* A stamp is written as the last step of formatting a message, so its start is the time of sending. It is
 * parsed strictly, because a channel may carry unrelated messages. */
#include "stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "recording/recording.h"

void stamp_write(struct stamps *s, uint64_t intended_ns, char *to, size_t length)
{
	uint64_t now = ft_now_ns(), number = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
	char text[STAMP_BYTES + 64];

	snprintf(text, sizeof(text), "forktail %08" PRIx32 " %012" PRIu64 " %019" PRIu64 " %019" PRIu64 " ",
		 s->run, number % 1000000000000u, intended_ns ? intended_ns : now, now);
	memcpy(to, text, STAMP_BYTES);
	memset(to + STAMP_BYTES, 'x', length - STAMP_BYTES);
}

/* Digits in one base, and the blank after them. */
static bool read_number(const char **at, int digits, unsigned base, uint64_t *number)
{
	*number = 0;
	for (int i = 0; i < digits; i++, (*at)++) {
		char x = **at;
		unsigned digit = x >= '0' && x <= '9'	? (unsigned)(x - '0')
				 : x >= 'a' && x <= 'f' ? (unsigned)(x - 'a' + 10)
							: 99;

		if (digit >= base)
			return false;
		*number = *number * base + digit;
	}
	return *(*at)++ == ' ';
}

bool stamp_read(const char *at, size_t length, uint32_t run, struct stamp *s)
{
	uint64_t id;

	if (length < STAMP_BYTES || memcmp(at, "forktail ", 9) != 0)
		return false;
	at += 9;
	return read_number(&at, 8, 16, &id) && id == run && read_number(&at, 12, 10, &s->number) &&
	       read_number(&at, 19, 10, &s->intended_ns) && read_number(&at, 19, 10, &s->start_ns) &&
	       s->start_ns >= s->intended_ns;
}
