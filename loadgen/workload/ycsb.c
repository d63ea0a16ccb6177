/* SPDX-License-Identifier: MIT */
/* YCSB's choices. Where YCSB is unexpected, a comment says so, and the code follows YCSB. */
#include "ycsb.h"

#include <math.h>
#include <string.h>

#define THETA 0.99

/* Scrambled: ranks are drawn from 0 .. 10^10 whatever the number of records; zeta over that many is a
 * constant. */
#define SCRAMBLED_ITEMS 10000000001u
#define SCRAMBLED_ZETA 26.46902820178302

static const struct ycsb_workload workloads[] = {
    {'A', {[YCSB_READ] = 0.5, [YCSB_UPDATE] = 0.5}, YCSB_ZIPFIAN},
    {'B', {[YCSB_READ] = 0.95, [YCSB_UPDATE] = 0.05}, YCSB_ZIPFIAN},
    {'C', {[YCSB_READ] = 1}, YCSB_ZIPFIAN},
    {'D', {[YCSB_READ] = 0.95, [YCSB_INSERT] = 0.05}, YCSB_LATEST},
    {'E', {[YCSB_SCAN] = 0.95, [YCSB_INSERT] = 0.05}, YCSB_ZIPFIAN},
    {'F', {[YCSB_READ] = 0.5, [YCSB_READ_MODIFY_WRITE] = 0.5}, YCSB_ZIPFIAN},
};

const struct ycsb_workload *ycsb_find(char letter)
{
	for (size_t i = 0; i < sizeof(workloads) / sizeof(*workloads); i++)
		if (workloads[i].letter == letter || workloads[i].letter + ('a' - 'A') == letter)
			return &workloads[i];
	return NULL;
}

enum ycsb_operation ycsb_draw_operation(const struct ycsb_workload *w, struct random_stream *r)
{
	double u = random_unit(r);
	int last = 0;

	for (int i = 0; i < YCSB_OPERATIONS; i++) {
		if (w->shares[i] <= 0)
			continue;
		if (u <= w->shares[i])
			return (enum ycsb_operation)i;
		u -= w->shares[i];
		last = i; /* receives the rounding error */
	}
	return (enum ycsb_operation)last;
}

/* Extends the sum from zeta_items to `items`. */
static void add_zeta(struct ycsb_zipfian *z, uint64_t items)
{
	for (uint64_t i = z->zeta_items; i < items; i++)
		z->zeta += 1 / pow((double)(i + 1), THETA);
	z->zeta_items = items;
}

/* From the initial items, even if zeta has grown since: YCSB's formula does this. */
static void set_eta(struct ycsb_zipfian *z)
{
	const double zeta2 = 1 + pow(0.5, THETA);

	z->eta = (1 - pow(2.0 / (double)z->items, 1 - THETA)) / (1 - zeta2 / z->zeta);
}

void ycsb_zipfian_init(struct ycsb_zipfian *z, uint64_t items)
{
	*z = (struct ycsb_zipfian){.items = items};
	add_zeta(z, items);
	set_eta(z);
}

uint64_t ycsb_zipfian_draw(struct ycsb_zipfian *z, struct random_stream *r, uint64_t items)
{
	double u, uz, x;

	if (items > z->zeta_items) {
		add_zeta(z, items);
		set_eta(z);
	}
	u = 1 - random_unit(r); /* Java's nextDouble() is in [0, 1) */
	uz = u * z->zeta;
	if (uz < 1)
		return 0;
	if (uz < 1 + pow(0.5, THETA))
		return 1;
	x = (double)items * pow(z->eta * u - z->eta + 1, 1 / (1 - THETA));
	/* With two or three records at the start it has no meaning, and the result may be NaN. */
	return x < (double)items ? (uint64_t)x : items;
}

void ycsb_keys_init(struct ycsb_keys *k, const struct ycsb_workload *w, uint64_t records, uint64_t operations)
{
	if (w->choice == YCSB_LATEST) {
		*k = (struct ycsb_keys){.hashed_items = 0};
		/* One item fewer than there are records: YCSB passes the last record's number. */
		ycsb_zipfian_init(&k->zipfian, records - 1);
		return;
	}
	*k = (struct ycsb_keys){
	    .zipfian = {.items = SCRAMBLED_ITEMS, .zeta_items = SCRAMBLED_ITEMS, .zeta = SCRAMBLED_ZETA},
	    .hashed_items = records + (uint64_t)((double)operations * w->shares[YCSB_INSERT] * 2) + 1,
	};
	set_eta(&k->zipfian);
}

uint64_t ycsb_draw_key(struct ycsb_keys *k, struct random_stream *r, uint64_t count)
{
	uint64_t key;

	if (k->hashed_items == 0) {
		/* The zipfian has the last record's number as its number of items, so record 0 is drawn
		 * almost never. */
		key = ycsb_zipfian_draw(&k->zipfian, r, count - 1);
		return key < count ? count - 1 - key : 0;
	}
	do
		key = ycsb_hash(ycsb_zipfian_draw(&k->zipfian, r, SCRAMBLED_ITEMS)) % k->hashed_items;
	while (key >= count);
	return key;
}

void key_base_init(struct key_base *b, uint64_t start)
{
	memset(b, 0, sizeof(*b));
	b->start = start;
}

uint64_t key_base_take(struct key_base *b)
{
	uint64_t n = __atomic_load_n(&b->next, __ATOMIC_RELAXED);

	/* Limited by the count, so that a bit never represents two outstanding numbers. */
	do {
		if (n - __atomic_load_n(&b->count, __ATOMIC_SEQ_CST) >= KEY_BASE_WINDOW)
			return KEY_BASE_FULL;
	} while (!__atomic_compare_exchange_n(&b->next, &n, n + 1, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return b->start + n;
}

static bool acknowledged(const struct key_base *b, uint64_t n)
{
	const uint64_t word =
	    __atomic_load_n(&b->turned[n % KEY_BASE_WINDOW / 64], __ATOMIC_SEQ_CST) >> (n % 64);

	return (word & 1) != (n / KEY_BASE_WINDOW & 1);
}

/* Sequentially consistent throughout: if two threads flip neighbouring bits, at least one must see both,
 * otherwise the count would lag behind. A count that is exchanged was valid all the time, and meanwhile no
 * bit of the run could belong to the next lap. If it had moved, the exchange fails and the run is read
 * again. */
void key_base_ack(struct key_base *b, uint64_t n)
{
	uint64_t count, end;

	n -= b->start;
	__atomic_fetch_xor(&b->turned[n % KEY_BASE_WINDOW / 64], (uint64_t)1 << (n % 64), __ATOMIC_SEQ_CST);
	do {
		count = __atomic_load_n(&b->count, __ATOMIC_SEQ_CST);
		for (end = count; end - count < KEY_BASE_WINDOW && acknowledged(b, end); end++)
			;
		if (end == count)
			return;
		__atomic_compare_exchange_n(&b->count, &count, end, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
	} while (true);
}
