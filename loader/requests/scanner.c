/* SPDX-License-Identifier: MIT */
/* The scanner of requests, of Redis and of memcached: which form a request has, what is the same for all of
 * them, and a part for each form. */
#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "loader/requests.h"

/* Each part proceeds from the state it left, and all of them collect arguments with the functions below. */

enum scan_state {
	SCAN_BEGIN, /* zero: a scanner between requests */
	SCAN_ARRAY_COUNT,
	SCAN_ARRAY_COUNT_LF,
	SCAN_ARGUMENT, /* before its "$" */
	SCAN_ARGUMENT_LENGTH,
	SCAN_ARGUMENT_LENGTH_LF,
	SCAN_IN_VALUE,
	SCAN_VALUE_CR,
	SCAN_VALUE_LF,
	SCAN_IN_LINE,
	SCAN_IN_DATA, /* memcached's block after a line */
	SCAN_DATA_CR,
	SCAN_DATA_LF,
	SCAN_IN_HEADER, /* of a binary request */
	SCAN_IN_BODY,
};

enum scan_word_state {
	SCAN_BETWEEN_WORDS,
	SCAN_IN_WORD,
	SCAN_AFTER_CR, /* of a line of memcached */
	/* of an inline command: */
	SCAN_IN_DOUBLE_QUOTES,
	SCAN_AFTER_BACKSLASH,
	SCAN_IN_SINGLE_QUOTES,
	SCAN_AFTER_SINGLE_BACKSLASH, /* which escapes only a single quote */
	SCAN_AFTER_QUOTES,
};

enum scan_result {
	SCAN_REFUSED = -1,
	SCAN_CONTINUES = 0,
	SCAN_COMPLETE = 1,
	SCAN_NOTHING = 2, /* complete, but no request: an empty line or array */
};

enum scan_option {
	SCAN_NO_OPTION,
	SCAN_OPTIONS_END, /* later arguments do not matter */
	SCAN_CLIENT_REPLY,
	SCAN_CLIENT_REPLY_ON,
	SCAN_CLIENT_REPLY_OFF,
	SCAN_CLIENT_REPLY_SKIP,
	SCAN_CLIENT_TRACKING,
	SCAN_CLIENT_INFO, /* CLIENT SETINFO */
	SCAN_NAME,	  /* the next argument is the connection's name */
	SCAN_LIBRARY,
	SCAN_HELLO_USER,     /* HELLO ... AUTH: a user and a password follow */
	SCAN_HELLO_PASSWORD, /* the password follows */
	SCAN_READ_GROUP,     /* XREADGROUP: the names of the group and the consumer follow */
	/* Bits, for the options of memcached. */
	SCAN_DATA_LENGTH = 16,	/* it is valid, and in `left` */
	SCAN_KEY_TOO_LONG = 32, /* so the server reads no data */
	SCAN_NOREPLY = 64,	/* the last word */
};

/* Each proceeds until a result other than SCAN_CONTINUES or until the end. *at is after the bytes it used. */
static int scan_array(struct scanner *s, const uint8_t **at, const uint8_t *end);
static int scan_inline(struct scanner *s, const uint8_t **at, const uint8_t *end);
static int scan_line(struct scanner *s, const uint8_t **at,
		     const uint8_t *end); /* memcached, or to be decided */
static int scan_memcached_data(struct scanner *s, const uint8_t **at, const uint8_t *end);
static int scan_memcached_binary(struct scanner *s, const uint8_t **at, const uint8_t *end);

/* The command word is complete. SCAN_REFUSED: a lost scanner does not accept it. */
static int scan_command_word(struct scanner *s);
/* An argument was gathered in `word`. */
static void scan_option_word(struct scanner *s);
static void scan_memcached_option(struct scanner *s);

/* The first bytes of the argument are compared with known words, in upper case unless they are memcached's.
 */
static void scan_gather(struct scanner *s, const uint8_t *bytes, size_t count);
static void scan_hash_key(struct scanner *s, const uint8_t *bytes, size_t count);
static void scan_keep_text(struct scanner *s, const uint8_t *bytes, size_t count);

static size_t kept_key_bytes;

