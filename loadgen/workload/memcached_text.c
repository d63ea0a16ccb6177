/* SPDX-License-Identifier: MIT */
/* The scanner of memcached's text replies, in two layers like resp.c. Nearly all lines and values are
 * complete in the buffer and skipped at once; split, long or unusual ones are processed byte by byte in
 * states. The first layer accepts nothing that the second would refuse, and refuses nothing itself. So a
 * split never decides whether a reply is valid. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "loadgen/protocol.h"

enum state {
	AT_LINE, /* zero: a scanner at rest */
	IN_WORD,
	IN_TEXT, /* the rest of a line, which is not parsed */
	IN_KEY,
	IN_FLAGS,
	IN_SIZE,
	IN_UNIQUE, /* the number that gets adds and cas compares */
	IN_NUMBER,
	AT_LF,
	IN_DATA, /* number: bytes to skip before the closing CRLF */
	AT_DATA_CR,
	AT_DATA_LF,
};

enum {
	FLAGS_DIGITS = 10,  /* of 32 bits */
	UNIQUE_DIGITS = 20, /* of 64 bits */
};

enum tail { BARE = 1, WITH_TEXT = 2 }; /* what may follow a word: CRLF, or a space and text */

static const struct word {
	const char *word;
	uint8_t kind;
	uint8_t tail;
} words[] = {
    {"VALUE", MEMCACHED_TEXT_HIT, WITH_TEXT},
    {"END", MEMCACHED_TEXT_MISS, BARE},
    {"STORED", MEMCACHED_TEXT_STORED, BARE},
    {"NOT_STORED", MEMCACHED_TEXT_NOT_STORED, BARE},
    {"EXISTS", MEMCACHED_TEXT_EXISTS, BARE},
    {"NOT_FOUND", MEMCACHED_TEXT_NOT_FOUND, BARE},
    {"DELETED", MEMCACHED_TEXT_DELETED, BARE},
    {"TOUCHED", MEMCACHED_TEXT_TOUCHED, BARE},
    {"OK", MEMCACHED_TEXT_OK, BARE},
    {"RESET", MEMCACHED_TEXT_OK, BARE}, /* to "stats reset" */
    {"VERSION", MEMCACHED_TEXT_VERSION, WITH_TEXT},
    {"STAT", MEMCACHED_TEXT_STATS, WITH_TEXT},
    {"ERROR", MEMCACHED_TEXT_ERROR, BARE | WITH_TEXT},
    {"CLIENT_ERROR", MEMCACHED_TEXT_ERROR, BARE | WITH_TEXT},
    {"SERVER_ERROR", MEMCACHED_TEXT_ERROR, BARE | WITH_TEXT},
};

/* Whether a reply that began with values or statistics may continue with a line of this type. */
static inline bool fits(const struct memcached_text_scanner *s, uint8_t type)
{
	return !s->begun || type == s->begun || type == MEMCACHED_TEXT_MISS || type == MEMCACHED_TEXT_ERROR;
}

static inline int reply_done(struct memcached_text_scanner *s, uint8_t type)
{
	s->kind = type == MEMCACHED_TEXT_MISS && s->begun ? s->begun : type;
	s->begun = 0;
	s->state = AT_LINE;
	return 1;
}

static inline void value_done(struct memcached_text_scanner *s)
{
	s->values = s->begun ? s->values + 1 : 1;
	s->begun = MEMCACHED_TEXT_HIT;
	s->state = AT_LINE;
}

/* The LF of a line was found. 1: reply complete, 0: continue. */
static int line_done(struct memcached_text_scanner *s)
{
	switch (s->type) {
	case MEMCACHED_TEXT_HIT:
		s->state = s->number ? IN_DATA : AT_DATA_CR;
		return 0;
	case MEMCACHED_TEXT_STATS:
		s->begun = MEMCACHED_TEXT_STATS;
		s->state = AT_LINE;
		return 0;
	default:
		return reply_done(s, s->type);
	}
}

