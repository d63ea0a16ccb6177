/* SPDX-License-Identifier: MIT */
/* The reply scanner, in two layers. Nearly all elements are complete in the buffer and skipped at once; split
 * or unusual elements are processed byte by byte in states. */
#include <stdio.h>
#include <string.h>

#include "loadgen/protocol.h"

/* A command's row says its reply in the scanner's numbers (common/commands.h). */
_Static_assert((int)RESP_LINE == (int)REPLY_LINE && (int)RESP_INTEGER == (int)REPLY_INTEGER &&
		   (int)RESP_STRING == (int)REPLY_VALUE && (int)RESP_ARRAY == (int)REPLY_LIST &&
		   (int)RESP_NIL == (int)REPLY_NIL,
	       "two kinds of one reply");

enum state {
	AT_TYPE, /* zero: a scanner at rest */
	IN_LINE,
	IN_NUMBER,
	IN_SCALAR, /* a boolean, double or big number */
	AT_CR,	   /* of a type that has no content */
	AT_LF,	   /* after a line's or number's CR */
	IN_BULK,   /* number: bytes to skip before the closing CRLF */
	AT_BULK_CR,
	AT_BULK_LF,
	AT_CHUNK, /* of a streamed string */
};

/* Redis limits a bulk to proto-max-bulk-len, 512 MB by default. More than 4 GB is not accepted as a
 * length. */
#define LARGEST_NUMBER UINT32_MAX
/* The elements of a streamed aggregate are counted down from here repeatedly. The number is even, so that the
 * remainder shows whether their number is. */
#define STREAM_ROUND (1u << 31)

enum {
	NUMBER_DIGITS = 20,
	STREAMED = 255, /* `digits` of a "?" instead of a number */
	DOUBLE_BYTES = 64,
	VERBATIM_FORMAT = 4, /* "txt:" */
};

/* Characters of doubles, including inf and nan. */
static const bool of_double[256] = {
    ['0'] = true, ['1'] = true, ['2'] = true, ['3'] = true, ['4'] = true, ['5'] = true, ['6'] = true,
    ['7'] = true, ['8'] = true, ['9'] = true, ['+'] = true, ['-'] = true, ['.'] = true, ['e'] = true,
    ['E'] = true, ['i'] = true, ['n'] = true, ['f'] = true, ['a'] = true,
};

static inline uint8_t innermost(const struct resp_scanner *s)
{
	return (uint8_t)(1u << (s->depth - 1));
}

/* An aggregate that isn't like an array has received its last counted element. Returns whether more
 * follows. */
static bool goes_on(struct resp_scanner *s)
{
	uint8_t bit = innermost(s);

	if (s->streamed & bit) {
		s->left[s->depth - 1] = STREAM_ROUND;
		return true;
	}
	if (!(s->attributes & bit))
		return false;
	/* The element that the attribute describes follows; only that is an element. */
	s->attributes &= (uint8_t)~bit;
	s->depth--;
	return true;
}

/* The innermost aggregate has received its last counted element: 1 when the whole reply is complete. */
static int aggregate_done(struct resp_scanner *s)
{
	do {
		if ((s->streamed | s->attributes) && goes_on(s))
			return 0;
		if (--s->depth == 0)
			return 1;
	} while (--s->left[s->depth - 1] == 0);
	return 0;
}

/* An element is complete: 1 when the whole reply is. */
static int element_done(struct resp_scanner *s)
{
	s->state = AT_TYPE;
	if (s->depth == 0)
		return 1;
	return --s->left[s->depth - 1] > 0 ? 0 : aggregate_done(s);
}