void scanner_keep_keys(size_t bytes)
{
	kept_key_bytes = bytes < SCAN_TEXT ? bytes : SCAN_TEXT;
}

static inline void scan_begin_text(struct scanner *s, enum scan_text as, size_t most)
{
	s->text_as = (uint8_t)as;
	s->text_most = (uint8_t)most;
	s->text_bytes = 0;
}

/* One step of a multiplicative hash. It distinguishes requests that are in flight at the same time. It does
 * not resist a client that wants two requests to have one hash. */
static inline uint64_t scan_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* Whether the gathered word is `text`, of at most SCAN_WORD bytes. */
static inline bool scan_is_word(const struct scanner *s, const char *text)
{
	size_t bytes = strlen(text);

	return s->length == bytes && memcmp(s->word, text, bytes) == 0;
}

static inline void scan_begin_argument(struct scanner *s)
{
	unsigned key = s->properties & COMMAND_KEY_SECOND ? 2 : 1;

	s->length = 0;
	s->text_most = 0;
	if (s->arguments == 0) {
		s->gathers = true;
		return;
	}
	s->key_left = s->arguments == key && !(s->properties & COMMAND_NO_KEY) ? SCAN_KEY : 0;
	if (s->arguments == s->key_word && kept_key_bytes)
		scan_begin_text(s, TEXT_KEY, kept_key_bytes);
	else if (!s->memcached && (s->option == SCAN_NAME || s->option == SCAN_LIBRARY))
		scan_begin_text(s, s->option == SCAN_NAME ? TEXT_NAME : TEXT_LIBRARY, SCAN_TEXT);
	if (s->memcached)
		s->gathers =
		    s->key_left == 0 && s->properties & (COMMAND_DATA | COMMAND_META | COMMAND_NOREPLY);
	else
		s->gathers = s->option != SCAN_OPTIONS_END &&
			     s->properties & (COMMAND_CLIENT | COMMAND_HELLO | COMMAND_BLOCK_OPTION);
}

static inline void scan_argument_bytes(struct scanner *s, const uint8_t *bytes, size_t count)
{
	if (s->gathers)
		scan_gather(s, bytes, count);
	if (s->text_bytes < s->text_most)
		scan_keep_text(s, bytes, count);
	if (s->key_left)
		scan_hash_key(s, bytes, count);
	s->length += count;
}

static inline void scan_end_chunk(struct scanner *s)
{
	if (s->chunk_bytes == 0)
		return;
	s->hash = scan_mix(s->hash, s->chunk);
	s->chunk = 0;
	s->chunk_bytes = 0;
}

/* SCAN_CONTINUES or SCAN_REFUSED. */
static inline int scan_end_argument(struct scanner *s)
{
	if (s->arguments == 0) {
		if (scan_command_word(s) < 0)
			return SCAN_REFUSED;
	} else if (s->memcached) {
		scan_memcached_option(s);
	} else if (s->gathers) {
		scan_option_word(s);
	}
	scan_end_chunk(s);
	s->gathers = false;
	s->key_left = 0;
	s->text_most = 0;
	s->hash = scan_mix(s->hash, s->length);
	s->arguments++;
	return SCAN_CONTINUES;
}

/* Bytes of a value: the next `s->left` of the stream at most. Returns whether the value is complete. */
static inline bool scan_value(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	size_t have = (size_t)(end - *at), count = have < s->left ? have : (size_t)s->left;

	scan_argument_bytes(s, *at, count);
	s->left -= count;
	*at += count;
	return s->left == 0;
}

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
	out->arguments = s->arguments ? s->arguments - 1 : 0;
	out->command = s->command;
	out->flags = s->flags;
	out->text_as = s->text_as;
	out->text_bytes = s->text_bytes;
	if (s->text_as)
		memcpy(out->text, s->text, sizeof out->text);
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
	if (s->text_bytes < s->text_most && of_key > 0)
		scan_begin_text(s, TEXT_NONE, 0);
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

