/* SPDX-License-Identifier: MIT */
/* A pass over millions of commands, so each costs two lookups and no separate allocation: texts go into the
 * store's chunks, tables double, and commands without RESP bytes in their file are formatted here instead of
 * during the load. */
#include "replay_gather.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/parse.h"
#include "replay_store.h"

enum { NAMES_MAX = 4096, OTHER_NAME = NAMES_MAX, SLOTS_MIN = 1024 };

struct gather_client {
	struct replay_word name;
	uint32_t database;
};

struct gather_name {
	char text[OPERATION_NAME];
	uint64_t count;
	bool harmful; /* an entry in the list of harmful commands begins with it */
	bool selects;
	enum replay_part part; /* of a transaction */
	uint32_t operation;
};

int gather_init(struct gather *g, struct replay *r, const struct harm_allowed *allowed)
{
	*g = (struct gather){
	    .r = r, .allowed = allowed, .first_ns = REPLAY_NO_TIME, .last_ns = REPLAY_NO_TIME};
	g->names = calloc(NAMES_MAX, sizeof(*g->names));
	/* Large enough for all names, so that it need not grow. */
	g->names_table.slot_count = 2 * NAMES_MAX;
	g->names_table.slots = calloc(g->names_table.slot_count, sizeof(*g->names_table.slots));
	return g->names && g->names_table.slots ? 0 : -ENOMEM;
}

void gather_free(struct gather *g)
{
	free(g->clients_table.slots);
	free(g->names_table.slots);
	free(g->clients);
	free(g->names);
}

static uint64_t hash_of(const char *at, size_t length)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < length; i++)
		h = (h ^ (unsigned char)at[i]) * 0x100000001b3u;
	return h ^ h >> 29;
}