/* The first word of a line ended at a space or CR. */
static int word_done(struct memcached_text_scanner *s, char byte)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		const struct word *w = &words[i];

		if (strcmp(w->word, s->line.word) != 0)
			continue;
		if (!(w->tail & (byte == ' ' ? WITH_TEXT : BARE)) || !fits(s, w->kind))
			return -1;
		s->type = w->kind;
		s->line.bytes++;
		if (byte == '\r') {
			s->state = AT_LF;
		} else if (w->kind == MEMCACHED_TEXT_HIT) {
			s->line.bytes = 0;
			s->state = IN_KEY;
		} else {
			s->state = IN_TEXT;
		}
		return 0;
	}
	return -1;
}

static int word_byte(struct memcached_text_scanner *s, char byte)
{
	if (byte == ' ' || byte == '\r')
		return word_done(s, byte);
	if (!memcached_line_word(&s->line, byte))
		return -1;
	s->line.bytes++;
	return 0;
}

/* A digit of a number of at most `digits` digits that doesn't exceed `largest`. */
static int digit(struct memcached_text_scanner *s, char byte, unsigned digits, uint64_t largest)
{
	uint64_t value = (uint64_t)(uint8_t)(byte - '0');

	if (value > 9 || s->digits == digits || s->number > (largest - value) / 10)
		return -1;
	s->digits++;
	s->number = s->number * 10 + value;
	return 0;
}

static int begin_line(struct memcached_text_scanner *s, char byte)
{
	memcached_line_begin(&s->line);
	s->digits = 0;
	s->number = 0;
	if (byte >= '0' && byte <= '9' && !s->begun) {
		s->type = MEMCACHED_TEXT_NUMBER;
		s->state = IN_NUMBER;
		return digit(s, byte, UNIQUE_DIGITS, UINT64_MAX);
	}
	s->state = IN_WORD;
	/* No line begins with a word's end; word_done would find no word of that name. */
	return word_byte(s, byte);
}

static int key_byte(struct memcached_text_scanner *s, char byte)
{
	if (byte == ' ' && s->line.bytes > 0) {
		s->state = IN_FLAGS;
		return 0;
	}
	return (uint8_t)byte <= ' ' || ++s->line.bytes > MEMCACHED_TEXT_KEY ? -1 : 0;
}

/* A byte of the numbers after a key: flags, size, unique. */
static int value_byte(struct memcached_text_scanner *s, char byte)
{
	if (s->digits > 0 && s->state == IN_FLAGS && byte == ' ') {
		s->state = IN_SIZE;
		s->number = 0;
		s->digits = 0;
		return 0;
	}
	if (s->digits > 0 && s->state != IN_FLAGS && byte == '\r') {
		s->state = AT_LF;
		return 0;
	}
	if (s->digits > 0 && s->state == IN_SIZE && byte == ' ') {
		s->state = IN_UNIQUE;
		s->digits = 0;
		return 0;
	}
	switch (s->state) {
	case IN_FLAGS:
		return digit(s, byte, FLAGS_DIGITS, UINT32_MAX);
	case IN_SIZE:
		return digit(s, byte, FLAGS_DIGITS, MEMCACHED_VALUE_BYTES);
	default: /* the size stays in `number` */
		if (byte < '0' || byte > '9' || s->digits == UNIQUE_DIGITS)
			return -1;
		s->digits++;
		return 0;
	}
}

/* Reads the number at *at, of 1 to 9 digits. Longer numbers are processed byte by byte. */
_Static_assert(MEMCACHED_VALUE_BYTES > 999999999, "a length of 9 digits needs no further check");
static inline bool whole_number(const char **at, const char *end, uint32_t *number)
{
	const char *p = *at, *first = p;
	uint32_t n = 0;

	while (p < end && (uint8_t)(*p - '0') < 10 && p - first < 9)
		n = n * 10 + (uint32_t)(*p++ - '0');
	*at = p;
	*number = n;
	return p > first;
}

/* The space that ends the key at `p`, or NULL without one or the key is invalid. memchr is slower on
 * short keys and would accept control characters. */
static inline const char *key_end(const char *p, const char *end)
{
	const uint64_t ones = 0x0101010101010101u;
	const char *first = p;

	while (end - p >= 8) {
		uint64_t bytes, low;

		memcpy(&bytes, p, 8);
		/* The top bit of each byte up to ' '; bytes above the lowest one may be wrong because of a
		 * borrow. */
		low = (bytes - ones * (' ' + 1)) & ~bytes & (ones << 7);
		if (low) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			p += __builtin_ctzll(low) / 8;
#else
			while ((uint8_t)*p > ' ')
				p++;
#endif
			return *p == ' ' && p > first && p - first <= MEMCACHED_TEXT_KEY ? p : NULL;
		}
		p += 8;
		if (p - first > MEMCACHED_TEXT_KEY)
			return NULL;
	}
	return NULL; /* fewer than 8 bytes are left: not enough for the rest of the reply */
}