uint64_t scanner_arguments(const struct scanner *s, uint64_t *line_bytes)
{
	*line_bytes = 0;
	if (s->arguments == 0)
		return 0;
	if (s->state >= SCAN_ARGUMENT && s->state <= SCAN_VALUE_LF)
		return s->count - 1;
	if (s->state != SCAN_IN_LINE || !s->memcached || s->undecided || !(s->properties & COMMAND_MANY_KEYS))
		return 0;
	*line_bytes = s->bytes;
	return s->arguments - 1;
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

/* What a request's words say: its command, and the few options that change when or whether the server
 * replies. */

static void scan_gather(struct scanner *s, const uint8_t *bytes, size_t count)
{
	bool upper = s->arguments == 0 || !s->memcached;

	for (size_t i = 0; i < count && s->length + i < SCAN_WORD; i++) {
		bool lower_case = bytes[i] >= 'a' && bytes[i] <= 'z';

		s->word[s->length + i] = upper && lower_case ? bytes[i] - 'a' + 'A' : bytes[i];
	}
}

static void scan_hash_key(struct scanner *s, const uint8_t *bytes, size_t count)
{
	size_t i = 0;

	if (count > s->key_left)
		count = s->key_left;
	s->key_left = (uint8_t)(s->key_left - count);
	while (i < count) {
		uint64_t chunk;

		if (s->chunk_bytes == 0 && count - i >= sizeof(chunk)) {
			memcpy(&chunk, bytes + i, sizeof(chunk));
			s->hash = scan_mix(s->hash, le64toh(chunk));
			i += sizeof(chunk);
			continue;
		}
		s->chunk |= (uint64_t)bytes[i++] << 8 * s->chunk_bytes++;
		if (s->chunk_bytes == sizeof(chunk))
			scan_end_chunk(s);
	}
}

static void scan_keep_text(struct scanner *s, const uint8_t *bytes, size_t count)
{
	const size_t room = (size_t)s->text_most - s->text_bytes, take = count < room ? count : room;

	memcpy(s->text + s->text_bytes, bytes, take);
	s->text_bytes = (uint8_t)(s->text_bytes + take);
}

static int scan_command_word(struct scanner *s)
{
	size_t bytes = s->length < SCAN_WORD ? s->length : SCAN_WORD;
	unsigned flags;

	s->command =
	    (uint8_t)(s->length <= SCAN_WORD ? commands_find((const char *)s->word, bytes) : COMMAND_OTHER);
	flags = commands_flags(s->command);
	/* memcached's commands are lower case. */
	if (s->memcached && (s->capital || !(flags & COMMAND_MEMCACHED)))
		s->command = COMMAND_OTHER;
	if (s->lost && s->state == SCAN_IN_LINE && (!s->memcached || s->command == COMMAND_OTHER))
		return SCAN_REFUSED;
	if (s->command != COMMAND_OTHER)
		s->properties =
		    (uint16_t)(s->memcached ? flags & ~(unsigned)COMMAND_REDIS : flags & COMMAND_REDIS);
	s->key_word = s->properties & COMMAND_KEY_SECOND ? 2 : commands_table[s->command].key;
	if (s->properties & COMMAND_RESET) /* it clears the name */
		scan_begin_text(s, TEXT_NAME, 0);
	if (s->properties & COMMAND_BLOCKING)
		s->flags |= SCANNED_BLOCKING;
	if (s->properties & COMMAND_PUSHES)
		s->flags |= SCANNED_PUSHES;
	if (s->properties & COMMAND_MULTI)
		s->flags |= SCANNED_MULTI;
	if (s->properties & (COMMAND_EXEC | COMMAND_RESET))
		s->flags |= SCANNED_EXEC;
	for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
		uint64_t chunk;

		memcpy(&chunk, s->word + i, sizeof(chunk));
		s->hash = scan_mix(s->hash, le64toh(chunk));
	}
	return SCAN_CONTINUES;
}

