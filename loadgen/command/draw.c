/* SPDX-License-Identifier: MIT */
/* A part's number is drawn before its text is written: a protocol that sends lengths first has to know them,
 * and both must come from the same draw. */
#include "draw.h"

#include <stdio.h>
#include <string.h>

#include "stamp.h"
#include "ycsb_names.h"

enum { SCORE_DIGITS = 6 };

bool command_fixed(const struct command *c, const struct fill *f)
{
	uint32_t patches = 0;

	for (uint32_t i = 0; i < c->part_count; i++) {
		switch (c->parts[i].kind) {
		case PART_TEXT:
			continue;
		case PART_KEY:
		case PART_OTHER_KEY:
			if (!key_names_fixed(f->names))
				return false;
			break;
		case PART_DATA:
			if (!f->fixed_value)
				return false;
			continue;
		case PART_EXPIRY:
			if (f->expiry_low != f->expiry_high)
				return false;
			continue;
		case PART_INT:
		case PART_SCORE:
		case PART_FIELD:
		case PART_KEY_NUMBER:
		case PART_TAG:
			break;
		case PART_INDEX_SCORE:
		case PART_SCAN_LENGTH:
		case PART_CAPTURED:
		case PART_STAMP:
		case PART_RANGE:
		case PART_DECIMAL:
		case PART_VECTOR:
		case PART_SAME_KEY:
		case PART_SAME_INT:
		case PART_COLUMN:
		case PART_JSON:
		case PART_CURSOR:
		case PART_OPAQUE:
			return false;
		}
		patches++;
	}
	return patches <= COMMAND_PATCHES_MAX;
}

static uint64_t draw_between(struct random_stream *random, uint32_t low, uint32_t high)
{
	return low == high ? low : low + random_below(random, (uint64_t)high - low + 1);
}

/* What is drawn once per request: the same for each `which`, below `limit`. */
static uint64_t draw_once(const struct request_values *v, uint32_t which, uint64_t limit)
{
	struct random_stream r = {v->seed + which};

	return random_below(&r, limit);
}

static const struct data_field *field_of(const struct command_part *p, const struct fill *f, uint64_t row)
{
	return data_set_field(f->data, row, p->number);
}

static void draw_range(const struct command_part *p, struct random_stream *random, struct drawn *d)
{
	double value;

	if (p->kind == PART_RANGE)
		value = p->low + (double)random_below(random, (uint64_t)(p->high - p->low) + 1);
	else
		value = p->low + (p->high - p->low) * (random_unit(random) - 0x1p-53);
	d->length =
	    (uint32_t)snprintf(d->text, sizeof(d->text), "%.*f", p->kind == PART_RANGE ? 0 : 6, value);
}

struct drawn draw_part(const struct command_part *p, const struct fill *f, const struct request_values *v,
		       struct random_stream *random)
{
	struct drawn d = {0};

	switch (p->kind) {
	case PART_TEXT:
		d.length = p->length;
		break;
	case PART_KEY:
	case PART_OTHER_KEY:
		d.number = p->kind == PART_KEY ? v->key : random_below(random, f->keys);
		d.length = key_name_length(f->names, d.number);
		break;
	case PART_DATA:
		d.number = f->fixed_value      ? 0
			   : f->values_of_keys ? value_seed_of_key(v->key)
					       : random_next(random);
		d.length = value_size(f->values, d.number);
		break;
	case PART_INT:
		d.number = random_below(random, f->keys);
		d.length = KEY_DIGITS;
		break;
	case PART_SCORE:
		d.number = random_below(random, 1000000);
		d.length = 2 + SCORE_DIGITS;
		break;
	case PART_FIELD:
		d.number = random_below(random, f->fields);
		d.length = 5 + digits_count(f->fields - 1);
		break;
	case PART_EXPIRY:
		d.number = draw_between(random, f->expiry_low, f->expiry_high);
		d.length = digits_count(d.number);
		break;
	case PART_INDEX_SCORE: {
		char name[YCSB_NAME_BYTES];
		int32_t hash = ycsb_name_hash(name, ycsb_key_name(v->key, name));
		d.length = (uint32_t)snprintf(d.text, sizeof(d.text), "%d", (int)hash);
		break;
	}
	case PART_SCAN_LENGTH:
		d.length = (uint32_t)snprintf(d.text, sizeof(d.text), "%u", ycsb_draw_scan(random));
		break;
	case PART_STAMP:
		d.length = value_size(f->values, random_next(random));
		d.length = d.length < STAMP_BYTES ? STAMP_BYTES : d.length;
		break;
	case PART_CAPTURED:
		d.length = v->captured_length;
		break;
	case PART_CURSOR:
		d.length = v->captured_length ? v->captured_length : 1;
		break;
	case PART_RANGE:
	case PART_DECIMAL:
		draw_range(p, random, &d);
		break;
	case PART_VECTOR:
		d.number = random_next(random);
		d.length = p->number * (uint32_t)sizeof(float);
		break;
	case PART_SAME_KEY:
		d.number = draw_once(v, p->number, f->keys);
		d.length = key_name_length(f->names, d.number);
		break;
	case PART_SAME_INT:
		d.number = draw_once(v, p->number + 16, f->keys);
		d.length = KEY_DIGITS;
		break;
	case PART_COLUMN:
		d.number = draw_once(v, 0, f->data->rows);
		d.length = field_of(p, f, d.number)->length;
		break;
	case PART_JSON:
		d.number = draw_once(v, 0, f->data->rows);
		d.length = data_json_length(field_of(p, f, d.number));
		break;
	case PART_KEY_NUMBER:
		d.number = v->key;
		d.length = KEY_DIGITS;
		break;
	case PART_TAG:
		d.number = v->key % TAGS;
		d.length = TAG_DIGITS;
		break;
	case PART_OPAQUE: /* never part of a command as written */
		break;
	}
	return d;
}

