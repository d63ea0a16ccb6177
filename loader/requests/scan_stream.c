/* SPDX-License-Identifier: MIT */
/* The request scanner's entry: which form a request has, and what is the same for all of them. */
#include "scanner.h"

#include "scan_state.h"

_Static_assert(sizeof(struct scanner) < 256, "one per connection");

enum replies { REPLIES_ON, REPLIES_OFF, REPLIES_SKIPPED };

static uint64_t seed;

void scanner_seed(uint64_t value)
{
	seed = value;
}

static void reset(struct scanner *s)
{
	struct scanner next = {.protocol = s->protocol, .replies = s->replies, .lost = s->lost};

	*s = next;
}

void scanner_lose(struct scanner *s)
{
	s->lost = true;
	reset(s);
}

static bool is_letter(uint8_t byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

bool scanner_may_begin(enum scan_protocol protocol, uint8_t byte)
{
	/* The first letters of memcached's commands. */
	static const char letters[] = "acdfgimpqrstv";

	if (protocol != SCAN_MEMCACHED && byte == '*')
		return true;
	return protocol != SCAN_REDIS && (byte == 0x80 || (byte > 0 && strchr(letters, byte)));
}

/* Whether a line may begin with this byte. */
static bool begins_line(const struct scanner *s, uint8_t byte)
{
	if (is_letter(byte) || byte == ' ' || byte == '\r' || byte == '\n')
		return true;
	return s->protocol != SCAN_MEMCACHED &&
	       (byte == '"' || byte == '\'' || byte == '\t' || byte == '\v' || byte == '\f');
}

static int begin(struct scanner *s, uint8_t byte)
{
	if (s->lost && !scanner_may_begin(s->protocol, byte))
		return SCAN_REFUSED;
	s->hash = scan_mix(seed, 0);
	if (byte == '*' && s->protocol != SCAN_MEMCACHED)
		return SCAN_CONTINUES; /* the state of scan_array */
	if (byte == 0x80 && s->protocol != SCAN_REDIS) {
		s->state = SCAN_IN_HEADER;
		s->memcached = true;
	} else if (begins_line(s, byte)) {
		s->state = SCAN_IN_LINE;
		s->undecided = s->protocol == SCAN_EITHER && byte >= 'a' && byte <= 'z';
		s->memcached = s->protocol == SCAN_MEMCACHED || s->undecided;
	} else {
		return SCAN_REFUSED;
	}
	return SCAN_CONTINUES;
}

static int proceed(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	switch (s->state) {
	case SCAN_IN_LINE:
		return scan_line(s, at, end);
	case SCAN_IN_DATA:
	case SCAN_DATA_CR:
	case SCAN_DATA_LF:
		return scan_memcached_data(s, at, end);
	case SCAN_IN_HEADER:
	case SCAN_IN_BODY:
		return scan_memcached_binary(s, at, end);
	default:
		return scan_array(s, at, end);
	}
}

/* Whether the request has no reply, by CLIENT REPLY before it or because it is one. */
static bool silenced(struct scanner *s)
{
	uint8_t before = s->replies;
	bool reply_command = s->arguments == 3;

	s->replies = before == REPLIES_OFF ? REPLIES_OFF : REPLIES_ON;
	if (s->properties & COMMAND_RESET || (reply_command && s->option == SCAN_CLIENT_REPLY_ON)) {
		s->replies = REPLIES_ON;
		return false;
	}
	if (reply_command && s->option == SCAN_CLIENT_REPLY_OFF) {
		s->replies = REPLIES_OFF;
		s->flags |= SCANNED_REPLY_OFF;
		return true;
	}
	if (reply_command && s->option == SCAN_CLIENT_REPLY_SKIP) {
		if (before != REPLIES_OFF)
			s->replies = REPLIES_SKIPPED;
		return true;
	}
	return before != REPLIES_ON;
}

static void finish(struct scanner *s, struct scanned *out)
{
	uint64_t hash;

	scan_end_chunk(s); /* of a binary request's key */
	hash = scan_mix(s->hash, s->arguments);
	if (!s->memcached && silenced(s))
		s->flags |= SCANNED_NO_REPLY;
	out->bytes = s->bytes;
	out->hash = s->unhashed ? 0 : hash ? hash : 1;
	out->command = s->command;
	out->flags = s->flags;
	s->lost = false;
	reset(s);
}

int scanner_bytes(struct scanner *s, const uint8_t **at, const uint8_t *end, struct scanned *out)
{
	const uint8_t *start = *at;

	while (*at < end) {
		int result = SCAN_CONTINUES;

		if (s->state == SCAN_BEGIN) {
			start = *at;
			result = begin(s, *start);
		}
		if (result == SCAN_CONTINUES)
			result = proceed(s, at, end);
		if (result == SCAN_COMPLETE) {
			s->bytes += (uint64_t)(*at - start);
			finish(s, out);
			return 1;
		}
		if (result == SCAN_REFUSED) {
			scanner_lose(s);
			return -1;
		}
		if (result == SCAN_NOTHING)
			reset(s);
	}
	if (s->state != SCAN_BEGIN)
		s->bytes += (uint64_t)(*at - start);
	return 0;
}

/* Skips the bytes of a value. Returns how many of `bytes` are beyond it. */
static uint64_t skip_value(struct scanner *s, uint64_t bytes)
{
	uint64_t count = bytes < s->left ? bytes : s->left, of_key = count;

	s->left -= count;
	s->length += count;
	if (s->extras > 0) {
		uint64_t extras = count < s->extras ? count : s->extras;

		s->extras -= (uint32_t)extras;
		of_key -= extras;
	}
	if (s->key_left > 0 && of_key > 0) {
		s->unhashed = true;
		s->key_left = (uint8_t)(s->key_left - (of_key < s->key_left ? of_key : s->key_left));
	}
	return bytes - count;
}

int scanner_gap(struct scanner *s, uint64_t bytes, struct scanned *out)
{
	static const uint8_t crlf[] = {'\r', '\n'};
	const uint8_t *at = crlf;
	int result = SCAN_CONTINUES;
	uint64_t rest;

	if (bytes == 0)
		return 0;
	/* Without its bytes, a word that matters is not known. */
	rest = s->gathers && s->left > 0 ? bytes : skip_value(s, bytes);
	switch (s->state) {
	case SCAN_IN_BODY:
		if (s->left == 0)
			result = rest == 0 ? SCAN_COMPLETE : SCAN_REFUSED;
		break;
	case SCAN_IN_VALUE:
	case SCAN_IN_DATA:
		if (s->left > 0) {
			result = rest == 0 ? SCAN_CONTINUES : SCAN_REFUSED;
			break;
		}
		s->state++;
		/* fall through */
	case SCAN_VALUE_CR:
	case SCAN_VALUE_LF:
	case SCAN_DATA_CR:
	case SCAN_DATA_LF:
		if (s->state == SCAN_VALUE_LF || s->state == SCAN_DATA_LF)
			at++;
		if (rest > (uint64_t)(crlf + sizeof(crlf) - at))
			result = SCAN_REFUSED;
		else if (rest > 0)
			result = proceed(s, &at, at + rest);
		break;
	default:
		result = SCAN_REFUSED;
	}
	if (result == SCAN_REFUSED) {
		scanner_lose(s);
		return -1;
	}
	s->bytes += bytes;
	if (result == SCAN_COMPLETE)
		finish(s, out);
	return result;
}

uint64_t scanner_left(const struct scanner *s)
{
	if (s->gathers)
		return 0;
	switch (s->state) {
	case SCAN_IN_BODY:
		return s->left;
	case SCAN_IN_VALUE:
		return s->arguments + 1 == s->count ? s->left + 2 : 0;
	case SCAN_IN_DATA:
		return s->left + 2;
	default:
		return 0;
	}
}