static void client_option(struct scanner *s)
{
	if (s->arguments == 1) {
		s->option = scan_is_word(s, "REPLY")	  ? SCAN_CLIENT_REPLY
			    : scan_is_word(s, "TRACKING") ? SCAN_CLIENT_TRACKING
			    : scan_is_word(s, "SETNAME")  ? SCAN_NAME
			    : scan_is_word(s, "SETINFO")  ? SCAN_CLIENT_INFO
							  : SCAN_OPTIONS_END;
		return;
	}
	if (s->option == SCAN_CLIENT_TRACKING && scan_is_word(s, "ON"))
		s->flags |= SCANNED_TRACKING;
	if (s->option == SCAN_CLIENT_INFO && scan_is_word(s, "LIB-NAME"))
		s->option = SCAN_LIBRARY;
	else if (s->option == SCAN_CLIENT_REPLY)
		s->option = scan_is_word(s, "ON")     ? SCAN_CLIENT_REPLY_ON
			    : scan_is_word(s, "OFF")  ? SCAN_CLIENT_REPLY_OFF
			    : scan_is_word(s, "SKIP") ? SCAN_CLIENT_REPLY_SKIP
						      : SCAN_OPTIONS_END;
	else
		s->option = SCAN_OPTIONS_END;
}

/* HELLO [version [AUTH user password] [SETNAME name]]: a password may be any word. */
static void hello_option(struct scanner *s)
{
	if (s->option == SCAN_HELLO_USER)
		s->option = SCAN_HELLO_PASSWORD;
	else if (s->option == SCAN_HELLO_PASSWORD || s->option == SCAN_NAME)
		s->option = SCAN_NO_OPTION;
	else if (s->arguments > 1 && scan_is_word(s, "AUTH"))
		s->option = SCAN_HELLO_USER;
	else if (s->arguments > 1 && scan_is_word(s, "SETNAME"))
		s->option = SCAN_NAME;
}

static void scan_option_word(struct scanner *s)
{
	if (s->properties & COMMAND_CLIENT) {
		client_option(s);
	} else if (s->properties & COMMAND_HELLO) {
		hello_option(s);
	} else if (s->arguments == 1 && scan_is_word(s, "GROUP")) {
		s->option = SCAN_READ_GROUP;
	} else if (s->option == SCAN_READ_GROUP && s->arguments <= 3) {
		return; /* any name, even BLOCK */
	} else if (scan_is_word(s, "BLOCK")) {
		s->flags |= SCANNED_BLOCKING;
		s->option = SCAN_OPTIONS_END;
	} else if (scan_is_word(s, "STREAMS")) {
		s->option = SCAN_OPTIONS_END;
	}
}

/* Redis requests as arrays of strings, in two layers. Nearly all arguments are complete in the buffer and
 * taken at once; split or unusual ones are processed byte by byte in states. */

enum {
	NEGATIVE_DIGITS = 18, /* the value of a negative count does not matter */
};

/* One byte of a number, which ends with CR. The server accepts neither leading zeros nor "-0". */
static int number_byte(struct scanner *s, uint8_t byte, uint64_t limit)
{
	if (byte == '\r' && s->digits > 0) {
		s->state++;
		return SCAN_CONTINUES;
	}
	if (byte == '-' && s->state == SCAN_ARRAY_COUNT && s->digits == 0 && !s->negative) {
		s->negative = true;
		return SCAN_CONTINUES;
	}
	if (byte < '0' || byte > '9' || (s->digits > 0 && s->left == 0) ||
	    (s->negative && (s->digits == NEGATIVE_DIGITS || (s->digits == 0 && byte == '0'))))
		return SCAN_REFUSED;
	s->digits++;
	s->left = s->left * 10 + (uint64_t)(byte - '0');
	return s->left > limit && !s->negative ? SCAN_REFUSED : SCAN_CONTINUES;
}

static int count_done(struct scanner *s)
{
	if (s->negative || s->left == 0)
		return SCAN_NOTHING;
	s->count = (uint32_t)s->left;
	s->state = SCAN_ARGUMENT;
	return SCAN_CONTINUES;
}

static int argument_done(struct scanner *s)
{
	scan_end_argument(s); /* not a line, so any command is accepted */
	s->state = SCAN_ARGUMENT;
	return s->arguments == s->count ? SCAN_COMPLETE : SCAN_CONTINUES;
}

/* The length between "$" and CRLF at `p`, if it is complete and valid. Returns the position after it, or NULL
 * for byte-by-byte processing. At most 8 digits, so it is below the limits. */