/* Whether the bytes at `p` are those of the literal. */
#define IS(p, end, literal)                                                                                  \
	((size_t)((end) - (p)) >= sizeof(literal) - 1 && memcmp((p), (literal), sizeof(literal) - 1) == 0)

/* Returns the end of a value, from VALUE to the CRLF after its data, that is complete at `p`; or NULL. */
static inline const char *whole_value(const char *p, const char *end)
{
	uint32_t flags, size, digits;

	if (!IS(p, end, "VALUE "))
		return NULL;
	p = key_end(p + 6, end);
	if (!p)
		return NULL;
	p++;
	if (!whole_number(&p, end, &flags) || p == end || *p++ != ' ' || !whole_number(&p, end, &size))
		return NULL;
	if (p < end && *p == ' ') {
		for (digits = 0, p++; p < end && (uint8_t)(*p - '0') < 10; digits++)
			p++;
		if (digits == 0 || digits > UNIQUE_DIGITS)
			return NULL;
	}
	if (!IS(p, end, "\r\n"))
		return NULL;
	p += 2;
	if ((size_t)(end - p) < (size_t)size + 2 || p[size] != '\r' || p[size + 1] != '\n')
		return NULL;
	return p + size + 2;
}

#define STEP_OVER(literal, type)                                                                             \
	if (IS(p, end, literal)) {                                                                           \
		*at = p + sizeof(literal) - 1;                                                               \
		return type;                                                                                 \
	}

/* Skips a line that is complete at *at: a value with its line, and the END after it if that follows. Returns
 * the type of the last line skipped, or 0 if nothing was done. */
static inline uint8_t whole_line(struct memcached_text_scanner *s, const char **at, const char *end)
{
	const char *p = *at;
	uint32_t n;

	switch (*p) {
	case 'V':
		if (s->begun == MEMCACHED_TEXT_STATS)
			break;
		p = whole_value(p, end);
		if (!p)
			break;
		value_done(s);
		*at = p;
		if (!IS(p, end, "END\r\n"))
			return MEMCACHED_TEXT_HIT;
		/* The single value of a get, the usual case. */
		*at = p + 5;
		return MEMCACHED_TEXT_MISS;
	case 'E':
		STEP_OVER("END\r\n", MEMCACHED_TEXT_MISS)
		break;
	case 'S':
		if (!s->begun)
			STEP_OVER("STORED\r\n", MEMCACHED_TEXT_STORED)
		break;
	case 'N':
		if (!s->begun) {
			STEP_OVER("NOT_FOUND\r\n", MEMCACHED_TEXT_NOT_FOUND)
			STEP_OVER("NOT_STORED\r\n", MEMCACHED_TEXT_NOT_STORED)
		}
		break;
	case 'D':
		if (!s->begun)
			STEP_OVER("DELETED\r\n", MEMCACHED_TEXT_DELETED)
		break;
	case 'T':
		if (!s->begun)
			STEP_OVER("TOUCHED\r\n", MEMCACHED_TEXT_TOUCHED)
		break;
	default:
		if (s->begun || !whole_number(&p, end, &n) || !IS(p, end, "\r\n"))
			break;
		s->number = n;
		*at = p + 2;
		return MEMCACHED_TEXT_NUMBER;
	}
	return 0;
}

/* Processes one byte, or as many as the state can handle at once. 1: reply complete, 0: continue, -1: not a
 * reply. *at is advanced, except for a byte that is refused. */