void note_patch(struct patches *patches, enum part_kind kind, size_t at, uint32_t width)
{
	if (patches && patches->count < COMMAND_PATCHES_MAX)
		patches->list[patches->count++] =
		    (struct patch){.at = (uint32_t)at, .kind = (uint16_t)kind, .width = (uint16_t)width};
}

static void write_vector(uint64_t seed, uint32_t count, char *to)
{
	struct random_stream r = {seed};

	for (uint32_t i = 0; i < count; i++) {
		float value = (float)(2 * random_unit(&r) - 1);

		memcpy(to + i * sizeof(value), &value, sizeof(value)); /* both machines are little-endian */
	}
}

void write_part(const struct command_part *p, const struct drawn *d, const struct fill *f,
		const struct request_values *v, struct bytes *to, struct patches *patches)
{
	char *at = to->at + to->length;
	uint32_t width;

	switch (p->kind) {
	case PART_TEXT:
		memcpy(at, p->text, d->length);
		break;
	case PART_KEY:
	case PART_OTHER_KEY:
	case PART_SAME_KEY:
		key_name_write(f->names, d->number, at, d->length);
		width = f->names->ycsb ? 0 : d->length - f->names->prefix_length;
		width = width < KEY_DIGITS ? width : KEY_DIGITS;
		note_patch(patches, p->kind, to->length + d->length - width, width);
		break;
	case PART_DATA:
		if (f->fixed_value)
			memcpy(at, f->fixed_value, d->length);
		else
			value_copy(f->values, d->number, 0, at, d->length);
		break;
	case PART_INT:
	case PART_SAME_INT:
	case PART_KEY_NUMBER:
		digits_write_key(at, d->number);
		note_patch(patches, p->kind, to->length, KEY_DIGITS);
		break;
	case PART_SCORE:
		memcpy(at, "0.", 2);
		digits_write(at + 2, SCORE_DIGITS, d->number);
		note_patch(patches, p->kind, to->length + 2, SCORE_DIGITS);
		break;
	case PART_FIELD:
		memcpy(at, "field", 5);
		digits_write(at + 5, d->length - 5, d->number);
		note_patch(patches, p->kind, to->length + 5, d->length - 5);
		break;
	case PART_TAG:
		digits_write(at, TAG_DIGITS, d->number);
		note_patch(patches, p->kind, to->length, TAG_DIGITS);
		break;
	case PART_EXPIRY:
		digits_write(at, d->length, d->number);
		break;
	case PART_INDEX_SCORE:
	case PART_SCAN_LENGTH:
	case PART_RANGE:
	case PART_DECIMAL:
		memcpy(at, d->text, d->length);
		break;
	case PART_STAMP:
		stamp_write(f->stamps, v->intended_ns, at, d->length);
		break;
	case PART_VECTOR:
		write_vector(d->number, p->number, at);
		break;
	case PART_COLUMN:
		memcpy(at, field_of(p, f, d->number)->at, d->length);
		break;
	case PART_JSON:
		data_json_write(field_of(p, f, d->number), at);
		break;
	case PART_CURSOR:
		memcpy(at, v->captured_length ? v->captured : "0", d->length);
		break;
	case PART_CAPTURED:
		memcpy(at, v->captured, d->length);
		break;
	case PART_OPAQUE:
		break;
	}
	to->length += d->length;
}

size_t draw_word(const struct command *c, uint32_t index, const struct fill *f,
		 const struct request_values *v, struct random_stream *random, struct drawn *drawn)
{
	const struct command_word *w = &c->words[index];
	size_t length = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		drawn[i] = draw_part(&c->parts[w->first + i], f, v, random);
		length += drawn[i].length;
	}
	return length;
}

bool write_drawn(const struct command *c, uint32_t index, const struct drawn *drawn, size_t length,
		 const struct fill *f, const struct request_values *v, struct bytes *to,
		 struct patches *patches)
{
	const struct command_word *w = &c->words[index];

	if (!bytes_reserve(to, length))
		return false;
	for (uint32_t i = 0; i < w->count; i++)
		write_part(&c->parts[w->first + i], &drawn[i], f, v, to, patches);
	return true;
}

bool write_word(const struct command *c, uint32_t index, const struct fill *f, const struct request_values *v,
		struct random_stream *random, struct bytes *to, struct patches *patches)
{
	struct drawn drawn[WORD_PARTS_MAX];
	size_t length = draw_word(c, index, f, v, random, drawn);

	return write_drawn(c, index, drawn, length, f, v, to, patches);
}