static inline const uint8_t *whole_number(const uint8_t *p, const uint8_t *end, uint32_t *number)
{
	const uint8_t *first = p;
	uint32_t n = 0;

	while (p < end && (uint8_t)(*p - '0') < 10 && p - first < 8)
		n = n * 10 + (uint32_t)(*p++ - '0');
	if (p == first || (*first == '0' && p - first > 1) || end - p < 2 || p[0] != '\r' || p[1] != '\n')
		return NULL;
	*number = n;
	return p + 2;
}

/* Takes an argument that is complete at *at. False: nothing was done. */
static inline bool whole_argument(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	const uint8_t *p = *at;
	uint32_t n;

	if (*p != '$' || !(p = whole_number(p + 1, end, &n)))
		return false;
	if ((size_t)(end - p) < (size_t)n + 2 || p[n] != '\r' || p[n + 1] != '\n')
		return false;
	scan_begin_argument(s);
	scan_argument_bytes(s, p, n);
	*at = p + n + 2;
	return true;
}

/* Processes one byte, or as many as the state can handle at once. *at is advanced, except for a byte that is
 * refused. */
static int scan_byte(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	const uint8_t byte = **at;
	int result = SCAN_CONTINUES;

	switch (s->state) {
	case SCAN_BEGIN:
		s->state = SCAN_ARRAY_COUNT;
		break;
	case SCAN_ARRAY_COUNT:
		result = number_byte(s, byte, SCAN_ARGUMENTS);
		break;
	case SCAN_ARRAY_COUNT_LF:
		result = byte == '\n' ? count_done(s) : SCAN_REFUSED;
		break;
	case SCAN_ARGUMENT:
		if (byte != '$')
			return SCAN_REFUSED;
		s->left = s->digits = 0;
		s->state = SCAN_ARGUMENT_LENGTH;
		break;
	case SCAN_ARGUMENT_LENGTH:
		result = number_byte(s, byte, SCAN_VALUE);
		break;
	case SCAN_ARGUMENT_LENGTH_LF:
		if (byte != '\n')
			return SCAN_REFUSED;
		scan_begin_argument(s);
		s->state = s->left > 0 ? SCAN_IN_VALUE : SCAN_VALUE_CR;
		break;
	case SCAN_IN_VALUE:
		if (scan_value(s, at, end))
			s->state = SCAN_VALUE_CR;
		return SCAN_CONTINUES;
	case SCAN_VALUE_CR:
		result = byte == '\r' ? SCAN_CONTINUES : SCAN_REFUSED;
		s->state = SCAN_VALUE_LF;
		break;
	default: /* SCAN_VALUE_LF */
		result = byte == '\n' ? argument_done(s) : SCAN_REFUSED;
	}
	if (result != SCAN_REFUSED)
		++*at;
	return result;
}

/* The state of a scanner at the beginning of an array. False: nothing was done. */
static inline bool whole_count(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	uint32_t n;
	const uint8_t *p = whole_number(*at + 1, end, &n);

	if (!p || n == 0)
		return false;
	s->count = n;
	s->state = SCAN_ARGUMENT;
	*at = p;
	return true;
}

static int scan_array(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	int result = SCAN_CONTINUES;

	if (s->state == SCAN_BEGIN)
		whole_count(s, at, end);
	while (*at < end && result == SCAN_CONTINUES)
		if (s->state == SCAN_ARGUMENT && whole_argument(s, at, end))
			result = argument_done(s);
		else
			result = scan_byte(s, at, end);
	return result;
}

/* memcached's binary requests: a header of 24 bytes, gathered because it cannot be interpreted in parts, and
 * a body of extras, key and value. */

/* Offsets in the header, from memcached's doc/protocol-binary.txt. */
enum {
	MAGIC_AT = 0,
	OPCODE_AT = 1,
	KEY_LENGTH_AT = 2,
	EXTRAS_LENGTH_AT = 4,
	BODY_LENGTH_AT = 8,
	LENGTHS_END = 12, /* all lengths are known from here on */
	HEADER_BYTES = 24,
};

_Static_assert((int)HEADER_BYTES <= (int)SCAN_WORD, "a header is gathered in the scanner's word");

enum { REQUEST_MAGIC = 0x80 };

static uint32_t number(const uint8_t *at, size_t bytes)
{
	uint32_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n = n << 8 | at[i];
	return n;
}