static int scan_state(struct memcached_text_scanner *s, const char **at, const char *end)
{
	const char *p = *at;
	int result = 0;

	switch ((enum state)s->state) {
	case AT_LINE:
		result = begin_line(s, *p);
		break;
	case IN_WORD:
		result = word_byte(s, *p);
		break;
	case IN_TEXT:
		if (!memcached_line_text(&s->line, at, end, s->type == MEMCACHED_TEXT_ERROR))
			return -1;
		if (*at == end)
			return 0;
		p = *at;
		s->state = AT_LF;
		break;
	case IN_KEY:
		result = key_byte(s, *p);
		break;
	case IN_FLAGS:
	case IN_SIZE:
	case IN_UNIQUE:
		result = value_byte(s, *p);
		break;
	case IN_NUMBER:
		if (*p == '\r')
			s->state = AT_LF;
		else
			result = digit(s, *p, UNIQUE_DIGITS, UINT64_MAX);
		break;
	case AT_LF:
		result = *p == '\n' ? line_done(s) : -1;
		break;
	case IN_DATA: {
		uint64_t have = (uint64_t)(end - p), skip = have < s->number ? have : s->number;

		s->number -= skip;
		*at = p + skip;
		if (s->number == 0)
			s->state = AT_DATA_CR;
		return 0;
	}
	case AT_DATA_CR:
		result = *p == '\r' ? 0 : -1;
		s->state = AT_DATA_LF;
		break;
	case AT_DATA_LF:
		if (*p == '\n')
			value_done(s);
		else
			result = -1;
		break;
	}
	if (result >= 0)
		*at = p + 1;
	return result;
}

int memcached_text_scan(struct memcached_text_scanner *s, const char **at, const char *end)
{
	int result = 0;

	while (*at < end && result == 0) {
		uint8_t type = s->state == AT_LINE ? whole_line(s, at, end) : 0;

		if (!type)
			result = scan_state(s, at, end);
		else if (type != MEMCACHED_TEXT_HIT)
			result = reply_done(s, type);
	}
	return result;
}

/* The word and text of a line, byte by byte: off the scanners' fast path. */

void memcached_line_begin(struct memcached_line *l)
{
	l->bytes = 0;
	l->word_length = l->explanation_length = 0;
	l->word[0] = l->explanation[0] = 0;
}

bool memcached_line_word(struct memcached_line *l, char byte)
{
	if (!((byte >= 'A' && byte <= 'Z') || byte == '_') || l->word_length == MEMCACHED_WORD - 1)
		return false;
	l->word[l->word_length++] = byte;
	l->word[l->word_length] = 0;
	return true;
}

bool memcached_line_text(struct memcached_line *l, const char **at, const char *end, bool keep)
{
	const char *p = *at;
	size_t have = (size_t)(end - p), room = MEMCACHED_LINE - l->bytes;
	const char *cr = memchr(p, '\r', have <= room ? have : room + 1);
	size_t length = cr ? (size_t)(cr - p) : have <= room ? have : room;

	l->bytes = (uint16_t)(l->bytes + length);
	*at = p + length;
	if (keep) {
		for (; p < *at && l->explanation_length < MEMCACHED_EXPLANATION - 1; p++)
			l->explanation[l->explanation_length++] = *p;
		l->explanation[l->explanation_length] = 0;
	}
	return cr || have <= room;
}

void memcached_line_error(const struct memcached_line *l, char *out, size_t size)
{
	snprintf(out, size, "%s%s%s%s", l->word, l->explanation_length ? " " : "", l->explanation,
		 l->explanation_length == MEMCACHED_EXPLANATION - 1 ? "..." : "");
}

bool memcached_line_out_of_memory(const struct memcached_line *l)
{
	static const char text[] = "out of memory";

	return strcmp(l->word, "SERVER_ERROR") == 0 && strncmp(l->explanation, text, sizeof(text) - 1) == 0;
}

/* memcached's text protocol: requests, and the meaning of answers. An answer doesn't name its command, but
 * few commands share one: an answer that does not fit its command is a wrong reply. */

/* ---- requests ---- */

static bool text_fits(const struct command *c, char *error, size_t size)
{
	return memcached_fits(PROTOCOL_MEMCACHE_TEXT, c, error, size);
}

static void expect(const struct command *c, struct expected *e)
{
	e->kind = c->row->memcached.reply;
}

static bool write_request(const struct command *c, const struct fill *f, const struct request_values *v,
			  struct random_stream *random, struct bytes *to, struct patches *patches)
{
	const bool store = c->row->memcached.form == FORM_STORE;
	struct drawn data[WORD_PARTS_MAX];
	char head[24];
	size_t length;

