/* SPDX-License-Identifier: MIT */
/* Templates of GET and SET, and the patching of keys. */
#include "workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const operation_names[OPERATIONS] = {"GET", "SET"};

static int template_prepare(struct request_template *t, enum operation operation, const char *value,
			    uint32_t bytes)
{
	static const char key[] = "$16\r\nkey:000000000000\r\n";
	size_t room = 64 + sizeof(key) + bytes;
	int head;

	t->bytes = malloc(room);
	if (!t->bytes)
		return -ENOMEM;
	t->key_at = sizeof("*2\r\n$3\r\nGET\r\n$16\r\nkey:") - 1;
	if (operation == OPERATION_GET) {
		head = snprintf(t->bytes, room, "*2\r\n$3\r\nGET\r\n%s", key);
		t->length = (uint32_t)head;
		t->kind = '$';
		t->nil_kind = 'n';
		return 0;
	}
	head = snprintf(t->bytes, room, "*3\r\n$3\r\nSET\r\n%s$%u\r\n", key, bytes);
	memcpy(t->bytes + head, value, bytes);
	memcpy(t->bytes + head + bytes, "\r\n", 2);
	t->length = (uint32_t)head + bytes + 2;
	t->kind = '+';
	return 0;
}

int workload_prepare(struct workload *w, uint32_t value_bytes, uint64_t seed)
{
	struct random_stream random = random_begin(seed, UINT32_MAX, 0);
	char *value = malloc(value_bytes + 1u);
	int rc = 0;

	if (!value)
		return -ENOMEM;
	for (uint32_t i = 0; i < value_bytes; i++)
		value[i] = (char)('!' + random_below(&random, '~' - '!' + 1));
	for (int i = 0; i < OPERATIONS && rc == 0; i++) {
		if (!w->used[i])
			continue;
		rc = template_prepare(&w->templates[i], (enum operation)i, value, value_bytes);
		w->only = (enum operation)i;
		if (w->templates[i].length > w->longest)
			w->longest = w->templates[i].length;
	}
	free(value);
	return rc;
}

void workload_free(struct workload *w)
{
	for (int i = 0; i < OPERATIONS; i++)
		free(w->templates[i].bytes);
	memset(w, 0, sizeof(*w));
}

int request_buffer_init(struct request_buffer *b, const struct workload *w, uint32_t pipeline)
{
	b->bytes = malloc((size_t)w->longest * pipeline);
	b->slots = malloc(sizeof(*b->slots) * (pipeline + 1u));
	if (!b->bytes || !b->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i <= pipeline; i++)
		b->slots[i] = (struct slot){.operation = OPERATIONS};
	return 0;
}

void request_buffer_free(struct request_buffer *b)
{
	free(b->bytes);
	free(b->slots);
	memset(b, 0, sizeof(*b));
}

static inline void put_pair(char *to, uint32_t below_100)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";

	memcpy(to, pairs + 2 * below_100, 2);
}

static inline void put_four(char *to, uint32_t below_10000)
{
	put_pair(to, below_10000 / 100);
	put_pair(to + 2, below_10000 % 100);
}

uint32_t request_put(struct request_buffer *b, const struct workload *w, uint32_t slot, uint32_t at,
		     enum operation operation, uint64_t key)
{
	const struct request_template *t = &w->templates[operation];
	struct slot *s = &b->slots[slot];
	char *to = b->bytes + at;

	if (s->operation != operation || s->at != at) {
		memcpy(to, t->bytes, t->length);
		*s = (struct slot){at, (uint8_t)operation};
		s[1].operation =
		    OPERATIONS; /* may lie under it; and so on, slot by slot, as they are filled */
	}
	to += t->key_at;
	put_four(to, (uint32_t)(key / 100000000));
	key %= 100000000;
	put_four(to + 4, (uint32_t)key / 10000);
	put_four(to + 8, (uint32_t)key % 10000);
	return at + t->length;
}