/* Whether the lengths in a header are valid: key and extras are parts of the body. */
static bool lengths_fit(const uint8_t *header)
{
	uint32_t body = number(header + BODY_LENGTH_AT, 4);

	return body <= SCAN_BODY && number(header + KEY_LENGTH_AT, 2) + header[EXTRAS_LENGTH_AT] <= body;
}

static int header_done(struct scanner *s)
{
	const uint8_t *header = s->word;
	uint32_t key = number(header + KEY_LENGTH_AT, 2);

	s->command = (uint8_t)commands_of_opcode(header[OPCODE_AT]);
	if (commands_opcode_quiet(header[OPCODE_AT]))
		s->flags |= SCANNED_NO_REPLY;
	s->left = number(header + BODY_LENGTH_AT, 4);
	s->extras = header[EXTRAS_LENGTH_AT];
	s->key_left = (uint8_t)(key < SCAN_KEY ? key : SCAN_KEY);
	if (key && kept_key_bytes)
		scan_begin_text(s, TEXT_KEY, key < kept_key_bytes ? key : kept_key_bytes);
	s->hash = scan_mix(s->hash, header[OPCODE_AT]);
	s->hash = scan_mix(s->hash, (uint64_t)s->extras << 48 | (uint64_t)key << 32 | s->left);
	s->arguments = 1;
	s->state = SCAN_IN_BODY;
	return s->left > 0 ? SCAN_CONTINUES : SCAN_COMPLETE;
}

static int header_byte(struct scanner *s, uint8_t byte)
{
	if (s->length == MAGIC_AT && byte != REQUEST_MAGIC)
		return SCAN_REFUSED;
	s->word[s->length] = byte;
	if (s->length == LENGTHS_END - 1 && !lengths_fit(s->word))
		return SCAN_REFUSED;
	return ++s->length == HEADER_BYTES ? header_done(s) : SCAN_CONTINUES;
}

static int body_bytes(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	size_t have = (size_t)(end - *at);
	uint32_t extras = have < s->extras ? (uint32_t)have : s->extras;

	*at += extras;
	s->extras -= extras;
	s->left -= extras;
	return s->extras == 0 && scan_value(s, at, end) ? SCAN_COMPLETE : SCAN_CONTINUES;
}

static int scan_memcached_binary(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	while (*at < end && s->state == SCAN_IN_HEADER) {
		int result = header_byte(s, **at);

		if (result != SCAN_REFUSED)
			++*at;
		if (result != SCAN_CONTINUES)
			return result;
	}
	return *at < end ? body_bytes(s, at, end) : SCAN_CONTINUES;
}

/* Inline commands of Redis: a line of words, which may be quoted as in the server's sdssplitargs(). Escapes
 * count as they are written: they matter for finding the end of a word only. A proxy may forward inline
 * commands as arrays; unless they have escapes, their hashes are equal. */