	/* The server accepts lower case only. */
	for (length = 0; c->row->name[length]; length++)
		head[length] = (char)tolower(c->row->name[length]);
	head[length] = 0;
	if (!bytes_add_text(to, head))
		return false;
	for (uint32_t i = 1; i < c->word_count && (!store || i == 1); i++)
		if (!bytes_add_text(to, " ") || !write_word(c, i, f, v, random, to, patches))
			return false;
	if (!store)
		return bytes_add_text(to, "\r\n");
	if (!bytes_add_text(to, " 0 ") ||
	    !(c->word_count > 3 ? write_word(c, 3, f, v, random, to, patches) : bytes_add_text(to, "0")))
		return false;
	length = draw_word(c, 2, f, v, random, data);
	snprintf(head, sizeof(head), " %zu\r\n", length);
	return bytes_add_text(to, head) && write_drawn(c, 2, data, length, f, v, to, patches) &&
	       bytes_add_text(to, "\r\n");
}

/* ---- answers ---- */

static int scan(union reply_scanner *s, const char **at, const char *end)
{
	return memcached_text_scan(&s->text, at, end);
}

static const struct memcached_meaning meanings[] = {
    [MEMCACHED_TEXT_NONE] = {FT_STATUS_WRONG, {REPLY_ANY}},
    [MEMCACHED_TEXT_HIT] = {FT_STATUS_OK, {REPLY_VALUE}},
    [MEMCACHED_TEXT_MISS] = {FT_STATUS_MISS, {REPLY_VALUE}},
    [MEMCACHED_TEXT_STORED] = {FT_STATUS_OK, {REPLY_STORED}},
    [MEMCACHED_TEXT_NOT_STORED] = {FT_STATUS_MISS, {REPLY_STORED}},
    [MEMCACHED_TEXT_EXISTS] = {FT_STATUS_MISS, {REPLY_STORED}},
    [MEMCACHED_TEXT_NOT_FOUND] = {FT_STATUS_MISS,
				  {REPLY_STORED, REPLY_DELETED, REPLY_TOUCHED, REPLY_INTEGER}},
    [MEMCACHED_TEXT_DELETED] = {FT_STATUS_OK, {REPLY_DELETED}},
    [MEMCACHED_TEXT_TOUCHED] = {FT_STATUS_OK, {REPLY_TOUCHED}},
    [MEMCACHED_TEXT_OK] = {FT_STATUS_OK, {REPLY_OTHER}},
    [MEMCACHED_TEXT_NUMBER] = {FT_STATUS_OK, {REPLY_INTEGER}},
    [MEMCACHED_TEXT_VERSION] = {FT_STATUS_OK, {REPLY_VERSION}},
    [MEMCACHED_TEXT_STATS] = {FT_STATUS_OK, {REPLY_OTHER}},
    [MEMCACHED_TEXT_ERROR] = {FT_STATUS_ERROR_REPLY, {REPLY_ANY}},
};

static unsigned status(const union reply_scanner *s, const struct expected *e, const char **word)
{
	return memcached_line_status(&meanings[s->text.kind], &s->text.line, e, word);
}

static void error_text(const union reply_scanner *s, char *out, size_t size)
{
	memcached_line_error(&s->text.line, out, size);
}

static bool accepted(const union reply_scanner *s)
{
	return s->text.kind == MEMCACHED_TEXT_STORED;
}

static bool wants_login(const union reply_scanner *s)
{
	return s->text.kind == MEMCACHED_TEXT_ERROR && memcached_line_unauthenticated(&s->text.line);
}

/* VALUE key flags bytes [unique] */
static bool find_value(const char *reply, size_t length, size_t *at, size_t *bytes)
{
	return memcached_find_value(reply, length, 3, at, bytes);
}

/* ---- the row ---- */

const struct protocol protocol_memcache_text = {
    .name = "memcache_text",
    .product = &memcached_product,
    .ping = "version",
    .fits = text_fits,
    .expect = expect,
    .write = write_request,
    .login = memcached_line_login,
    .scan = scan,
    .status = status,
    .error_text = error_text,
    .accepted = accepted,
    .wants_login = wants_login,
    .find_value = find_value,
};