/* The head of an aggregate is complete: array, map, set, push or attribute. Returns like line_done. */
static int open_aggregate(struct resp_scanner *s)
{
	bool map = s->type == '%' || s->type == '|';
	uint8_t bit;

	if (map && s->number > LARGEST_NUMBER / 2)
		return -1;
	s->state = AT_TYPE;
	if (s->number == 0 && s->digits != STREAMED)
		return s->type == '|' ? 0 : element_done(s);
	if (s->depth == RESP_DEPTH)
		return -1;
	s->left[s->depth++] = (uint32_t)(map ? s->number * 2 : s->number);
	if (s->type == '|')
		s->attributes |= innermost(s);
	if (__builtin_expect(s->digits == STREAMED, 0)) {
		bit = innermost(s);
		s->left[s->depth - 1] = STREAM_ROUND;
		s->streamed |= bit;
		s->pairs = (uint8_t)(map ? s->pairs | bit : s->pairs & ~bit);
	}
	return 0;
}

/* The "." after the elements of a streamed aggregate. */
static int close_stream(struct resp_scanner *s)
{
	uint8_t bit = innermost(s);

	if ((s->pairs & bit) && s->left[s->depth - 1] % 2)
		return -1;
	s->streamed &= (uint8_t)~bit;
	s->depth--;
	return element_done(s);
}

/* What follows the line of a type byte: 1 reply complete, 0 continue, -1 not a reply. */
static int line_done(struct resp_scanner *s)
{
	if (s->negative && s->type != ':' && s->type != '(') {
		if (s->number != 1 || (s->type != '$' && s->type != '*'))
			return -1;
		if (s->depth == 0)
			s->kind = RESP_NIL;
		return element_done(s);
	}
	switch (s->type) {
	case '=':
		if (s->number < VERBATIM_FORMAT)
			return -1;
		/* fall through */
	case '$':
	case '!':
		s->state = s->digits == STREAMED ? AT_CHUNK : s->number ? IN_BULK : AT_BULK_CR;
		return 0;
	case ';':
		if (s->number == 0)
			return element_done(s);
		s->state = IN_BULK;
		return 0;
	case '*':
	case '%':
	case '~':
	case '>':
	case '|':
		return open_aggregate(s);
	case '.':
		return close_stream(s);
	default:
		return element_done(s);
	}
}

/* Keeps the first word of a top-level error, and the text after it. */
static void keep_word(struct resp_scanner *s, const char *p, const char *end)
{
	for (; p < end && s->word_length < RESP_WORD - 1; p++) {
		if (*p == ' ') {
			s->word_length = RESP_WORD;
			break;
		}
		s->word[s->word_length++] = *p;
		s->word[s->word_length] = 0;
	}
	/* The text begins after the blank. */
	for (; p < end && s->rest_length < RESP_REST - 1; p++) {
		if (s->rest_length == 0 && *p == ' ')
			continue;
		s->rest[s->rest_length++] = *p;
		s->rest[s->rest_length] = 0;
	}
}

/* Skips the text of a line up to its CR. Returns the CR or end. */
static const char *skip_text(struct resp_scanner *s, const char *p, const char *end)
{
	const char *cr = memchr(p, '\r', (size_t)(end - p));
	const char *stop = cr ? cr : end;

	if (s->type == '-' && s->depth == 0)
		keep_word(s, p, stop);
	return stop;
}

static uint8_t kind_of(char type)
{
	switch (type) {
	case '%':
	case '~':
		return RESP_ARRAY;
	case '=':
		return RESP_STRING;
	case '!':
		return RESP_ERROR;
	case '_':
		return RESP_NIL;
	default:
		return (uint8_t)type;
	}
}

static int begin_element(struct resp_scanner *s, char type)
{
	if (s->depth == 0) {
		s->kind = kind_of(type);
		s->word_length = s->rest_length = 0;
		if (s->kind == RESP_ERROR)
			s->word[0] = s->rest[0] = 0;
	}
	s->type = (uint8_t)type;
	s->number = 0;
	s->digits = 0;
	s->negative = false;
	switch (type) {
	case '-':
	case '+':
		s->state = IN_LINE;
		return 0;
	case '>':
		if (s->depth > 0)
			return -1;
		/* fall through */
	case ':':
	case '$':
	case '*':
	case '%':
	case '~':
	case '=':
	case '!':
	case '|':
		s->state = IN_NUMBER;
		return 0;
	case ',':
	case '#':
	case '(':
		s->state = IN_SCALAR;
		return 0;
	case '.':
		if (s->depth == 0 || !(s->streamed & innermost(s)))
			return -1;
		/* fall through */
	case '_':
		s->state = AT_CR;
		return 0;
	default:
		return -1;
	}
}