static bool is_blank(uint8_t byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* A byte of a word itself. */
static int word_byte(struct scanner *s, uint8_t byte, enum scan_word_state next)
{
	if (s->arguments == 0 && (byte <= ' ' || byte > '~'))
		return SCAN_REFUSED;
	scan_argument_bytes(s, &byte, 1);
	s->word_state = (uint8_t)next;
	return SCAN_CONTINUES;
}

static int word_done(struct scanner *s)
{
	s->word_state = SCAN_BETWEEN_WORDS;
	return scan_end_argument(s);
}

static int unquoted_byte(struct scanner *s, uint8_t byte)
{
	if (byte == ' ' || byte == '\t' || byte == '\r')
		return word_done(s);
	if (byte != '"' && byte != '\'')
		return word_byte(s, byte, SCAN_IN_WORD);
	s->word_state = byte == '"' ? SCAN_IN_DOUBLE_QUOTES : SCAN_IN_SINGLE_QUOTES;
	return SCAN_CONTINUES;
}

static int line_done(struct scanner *s)
{
	if (s->word_state == SCAN_IN_WORD || s->word_state == SCAN_AFTER_QUOTES) {
		if (word_done(s) < 0)
			return SCAN_REFUSED;
	} else if (s->word_state != SCAN_BETWEEN_WORDS) {
		return SCAN_REFUSED;
	}
	return s->arguments > 0 ? SCAN_COMPLETE : SCAN_NOTHING;
}

static int line_byte(struct scanner *s, uint8_t byte)
{
	if (byte == '\n')
		return line_done(s);
	if (byte == 0 || s->count == SCAN_LINE)
		return SCAN_REFUSED;
	s->count++;
	switch ((enum scan_word_state)s->word_state) {
	case SCAN_BETWEEN_WORDS:
		if (is_blank(byte))
			return SCAN_CONTINUES;
		scan_begin_argument(s);
		/* fall through */
	case SCAN_IN_WORD:
		return unquoted_byte(s, byte);
	case SCAN_IN_DOUBLE_QUOTES:
		if (byte == '"')
			s->word_state = SCAN_AFTER_QUOTES;
		else
			return word_byte(s, byte,
					 byte == '\\' ? SCAN_AFTER_BACKSLASH : SCAN_IN_DOUBLE_QUOTES);
		return SCAN_CONTINUES;
	case SCAN_AFTER_BACKSLASH:
		return word_byte(s, byte, SCAN_IN_DOUBLE_QUOTES);
	case SCAN_IN_SINGLE_QUOTES:
		if (byte == '\'')
			s->word_state = SCAN_AFTER_QUOTES;
		else
			return word_byte(s, byte,
					 byte == '\\' ? SCAN_AFTER_SINGLE_BACKSLASH : SCAN_IN_SINGLE_QUOTES);
		return SCAN_CONTINUES;
	case SCAN_AFTER_SINGLE_BACKSLASH:
		return word_byte(s, byte, byte == '\\' ? SCAN_AFTER_SINGLE_BACKSLASH : SCAN_IN_SINGLE_QUOTES);
	default: /* SCAN_AFTER_QUOTES */
		break;
	}
	return is_blank(byte) ? word_done(s) : SCAN_REFUSED;
}

static int scan_inline(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	int result = SCAN_CONTINUES;

	while (*at < end && result == SCAN_CONTINUES) {
		result = line_byte(s, **at);
		if (result != SCAN_REFUSED)
			++*at;
	}
	return result;
}

/* memcached's text and meta commands: a line of words, and for some a block of data after it. Whether the
 * server reads that block depends on the line being valid, so that is checked as the server does. */

enum {
	KEY_BYTES = 250,
	META_KEY = 1, /* the word that is a meta command's key */
};

static bool is_delimiter(uint8_t byte)
{
	return byte == ' ' || byte == '\r' || byte == '\n';
}

/* The length of a data block, a number of at most SCAN_WORD digits. */
static void data_length(struct scanner *s)
{
	uint64_t number = 0;
	size_t i = s->word[0] == '+' && s->length > 1 ? 1 : 0;

	if (s->length > SCAN_WORD)
		return;
	for (; i < s->length; i++) {
		if (s->word[i] < '0' || s->word[i] > '9')
			return;
		number = number * 10 + (uint64_t)(s->word[i] - '0');
		if (number > SCAN_DATA)
			return;
	}
	s->left = number;
	s->option |= SCAN_DATA_LENGTH;
}

static void scan_memcached_option(struct scanner *s)
{
	bool meta = s->properties & COMMAND_META, data = s->properties & COMMAND_DATA;
	uint64_t length_word = meta ? 2 : 4;

	s->option &= (uint8_t)~SCAN_NOREPLY;
	if (s->arguments == 1 && s->length > KEY_BYTES)
		s->option |= SCAN_KEY_TOO_LONG;
	if (!s->gathers)
		return;
	if (data && s->arguments == length_word)
		data_length(s);
	else if (meta && s->arguments > META_KEY && s->word[0] == 'q')
		s->flags |= SCANNED_NO_REPLY;
	else if (scan_is_word(s, "noreply"))
		s->option |= SCAN_NOREPLY;
}

/* Whether the server reads a block of data after this line. */
static bool data_follows(const struct scanner *s)
{
	uint64_t words = s->arguments;

	if (!(s->properties & COMMAND_DATA) ||
	    (s->option & (SCAN_DATA_LENGTH | SCAN_KEY_TOO_LONG)) != SCAN_DATA_LENGTH)
		return false;
	if (s->properties & COMMAND_META)
		return true;
	if (s->properties & COMMAND_CAS)
		words--;
	return words == 5 || words == 6;
}

static int text_line_done(struct scanner *s)
{
	/* Without a word, the server answers ERROR. */
	if (s->arguments == 0)
		s->command = COMMAND_OTHER;
	if (s->properties & COMMAND_NOREPLY && s->option & SCAN_NOREPLY)
		s->flags |= SCANNED_NO_REPLY;
	if (!data_follows(s))
		return SCAN_COMPLETE;
	s->hash = scan_mix(s->hash, s->left);
	s->state = s->left > 0 ? SCAN_IN_DATA : SCAN_DATA_CR;
	return SCAN_CONTINUES;
}

/* A line whose protocol is not known follows that of memcached up to the first byte that does not. Returns
 * whether it still does. */
static bool like_memcached(struct scanner *s, uint8_t byte)
{
	unsigned command;

	if (!s->undecided || (byte >= 'a' && byte <= 'z') || byte == '_')
		return true;
	s->undecided = false;
	if (is_delimiter(byte) && s->length <= SCAN_WORD) {
		command = commands_find((const char *)s->word, s->length);
		s->memcached = commands_flags(command) & COMMAND_MEMCACHED;
	} else {
		s->memcached = false;
	}
	return s->memcached;
}

static int delimiter(struct scanner *s, uint8_t byte)
{
	if (byte != '\n' && (s->word_state == SCAN_AFTER_CR || s->count == SCAN_LINE))
		return SCAN_REFUSED;
	if (!(s->properties & COMMAND_MANY_KEYS))
		s->count++;
	if (s->word_state == SCAN_IN_WORD && scan_end_argument(s) < 0)
		return SCAN_REFUSED;
	s->word_state = byte == '\r' ? SCAN_AFTER_CR : SCAN_BETWEEN_WORDS;
	return byte == '\n' ? text_line_done(s) : SCAN_CONTINUES;
}

/* The bytes of a word up to a delimiter; of the first word one byte. *at is after those that were used. */
static int word_bytes(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	const uint8_t *p = *at, *stop = p + 1;
	size_t room = s->properties & COMMAND_MANY_KEYS ? SIZE_MAX : SCAN_LINE - s->count;
	bool first = s->arguments == 0;

	if (s->word_state == SCAN_AFTER_CR || room == 0 || (first && (*p <= ' ' || *p > '~')))
		return SCAN_REFUSED;
	while (!first && stop < end && (size_t)(stop - p) < room && !is_delimiter(*stop))
		stop++;
	if (first && *p >= 'A' && *p <= 'Z')
		s->capital = true;
	if (s->word_state == SCAN_BETWEEN_WORDS)
		scan_begin_argument(s);
	s->word_state = SCAN_IN_WORD;
	scan_argument_bytes(s, p, (size_t)(stop - p));
	if (!(s->properties & COMMAND_MANY_KEYS))
		s->count += (uint32_t)(stop - p);
	*at = stop;
	return SCAN_CONTINUES;
}

static int scan_line(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	int result = SCAN_CONTINUES;

	while (*at < end && result == SCAN_CONTINUES && s->state == SCAN_IN_LINE) {
		if (!s->memcached || !like_memcached(s, **at))
			return scan_inline(s, at, end);
		if (!is_delimiter(**at)) {
			result = word_bytes(s, at, end);
			continue;
		}
		result = delimiter(s, **at);
		if (result != SCAN_REFUSED)
			++*at;
	}
	return result;
}

static int scan_memcached_data(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	while (*at < end) {
		if (s->state == SCAN_IN_DATA) {
			if (scan_value(s, at, end))
				s->state = SCAN_DATA_CR;
			continue;
		}
		if (**at != (s->state == SCAN_DATA_CR ? '\r' : '\n'))
			return SCAN_REFUSED;
		++*at;
		if (s->state == SCAN_DATA_LF)
			return SCAN_COMPLETE;
		s->state = SCAN_DATA_LF;
	}
	return SCAN_CONTINUES;
}