/* There may be many clients. */
static bool grow_clients(struct gather_table *t, const struct gather_client *clients)
{
	uint32_t count = t->slot_count ? t->slot_count * 2 : SLOTS_MIN;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	for (uint32_t i = 0; i < t->count; i++) {
		uint64_t at = hash_of(clients[i].name.at, clients[i].name.length);

		while (slots[at & (count - 1)])
			at++;
		slots[at & (count - 1)] = i + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->slot_count = count;
	return true;
}

/* The client's entry, created if it is new. NULL: out of memory. */
static struct gather_client *find_client(struct gather *g, const struct replay_word *w)
{
	struct gather_table *t = &g->clients_table;
	uint64_t at = hash_of(w->at, w->length);
	char *copy;

	if (t->count * 2 >= t->slot_count && !grow_clients(t, g->clients))
		return NULL;
	for (uint32_t slot; (slot = t->slots[at & (t->slot_count - 1)]); at++) {
		struct gather_client *c = &g->clients[slot - 1];

		if (c->name.length == w->length &&
		    (w->length == 0 || memcmp(c->name.at, w->at, w->length) == 0))
			return c;
	}
	if (t->count == g->client_room) {
		uint32_t room = g->client_room ? g->client_room * 2 : 256;
		struct gather_client *grown = realloc(g->clients, room * sizeof(*grown));

		if (!grown)
			return NULL;
		g->clients = grown;
		g->client_room = room;
	}
	copy = replay_store_take(g->r->store, w->length);
	if (!copy)
		return NULL;
	if (w->length)
		memcpy(copy, w->at, w->length);
	g->clients[t->count] = (struct gather_client){.name = {copy, w->length}};
	t->slots[at & (t->slot_count - 1)] = ++t->count;
	return &g->clients[t->count - 1];
}

static enum replay_part part_of(const char *name)
{
	static const struct {
		const char *name;
		enum replay_part part;
	} all[] = {{"WATCH", REPLAY_WATCH},
		   {"UNWATCH", REPLAY_UNWATCH},
		   {"MULTI", REPLAY_MULTI},
		   {"EXEC", REPLAY_EXEC},
		   {"DISCARD", REPLAY_EXEC}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (strcmp(all[i].name, name) == 0)
			return all[i].part;
	return REPLAY_PLAIN;
}

static void add_name(struct gather *g, const char *text)
{
	struct gather_name *n = &g->names[g->names_table.count++];
	struct replay_word word = {text, strlen(text)};

	*n = (struct gather_name){
	    .selects = strcmp(text, "SELECT") == 0, .harmful = harm_begins(&word), .part = part_of(text)};
	memcpy(n->text, text, word.length + 1);
}

/* The number of a command's name, in upper case and restricted to characters that tables and JSON can
 * show. */
static uint32_t find_name(struct gather *g, const struct replay_word *w)
{
	struct gather_table *t = &g->names_table;
	char text[OPERATION_NAME];
	size_t length = 0;
	uint64_t at;

	for (; length < w->length && length < sizeof(text) - 1; length++) {
		unsigned char x = (unsigned char)toupper((unsigned char)w->at[length]);
		text[length] = (char)(x > ' ' && x < 127 && x != '"' && x != '\\' ? x : '?');
	}
	if (length == 0)
		text[length++] = '?';
	text[length] = 0;
	at = hash_of(text, length);
	for (uint32_t slot; (slot = t->slots[at & (t->slot_count - 1)]); at++)
		if (strcmp(g->names[slot - 1].text, text) == 0)
			return slot - 1;
	if (t->count == NAMES_MAX)
		return OTHER_NAME;
	add_name(g, text);
	t->slots[at & (t->slot_count - 1)] = t->count;
	return t->count - 1;
}

static uint32_t decimal_digits(size_t n)
{
	uint32_t digits = 1;

	while (n >= 10) {
		n /= 10;
		digits++;
	}
	return digits;
}

/* The words as RESP. NULL: out of memory. */
static char *write_wire(struct gather *g, const struct replay_item *item, size_t *length)
{
	size_t bytes = 1 + decimal_digits(item->word_count) + 2;
	char *out, *p;

	for (uint32_t i = 0; i < item->word_count; i++)
		bytes += 1 + decimal_digits(item->words[i].length) + 2 + item->words[i].length + 2;
	/* One more, for sprintf's 0. */
	out = p = replay_store_take(g->r->store, bytes + 1);
	if (!out)
		return NULL;
	p += sprintf(p, "*%u\r\n", item->word_count);
	for (uint32_t i = 0; i < item->word_count; i++) {
		p += sprintf(p, "$%zu\r\n", item->words[i].length);
		memcpy(p, item->words[i].at, item->words[i].length);
		p += item->words[i].length;
		memcpy(p, "\r\n", 2);
		p += 2;
	}
	*length = bytes;
	return out;
}

static struct replay_record *new_record(struct gather *g)
{
	struct replay *r = g->r;

	if (r->count == g->record_room) {
		uint64_t room = g->record_room ? (uint64_t)g->record_room * 2 : 1024;
		struct replay_record *grown =
		    room > REPLAY_END ? NULL : realloc(r->records, room * sizeof(*grown));

		if (!grown)
			return NULL;
		r->records = grown;
		g->record_room = (uint32_t)room;
	}
	return &r->records[r->count];
}

/* Its due time. A timestamp earlier than the previous one is replaced by that. */
static uint64_t due_ns(struct gather *g, uint64_t time_ns)
{
	if (time_ns == REPLAY_NO_TIME)
		return g->last_ns == REPLAY_NO_TIME ? 0 : g->last_ns - g->first_ns;
	if (g->first_ns == REPLAY_NO_TIME)
		g->first_ns = g->last_ns = time_ns;
	if (time_ns < g->last_ns)
		g->r->backwards++;
	else
		g->last_ns = time_ns;
	return g->last_ns - g->first_ns;
}

/* The database that a SELECT selects, if it is valid. */
static bool selected(const struct replay_item *item, uint32_t *database)
{
	char text[8];
	uint64_t number;

	if (item->word_count != 2 || item->words[1].length >= sizeof(text))
		return false;
	memcpy(text, item->words[1].at, item->words[1].length);
	text[item->words[1].length] = 0;
	if (!parse_count(text, 0, REPLAY_DATABASE_MAX, &number))
		return false;
	*database = (uint32_t)number;
	return true;
}

bool gather_add(struct gather *g, const struct replay_item *item)
{
	struct replay *r = g->r;
	uint32_t name = find_name(g, &item->words[0]), database = item->database;
	size_t length = item->wire.length;
	const char *bytes = item->wire.at;
	struct replay_record *record;
	struct gather_client *client;
	bool selects = false;
	int harm = -1;

	if (item->scripted) {
		r->scripted++;
		return true;
	}
	if (name != OTHER_NAME && g->names[name].harmful)
		harm = harm_find(g->allowed, item);
	if (harm >= 0) {
		r->left_out[harm]++;
		return true;
	}
	client = find_client(g, &item->client);
	record = client ? new_record(g) : NULL;
	if (record && !bytes)
		bytes = write_wire(g, item, &length);
	if (!record || !bytes || length > UINT32_MAX)
		return false;
	if (name != OTHER_NAME && g->names[name].selects)
		selects = selected(item, &client->database);
	if (database == REPLAY_OWN_DATABASE || selects)
		database = client->database;
	if (name != OTHER_NAME)
		g->names[name].count++;
	*record = (struct replay_record){
	    .due_ns = due_ns(g, item->time_ns),
	    .bytes = bytes,
	    .length = (uint32_t)length,
	    .lane = (uint32_t)(client - g->clients),
	    .next = name, /* until names have become operations */
	    .database = (uint16_t)(database < REPLAY_DATABASE_MAX ? database : REPLAY_DATABASE_MAX),
	    .selects = selects,
	    .part = name == OTHER_NAME ? REPLAY_PLAIN : g->names[name].part,
	};
	r->count++;
	return true;
}

static int by_count(const void *a, const void *b)
{
	const struct gather_name *x = *(const struct gather_name *const *)a,
				 *y = *(const struct gather_name *const *)b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return strcmp(x->text, y->text);
}

int gather_finish(struct gather *g)
{
	struct replay *r = g->r;
	uint32_t count = g->names_table.count;
	struct gather_name **sorted = malloc((count + 1u) * sizeof(struct gather_name *));

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = &g->names[i];
	qsort(sorted, count, sizeof(struct gather_name *), by_count);
	for (uint32_t i = 0; i < count && sorted[i]->count > 0; i++) {
		if (i < REPLAY_NAMES) {
			memcpy(r->names[i], sorted[i]->text, OPERATION_NAME);
			r->name_count++;
		}
		sorted[i]->operation = i < REPLAY_NAMES ? i : REPLAY_NAMES;
	}
	for (uint32_t i = 0; i < r->count; i++) {
		struct replay_record *record = &r->records[i];
		uint32_t operation =
		    record->next == OTHER_NAME ? REPLAY_NAMES : g->names[record->next].operation;

		r->others |= operation == REPLAY_NAMES;
		record->operation = (uint8_t)(operation == REPLAY_NAMES ? r->name_count : operation);
		record->next = REPLAY_END;
	}
	free(sorted);
	r->clients = g->clients_table.count;
	r->timed = g->first_ns != REPLAY_NO_TIME;
	return 0;
}