static int number_byte(struct resp_scanner *s, char byte)
{
	if (byte == '-' && s->digits == 0 && !s->negative) {
		s->negative = true;
		return 0;
	}
	if (byte == '\r' && s->digits > 0) {
		s->state = AT_LF;
		return 0;
	}
	if (byte == '?' && s->digits == 0 && !s->negative && strchr("$*%~", s->type)) {
		s->digits = STREAMED;
		return 0;
	}
	if (byte < '0' || byte > '9' || s->digits >= NUMBER_DIGITS)
		return -1;
	s->digits++;
	s->number = s->number * 10 + (uint64_t)(byte - '0');
	/* An integer may have any 64-bit value, but lengths and counts may not. */
	return s->type != ':' && s->number > LARGEST_NUMBER ? -1 : 0;
}

static int scalar_byte(struct resp_scanner *s, char byte)
{
	bool good;

	if (byte == '\r' && s->digits > 0) {
		s->state = AT_LF;
		return 0;
	}
	switch (s->type) {
	case '#':
		good = s->digits == 0 && (byte == 't' || byte == 'f');
		break;
	case ',':
		good = of_double[(uint8_t)byte] && s->digits < DOUBLE_BYTES;
		break;
	default: /* any number of digits */
		if (byte == '-' && s->digits == 0 && !s->negative) {
			s->negative = true;
			return 0;
		}
		good = byte >= '0' && byte <= '9';
		s->digits = 0;
	}
	s->digits++;
	return good ? 0 : -1;
}

/* The number between a type byte and CRLF at `p`, if it is complete and valid. Returns the position after it,
 * or NULL for byte-by-byte processing. At most 9 digits, so it cannot overflow. */
static inline const char *whole_number(const char *p, const char *end, uint32_t *number)
{
	const char *first = p;
	uint32_t n = 0;

	while (p < end && (uint8_t)(*p - '0') < 10 && p - first < 9)
		n = n * 10 + (uint32_t)(*p++ - '0');
	if (p == first || end - p < 2 || memcmp(p, "\r\n", 2) != 0)
		return NULL;
	*number = n;
	return p + 2;
}

/* Skips the string that begins at *at, a '$', and is complete. False: nothing was done. */
static inline bool whole_string(const char **at, const char *end)
{
	uint32_t n;
	const char *q = whole_number(*at + 1, end, &n);

	if (!q || (size_t)(end - q) < (size_t)n + 2 || memcmp(q + n, "\r\n", 2) != 0)
		return false;
	*at = q + n + 2;
	return true;
}

/* Skips a string, integer, "+" line or double that is complete at *at. False: nothing was done. */
static inline bool whole_element(const char **at, const char *end)
{
	const char *p = *at, *q;
	uint32_t n;

	switch (*p) {
	case '$':
		return whole_string(at, end);
	case ':':
		q = whole_number(p + 1, end, &n);
		if (!q)
			return false;
		*at = q;
		return true;
	case '+':
		if (end - p >= 5 && memcmp(p, "+OK\r\n", 5) == 0) {
			*at = p + 5;
			return true;
		}
		q = memchr(p, '\r', (size_t)(end - p));
		if (!q || end - q < 2 || q[1] != '\n')
			return false;
		*at = q + 2;
		return true;
	case ',':
		for (q = p + 1; q < end && of_double[(uint8_t)*q]; q++)
			;
		if (q == p + 1 || q - p > DOUBLE_BYTES + 1 || end - q < 2 || q[0] != '\r' || q[1] != '\n')
			return false;
		*at = q + 2;
		return true;
	default:
		return false;
	}
}

/* Processes one byte, or as many as the state can handle at once. 1: reply complete, 0: continue, -1: not a
 * reply. *at is advanced, except for a byte that is refused. */
static int scan_state(struct resp_scanner *s, const char **at, const char *end)
{
	const char *p = *at;
	int result = 0;

	switch ((enum state)s->state) {
	case AT_TYPE:
		result = begin_element(s, *p);
		break;
	case IN_LINE:
		*at = p = skip_text(s, p, end);
		if (p == end)
			return 0;
		s->state = AT_LF;
		break;
	case IN_NUMBER:
		result = number_byte(s, *p);
		break;
	case IN_SCALAR:
		result = scalar_byte(s, *p);
		break;
	case AT_CR:
		result = *p == '\r' ? 0 : -1;
		s->state = AT_LF;
		break;
	case AT_LF:
		result = *p == '\n' ? line_done(s) : -1;
		break;
	case IN_BULK: {
		uint64_t have = (uint64_t)(end - p), skip = have < s->number ? have : s->number;

		if (s->type == '!' && s->depth == 0)
			keep_word(s, p, p + skip);
		s->number -= skip;
		*at = p + skip;
		if (s->number == 0)
			s->state = AT_BULK_CR;
		return 0;
	}
	case AT_BULK_CR:
		result = *p == '\r' ? 0 : -1;
		s->state = AT_BULK_LF;
		break;
	case AT_BULK_LF:
		if (*p != '\n')
			result = -1;
		else if (s->type == ';')
			s->state = AT_CHUNK;
		else
			result = element_done(s);
		break;
	case AT_CHUNK:
		if (*p != ';')
			return -1;
		s->type = ';';
		s->number = 0;
		s->digits = 0;
		s->state = IN_NUMBER;
		break;
	}
	if (result >= 0)
		*at = p + 1;
	return result;
}

/* resp_scan, for any reply. Not inlined, so that the usual reply needs no registers saved. */
static __attribute__((noinline)) int scan_any(struct resp_scanner *s, const char **at, const char *end)
{
	int result = 0;

	while (*at < end && result == 0) {
		const char type = **at;

		if (s->state == AT_TYPE && whole_element(at, end)) {
			if (s->depth == 0) {
				s->kind = (uint8_t)type;
				return 1;
			}
			if (--s->left[s->depth - 1] == 0)
				result = aggregate_done(s);
			continue;
		}
		result = scan_state(s, at, end);
	}
	return result == 1 && s->kind == RESP_PUSH ? 2 : result;
}

int resp_scan(struct resp_scanner *s, const char **at, const char *end)
{
	if (*at < end && **at == RESP_STRING && (s->state | s->depth) == 0 && whole_string(at, end)) {
		s->kind = RESP_STRING;
		return 1;
	}
	return scan_any(s, at, end);
}

/* Redis: the format of commands and their answers. Commands are sent as written; the server knows whether
 * they exist. RESP3 shares a scanner with RESP2, so it is not a separate protocol here. */

enum { HEAD_ROOM = 24 };

/* ---- requests ---- */

static bool fits(const struct command *c, char *error, size_t size)
{
	(void)c, (void)error, (void)size;
	return true;
}

/* The successful answer to a command, and the answer for a miss. For other commands any reply except an error
 * is accepted. */
static void expect(const struct command *c, struct expected *e)
{
	/* LPOP key count: an array. SET key value GET, ZADD key INCR: other replies, or none. */
	if (c->row && (c->row->reply.words == 0 || c->word_count <= c->row->reply.words))
		*e = (struct expected){.kind = c->row->reply.kind, .miss = c->row->reply.miss};
}

/* "$16" or "*3" and CRLF; the space exists. */
static void put_head(struct bytes *to, char type, size_t number)
{
	uint32_t digits = digits_count(number);
	char *at = to->at + to->length;

	*at = type;
	digits_write(at + 1, digits, number);
	memcpy(at + 1 + digits, "\r\n", 2);
	to->length += digits + 3;
}

/* A word with its length before it. */
static bool write_counted(const struct command *c, uint32_t index, const struct fill *f,
			  const struct request_values *v, struct random_stream *random, struct bytes *to,
			  struct patches *patches)
{
	struct drawn drawn[WORD_PARTS_MAX];
	size_t length = draw_word(c, index, f, v, random, drawn);

	if (!bytes_reserve(to, length + HEAD_ROOM + 2))
		return false;
	put_head(to, '$', length);
	if (!write_drawn(c, index, drawn, length, f, v, to, patches))
		return false;
	bytes_add(to, "\r\n", 2);
	return true;
}

/* An array of bulk strings, or the words as they are. */
static bool write_request(const struct command *c, const struct fill *f, const struct request_values *v,
			  struct random_stream *random, struct bytes *to, struct patches *patches)
{
	if (!bytes_reserve(to, HEAD_ROOM))
		return false;
	if (!c->inlined)
		put_head(to, '*', c->word_count);
	for (uint32_t i = 0; i < c->word_count; i++) {
		if (c->inlined && i > 0)
			bytes_add(to, " ", 1);
		if (!(c->inlined ? write_word(c, i, f, v, random, to, patches)
				 : write_counted(c, i, f, v, random, to, patches)) ||
		    !bytes_reserve(to, HEAD_ROOM))
			return false;
	}
	if (c->inlined)
		bytes_add(to, "\r\n", 2);
	return true;
}

/* The space exists. */
static void add_counted(struct bytes *to, const char *text)
{
	size_t length = strlen(text);

	put_head(to, '$', length);
	bytes_add(to, text, length);
	bytes_add(to, "\r\n", 2);
}

static bool login(const char *user, const char *password, struct bytes *to)
{
	enum { HEADS = 4, ENDS = 8 };

	if (!bytes_reserve(to, HEADS * HEAD_ROOM + ENDS + 4 + (user ? strlen(user) : 0) + strlen(password)))
		return false;
	put_head(to, '*', user ? 3 : 2);
	add_counted(to, "AUTH");
	if (user)
		add_counted(to, user);
	add_counted(to, password);
	return true;
}

/* ---- answers ---- */

static int scan(union reply_scanner *s, const char **at, const char *end)
{
	return resp_scan(&s->resp, at, end);
}

static void error_text(const union reply_scanner *s, char *out, size_t size)
{
	const struct resp_scanner *r = &s->resp;

	/* A first word that is too long to keep continues in the rest. */
	snprintf(out, size, "%s%s%s%s", r->word, r->word_length == RESP_WORD && *r->rest ? " " : "", r->rest,
		 r->rest_length == RESP_REST - 1 ? "..." : "");
}

static bool accepted(const union reply_scanner *s)
{
	return s->resp.kind != RESP_ERROR;
}

static bool find_value(const char *reply, size_t length, size_t *at, size_t *bytes)
{
	const char *line = memchr(reply, '\r', length);

	if (!line)
		return false;
	*at = (size_t)(line - reply) + 2;
	*bytes = reply[0] == RESP_STRING ? reply_number(reply + 1, line) : 0;
	return *at + *bytes <= length;
}

/* ---- the row ---- */

const struct product redis_product = {
    .name = "Redis",
    .program = "redis-server",
    .port = 6379,
    .expiry = " EX",
    .databases = true,
    .records = true,
    .replicas = true,
    .recordings = true,
    .messages = true,
};

const struct protocol protocol_redis = {
    .name = "redis",
    .product = &redis_product,
    .ping = "PING",
    .resp3 = true,
    .redirects = true,
    .fits = fits,
    .expect = expect,
    .write = write_request,
    .login = login,
    .scan = scan,
    .status = reply_status_redis,
    .error_text = error_text,
    .accepted = accepted,
    .find_value = find_value,
};
