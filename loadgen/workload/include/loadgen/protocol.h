/* SPDX-License-Identifier: MIT */
/* Requests and answers: commands with placeholders and their values, how each protocol writes them, and
 * the scanners of answers. */
#ifndef FORKTAIL_LOADGEN_PROTOCOL_H
#define FORKTAIL_LOADGEN_PROTOCOL_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/commands.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A growing buffer for requests, greetings, gathered replies and files. */

struct bytes {
	char *at;
	size_t length, room;
};

/* Makes space for `more` bytes at the end. False: out of memory. */
bool bytes_reserve(struct bytes *b, size_t more);
void bytes_add(struct bytes *b, const void *from, size_t count); /* the space must exist */
/* Makes the space itself. False: out of memory. */
bool bytes_add_text(struct bytes *b, const char *text);
/* Adds a file's content. Returns 0, or a negative errno; -EFBIG: it has more than `limit` bytes. */
int bytes_add_file(struct bytes *b, const char *path, size_t limit);

/* Random numbers that repeat by seed. Key order, choice of operation and arrivals each draw from a separate
 * stream, so that changing one setting does not change the other sequences. The generator is SplitMix64
 * (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014): eight bytes of state,
 * about a nanosecond per draw, and good enough for choosing keys. */

struct random_stream {
	uint64_t state;
};

/* The next 64 random bits. */
static inline uint64_t random_next(struct random_stream *r)
{
	uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Uniform in 0 .. limit-1; the bias is limit / 2^64. */
static inline uint64_t random_below(struct random_stream *r, uint64_t limit)
{
	return (uint64_t)(((unsigned __int128)random_next(r) * limit) >> 64);
}

/* Uniform in (0, 1]: never 0, so that its logarithm is finite. */
static inline double random_unit(struct random_stream *r)
{
	return (double)((random_next(r) >> 11) + 1) * 0x1p-53;
}

/* Stream `which` of thread `thread` for a seed: streams share no visible structure. */
static inline struct random_stream random_begin(uint64_t seed, uint32_t thread, uint32_t which)
{
	struct random_stream r = {seed};

	r.state = random_next(&r) ^ ((uint64_t)thread << 32 | which);
	r.state = random_next(&r);
	return r;
}

/* Values: their sizes and bytes. A value's bytes follow from a 64-bit seed: its 16 hexadecimal digits, then
 * text from a pool, starting at an offset derived from the seed. So a value that belongs to a key (seeded by
 * the key's number) can be checked byte by byte when it is read, without storing it, even in another run. */

enum { VALUE_SIZES_MAX = 32, VALUE_POOL_BYTES = 1 << 20, VALUE_STAMP_BYTES = 16 };
#define VALUE_BYTES_MAX (64u << 20)

enum size_kind { SIZE_FIXED, SIZE_RANGE, SIZE_LIST, SIZE_LOGNORMAL };

struct value_sizes {
	enum size_kind kind;
	uint32_t low, high; /* bytes, for every kind: limits of all values */
	uint32_t count;	    /* SIZE_LIST */
	uint32_t list[VALUE_SIZES_MAX];
	uint64_t below[VALUE_SIZES_MAX]; /* a 64-bit draw up to this selects list[i] */
	double median, sigma;		 /* SIZE_LOGNORMAL: parameter of the logarithm */
};

struct values {
	struct value_sizes sizes;
	char *pool; /* VALUE_POOL_BYTES, twice: no wrap-around within a copy */
};

/* "100", "10-1000" (uniform), "100:80,10000:20" (sizes with weights), "lognormal:200,1.2" (median in bytes
 * and sigma of the logarithm; at most 1 MiB, or 65536 with "lognormal:200,1.2,65536"). Sizes are 1 ..
 * VALUE_BYTES_MAX. False, and a sentence in `error`. */
bool value_sizes_parse(const char *text, struct value_sizes *s, char *error, size_t size);
/* The text in the table's headline: "100-byte values". */
void value_sizes_describe(const struct value_sizes *s, char *out, size_t size);

/* Printable bytes. The share `compressible` (0..1) of each 64 bytes is one repeated letter. */
void values_text(char *to, uint32_t bytes, double compressible, struct random_stream *random);
/* The caller sets v->sizes. `compressible`: share 0..1 of the bytes that are one letter. Returns -ENOMEM on
 * failure. */
int values_prepare(struct values *v, double compressible, uint64_t seed);
void values_free(struct values *v);

/* The seed of the value that belongs to a key. */
static inline uint64_t value_seed_of_key(uint64_t key)
{
	struct random_stream r = {key};

	return random_next(&r);
}

/* The size that a seed determines. */
uint32_t value_size(const struct values *v, uint64_t seed);
/* Writes bytes from .. from+count-1 of the value of `seed`. */
void value_copy(const struct values *v, uint64_t seed, uint32_t from, char *to, uint32_t count);
/* The offset in the value of the first of `count` bytes that is wrong, or -1. */
int64_t value_check(const struct values *v, uint64_t seed, uint32_t from, const char *bytes, uint32_t count);

/* Turns a key's number into its name: a prefix and the number with leading zeros, to a length that is fixed
 * or (a range) derived from the number; or YCSB's names. Names are unique. */

/* "key:" and this many digits, as redis-benchmark names keys. */
enum { KEY_DIGITS = 12, KEY_NAME_MAX = 64 << 10 };
#define KEY_SPACE_MAX 1000000000000u

struct key_names {
	char *prefix; /* a pointer, because it may be as long as a name */
	uint32_t prefix_length;
	uint32_t low, high; /* length of a name in bytes; equal: fixed */
	bool ycsb;	    /* "user" and a hash; the fields above are not used */
};

/* `length`: NULL for prefix and 12 digits, "N" or "LOW-HIGH" bytes. `keys`: numbers below it must fit into a
 * fixed length (a range grows to what a number needs). Returns 0, -ENOMEM, or -EINVAL and a sentence. */
int key_names_prepare(struct key_names *k, const char *prefix, const char *length, uint64_t keys, char *error,
		      size_t size);
void key_names_free(struct key_names *k);

static inline bool key_names_fixed(const struct key_names *k)
{
	return !k->ycsb && k->low == k->high;
}

/* The name's length, and the name (without terminating 0). */
uint32_t key_name_length(const struct key_names *k, uint64_t key);
void key_name_write(const struct key_names *k, uint64_t key, char *to, uint32_t length);

/* Eight decimal digits of a number below 10^8 as the bytes of a little-endian word: divided by 10^4, then all
 * halves by 100 and all quarters by 10 at once, by multiplying with reciprocals that are exact in these
 * ranges. */
static inline uint64_t digits_eight(uint32_t value)
{
	uint64_t word = value / 10000 | (uint64_t)(value % 10000) << 32, tops;

	tops = (word * 10486 >> 20) & 0x0000007f0000007f;
	word = tops | (word - 100 * tops) << 16;
	tops = (word * 103 >> 10) & 0x000f000f000f000f;
	word = tops | (word - 10 * tops) << 8;
	return word + 0x3030303030303030;
}

/* The digits of a number in KEY_DIGITS bytes, with leading zeros. */
static inline void digits_write_key(char *to, uint64_t value)
{
	uint64_t high = 0x3030303030303030, low;

	if (__builtin_expect(value >= 100000000, 0)) {
		high = digits_eight((uint32_t)(value / 100000000 % 10000));
		value %= 100000000;
	}
	low = htole64(digits_eight((uint32_t)value));
	high = htole64(high >> 32);
	memcpy(to, &high, 4);
	memcpy(to + 4, &low, 8);
}

/* Decimal digits of `value`, right-aligned in `width` bytes, with leading zeros. */
void digits_write(char *to, uint32_t width, uint64_t value);
uint32_t digits_count(uint64_t value);

/* A table whose rows fill placeholders: CSV, or TSV if the file's name ends with .tsv, with the names of its
 * columns in the first row. A request takes one row, so that its fields belong together. The file is kept in
 * memory once. */

enum { DATA_COLUMNS_MAX = 256 };

struct data_field {
	const char *at;
	uint32_t length;
};

struct data_set {
	char *text;		   /* all fields */
	struct data_field *fields; /* rows times columns, without the first row */
	uint64_t rows;		   /* at least 1 */
	uint32_t columns;
	struct data_field names[DATA_COLUMNS_MAX];
};

/* Reads a file. Returns 0, or -EINVAL or -ENOMEM and a sentence. The caller frees it in both cases. */
int data_set_read(struct data_set *d, const char *path, char *error, size_t size);
void data_set_free(struct data_set *d);

/* The number of a column, or -1. */
int data_set_column(const struct data_set *d, const char *name, size_t length);

static inline const struct data_field *data_set_field(const struct data_set *d, uint64_t row, uint32_t column)
{
	return &d->fields[row * d->columns + column];
}

/* The bytes of a field as the inside of a JSON string: quotes, backslashes and control characters escaped. */
uint32_t data_json_length(const struct data_field *f);
void data_json_write(const struct data_field *f, char *to);

/* YCSB's names of records and lengths of scans: the part that single commands need. Its mixes and its choice
 * of keys are in loadgen/workload.h. */

enum { YCSB_SCAN_MAX = 100, YCSB_NAME_BYTES = 24 };

/* 1 to YCSB_SCAN_MAX records. */
static inline uint32_t ycsb_draw_scan(struct random_stream *r)
{
	return 1 + (uint32_t)random_below(r, YCSB_SCAN_MAX);
}

/* FNV-1a64 of n's eight bytes, lowest byte first; then without its sign, as Java's Math.abs. */
uint64_t ycsb_hash(uint64_t n);

/* Writes record n's key, "user" and its hash in decimal, with a NUL. Returns its length. */
size_t ycsb_key_name(uint64_t n, char name[YCSB_NAME_BYTES]);

/* Java's String.hashCode of an ASCII name: the score of a record in the index that scans use. */
int32_t ycsb_name_hash(const char *name, size_t length);

/* A command with placeholders, as a user writes it. Protocols define its bytes on the wire. A command is a
 * list of words, and a word a list of parts: text, or a placeholder filled with a number drawn per request.
 * If every part has a fixed width, the command is formatted once as a template, and only its placeholders'
 * digits are patched during the load (workload.c). Otherwise it is formatted per request. The same writer
 * does both, so that they can't differ. */

enum part_kind {
	PART_TEXT,
	PART_KEY,	  /* __key__: the name of the request's key */
	PART_OTHER_KEY,	  /* __other_key__: another key, drawn uniformly */
	PART_DATA,	  /* __data__: a value */
	PART_INT,	  /* __int__, __rand_int__: 12 digits of a number below the key space */
	PART_SCORE,	  /* __score__: 0.000000 .. 0.999999 */
	PART_FIELD,	  /* __field__: field0 .. field9, or to --fields N */
	PART_EXPIRY,	  /* __expiry__: seconds from --expiry */
	PART_INDEX_SCORE, /* YCSB's score of the key */
	PART_SCAN_LENGTH, /* YCSB: 1 .. 100 */
	PART_STAMP,	  /* a message that contains its sending time (stamp.h); no placeholder produces it */
	PART_CAPTURED,	  /* a key from a previous answer: YCSB's scans */
	PART_KEY_NUMBER,  /* __key_number__: 12 digits of the number of the request's key */
	PART_TAG,	  /* __tag__: 5 digits derived from it, for keys that should share a cluster's slot */
	PART_RANGE,	  /* __int:LOW:HIGH__: a whole number, both ends included */
	PART_DECIMAL,	  /* __float:LOW:HIGH__: with six decimals */
	PART_VECTOR,	  /* __vector:N__: N 32-bit floats of -1 to 1, in binary, little-endian */
	PART_SAME_KEY,	  /* __key1__ .. __key9__: a key drawn once per request */
	PART_SAME_INT,	  /* __int1__ .. __int9__: 12 digits drawn once per request */
	PART_COLUMN,	  /* __field:NAME__: the field of the request's row in the data set */
	PART_JSON,	  /* __json:NAME__: the same, as the inside of a JSON string */
	PART_CURSOR,	  /* __cursor__: from this connection's last answer to the command, else 0 */
	PART_OPAQUE, /* the request's number on its connection, added by the writer of the meta protocol */
};

struct command_part {
	enum part_kind kind;
	uint32_t length;  /* PART_TEXT */
	char *text;	  /* PART_TEXT; of PART_COLUMN and PART_JSON the column's name */
	double low, high; /* PART_RANGE, PART_DECIMAL: whole numbers up to 2^53 are exact */
	uint32_t number;  /* of the column; PART_VECTOR: floats; PART_SAME_...: which one */
};

struct command_word {
	uint32_t first, count; /* of the command's parts */
};

/* A name's bytes and terminating 0, as truncated by command_name. */
enum { COMMAND_NAME = 24 };
enum { COMMAND_WORDS_MAX = 256, COMMAND_PARTS_MAX = 512, WORD_PARTS_MAX = 64, COMMAND_PATCHES_MAX = 64 };

struct command {
	const struct command_row *row; /* of its first word; NULL: it has none */
	struct command_word *words;
	struct command_part *parts;
	uint32_t word_count, part_count;
	bool once;     /* some numbers are drawn once per request */
	bool cursor;   /* __cursor__ */
	bool inserts;  /* __new_key__: the key is the next one of a growing base */
	bool inlined;  /* Redis' inline form: the words, CRLF */
	bool quiet;    /* memcached's meta commands: misses get no answer */
	bool numbered; /* they get an opaque number that identifies the answer */
};

/* Sources of placeholder values; shared and read-only except `random`. */
struct fill {
	const struct key_names *names;
	const struct values *values;
	uint64_t keys;
	uint32_t fields;
	uint32_t expiry_low, expiry_high; /* seconds; high 0: no expiry */
	bool values_of_keys;		  /* a value's seed is its key's */
	const char *fixed_value;	  /* not NULL: used for every value */
	struct stamps *stamps;		  /* PART_STAMP */
	const struct data_set *data;	  /* PART_COLUMN, PART_JSON; NULL: none */
};

/* Position of a placeholder's digits in a formatted command of fixed width. */
struct patch {
	uint32_t at;
	uint16_t kind, width; /* enum part_kind; digits */
};
struct patches {
	uint32_t count;
	struct patch list[COMMAND_PATCHES_MAX];
};

/* Parses text as a user writes it: words separated by blanks, "quoted words" with the escapes \n \r \t \xHH
 * \" \\, and 'words' in which only \' is an escape. False, and a sentence in `error`. */
bool command_parse(struct command *c, const char *text, char *error, size_t size);
/* Finds the columns of its placeholders. False, and a sentence: no data set (NULL), or no such column. */
bool command_bind(struct command *c, const struct data_set *data, char *error, size_t size);
void command_free(struct command *c);
/* The first word, in upper case. */
void command_name(const struct command *c, char *out, size_t size);
/* Whether every placeholder has a fixed width for this fill. */
bool command_fixed(const struct command *c, const struct fill *f);

/* PART_TAG: as many tags as a cluster has slots, so that tags are distributed as evenly as keys. */
enum { TAGS = 16384, TAG_DIGITS = 5 };

/* What differs between requests besides drawn numbers. */
struct request_values {
	uint64_t key;
	const char *captured; /* PART_CAPTURED, PART_CURSOR */
	uint32_t captured_length;
	uint32_t opaque;      /* PART_OPAQUE */
	uint64_t intended_ns; /* PART_STAMP; 0: when it is sent */
	uint64_t seed;	      /* of what is drawn once per request */
};

/* Writes a patch's digits again. */
static inline void patch_apply(const struct patch *p, const struct fill *f, const struct request_values *v,
			       struct random_stream *random, char *request)
{
	uint64_t number = v->key;

	if (p->kind != PART_KEY)
		number = p->kind == PART_KEY_NUMBER ? v->key
			 : p->kind == PART_TAG	    ? v->key % TAGS
			 : p->kind == PART_SCORE    ? random_below(random, 1000000)
			 : p->kind == PART_OPAQUE   ? v->opaque
			 : p->kind == PART_FIELD    ? random_below(random, f->fields)
						    : random_below(random, f->keys);
	if (p->width == KEY_DIGITS)
		digits_write_key(request + p->at, number);
	else
		digits_write(request + p->at, p->width, number);
}

/* The values of a command's placeholders in one request: for protocols, which write requests, and for code
 * that needs a request's key without sending it (a cluster's route). */

/* The value of a part in one request: drawn before its length is needed, written after. */
struct drawn {
	uint64_t number;
	uint32_t length;
	char text[32];
};

struct drawn draw_part(const struct command_part *p, const struct fill *f, const struct request_values *v,
		       struct random_stream *random);
/* The space must exist. */
void write_part(const struct command_part *p, const struct drawn *d, const struct fill *f,
		const struct request_values *v, struct bytes *to, struct patches *patches);

void note_patch(struct patches *patches, enum part_kind kind, size_t at, uint32_t width);
/* Draws a word's parts. Returns its length in bytes. */
size_t draw_word(const struct command *c, uint32_t index, const struct fill *f,
		 const struct request_values *v, struct random_stream *random, struct drawn *drawn);
/* Appends what draw_word drew. False: out of memory. */
bool write_drawn(const struct command *c, uint32_t index, const struct drawn *drawn, size_t length,
		 const struct fill *f, const struct request_values *v, struct bytes *to,
		 struct patches *patches);
/* Draws and appends a word whose length is not needed in advance. */
bool write_word(const struct command *c, uint32_t index, const struct fill *f, const struct request_values *v,
		struct random_stream *random, struct bytes *to, struct patches *patches);

/* A scanner of Redis replies (RESP2 and RESP3) for the hot path: finds the end and kind of each reply in the
 * read buffer, without allocation and without storing its bytes. It accepts both protocols at once: RESP3's
 * types differ from RESP2's, so the result of HELLO is not needed. A value that has different types in RESP2
 * and RESP3 has one kind here. A push, which RESP3 may insert between any two replies, has a separate result;
 * attributes, which may precede any element, are skipped. A reply may be split anywhere: the scanner needs a
 * few bytes of state per connection, so no reply has to be gathered first, however large it is.
 * docs/results/speed.md shows why hiredis' reader is not used here; set-up commands use it. */

enum {
	RESP_DEPTH = 7, /* maximum nesting of arrays, maps, sets and attributes, as in hiredis */
	RESP_WORD = 16, /* kept length of an error's first word, with terminating 0 */
	RESP_REST = 80, /* and of the text after it: "3999 127.0.0.1:6381" after MOVED */
};

/* Kinds of replies are the type bytes on the wire. Types without a name here are kinds, too (a boolean, a
 * double). */
enum resp_kind {
	RESP_LINE = '+',
	RESP_ERROR = '-', /* and "!" */
	RESP_INTEGER = ':',
	RESP_STRING = '$', /* and a verbatim one, "=" */
	RESP_ARRAY = '*',  /* and a map, and a set */
	RESP_PUSH = '>',
	RESP_ATTRIBUTE = '|',
	RESP_NIL = 'n', /* "$-1", "*-1" and "_" */
};

struct resp_scanner {
	uint64_t
	    number; /* the length or count being read; then the bulk bytes still to skip, CRLF included */
	uint32_t left[RESP_DEPTH]; /* outstanding elements, per open aggregate */
	uint8_t state;
	uint8_t depth; /* open aggregates: arrays, maps, sets, pushes, attributes */
	uint8_t type;  /* of the element being scanned */
	uint8_t kind;  /* enum resp_kind of the whole reply; valid once resp_scan returned 1 */
	uint8_t digits;
	uint8_t attributes, streamed, pairs; /* a bit per open aggregate: it is one, has no count, is a map */
	bool negative;
	uint8_t word_length;
	uint8_t rest_length;
	char word[RESP_WORD]; /* first word of a top-level error: ERR, WRONGTYPE, ... */
	char rest[RESP_REST]; /* the text after it, as far as it fits */
};

/* A scanner at the beginning of a reply is all zeros, and again after every complete reply, except for kind
 * and word, which stay valid until the next call. */

/* Continues scanning from *at. 1: a reply is complete, *at is after it. 2: a push is, which answers nothing.
 * 0: no more bytes (*at == end). -1: not a reply; *at is at the offending byte. */
int resp_scan(struct resp_scanner *s, const char **at, const char *end);

/* What lines of memcached's text and meta replies have in common: a first word in upper case, then optional
 * text, of which the beginning is kept for errors. For the two scanners, which process bytes as they arrive.
 */

enum {
	MEMCACHED_VALUE_BYTES = 1 << 30, /* maximum size of a value: memcached's own limit, -I 1g */
	MEMCACHED_LINE = 2048,		 /* maximum size of a line without its CRLF */
	MEMCACHED_WORD = 16,		 /* the longest word is CLIENT_ERROR; with terminating 0 */
	MEMCACHED_EXPLANATION = 80,	 /* kept length of an error's text, with terminating 0 */
};

struct memcached_line {
	uint16_t bytes; /* so far */
	uint8_t word_length, explanation_length;
	char word[MEMCACHED_WORD];
	char explanation[MEMCACHED_EXPLANATION]; /* of an error: the beginning of the text after its word */
};

void memcached_line_begin(struct memcached_line *l);
/* A byte of the first word, not a blank or CR. False: not valid in a word. */
bool memcached_line_word(struct memcached_line *l, char byte);
/* Skips text up to the line's CR, and keeps its beginning if wanted. *at is at the CR, the end, or the byte
 * that makes the line too long: false. */
bool memcached_line_text(struct memcached_line *l, const char **at, const char *end, bool keep);
/* An error's line: its word and the beginning of its text. */
void memcached_line_error(const struct memcached_line *l, char *out, size_t size);
/* Whether an error's line says that the server had no memory left for an item. */
bool memcached_line_out_of_memory(const struct memcached_line *l);

/* A scanner of memcached's text replies for the hot path: finds the end and result of each reply in the read
 * buffer, without allocation. It works like that of RESP. A text reply does not name its command, and its end
 * depends on its kind: VALUE and STAT are followed by more lines up to END. The caller knows which kinds a
 * command may get. An error line instead of END also ends a reply: memcached sends it when it runs out of
 * memory between two values. */

enum {
	MEMCACHED_TEXT_KEY = 250, /* maximum size of a key, as in memcached */
};

enum memcached_text_kind {
	MEMCACHED_TEXT_NONE, /* of a scanner that has seen no reply */
	MEMCACHED_TEXT_HIT,  /* values, and END */
	MEMCACHED_TEXT_MISS, /* END alone */
	MEMCACHED_TEXT_STORED,
	MEMCACHED_TEXT_NOT_STORED,
	MEMCACHED_TEXT_EXISTS,
	MEMCACHED_TEXT_NOT_FOUND,
	MEMCACHED_TEXT_DELETED,
	MEMCACHED_TEXT_TOUCHED,
	MEMCACHED_TEXT_OK,
	MEMCACHED_TEXT_NUMBER,
	MEMCACHED_TEXT_VERSION,
	MEMCACHED_TEXT_STATS, /* STAT lines, and END */
	MEMCACHED_TEXT_ERROR,
};

struct memcached_text_scanner {
	uint64_t number; /* NUMBER's value. Within a reply: the number being read, then the bytes to skip */
	uint32_t values; /* number of values of a HIT */
	uint8_t state;
	uint8_t begun; /* HIT or STATS within such a reply, else 0 */
	uint8_t type;  /* the type of the line being scanned */
	uint8_t kind;  /* enum memcached_text_kind; valid once memcached_text_scan returned 1 */
	uint8_t digits;
	struct memcached_line line; /* its word and explanation: of an ERROR */
};

/* A scanner at the beginning of a reply is all zeros, or in the state after memcached_text_scan returned 1.
 * Its results then stay valid until the next call. */

/* Continues scanning from *at. 1: a reply is complete, *at is after it. 0: no more bytes (*at == end).
 * -1: not a reply; *at is at the offending byte. */
int memcached_text_scan(struct memcached_text_scanner *s, const char **at, const char *end);

/* A scanner of replies to memcached's meta commands for the hot path: finds the end and result of each reply
 * in the read buffer, without allocation. It works like that of RESP. A reply is one line, a word of two
 * letters and flags, and after VA a value. Of the flags only O is read: the opaque number of the request,
 * which identifies its answer. The caller knows which kinds a command may get. */

enum {
	MEMCACHED_META_OPAQUE_DIGITS = 18,
};

/* An O flag that isn't a number of up to MEMCACHED_META_OPAQUE_DIGITS digits: not one of ours. */
#define MEMCACHED_META_NO_NUMBER UINT64_MAX

enum memcached_meta_kind {
	MEMCACHED_META_NONE, /* of a scanner that has seen no reply */
	MEMCACHED_META_VALUE,
	MEMCACHED_META_DONE,	   /* HD */
	MEMCACHED_META_MISS,	   /* EN */
	MEMCACHED_META_NOT_FOUND,  /* NF */
	MEMCACHED_META_NOT_STORED, /* NS */
	MEMCACHED_META_EXISTS,	   /* EX */
	MEMCACHED_META_NOOP,	   /* MN */
	MEMCACHED_META_DEBUG,	   /* ME */
	MEMCACHED_META_VERSION,
	MEMCACHED_META_STORED, /* to the "set" that logs in, which is not a meta command */
	MEMCACHED_META_ERROR,
};

struct memcached_meta_scanner {
	uint64_t opaque; /* of the O flag, if there is one */
	uint32_t number; /* within a reply: the length being read, then the bytes to skip */
	uint8_t state;
	uint8_t type; /* the kind of the reply being scanned */
	uint8_t kind; /* enum memcached_meta_kind; valid once memcached_meta_scan returned 1 */
	uint8_t digits;
	bool has_opaque;
	struct memcached_line line; /* its word and explanation: of an ERROR */
};

/* A scanner at the beginning of a reply is all zeros, or in the state after memcached_meta_scan returned 1.
 * Its results then stay valid until the next call. */

/* Continues scanning from *at. 1: a reply is complete, *at is after it. 0: no more bytes (*at == end).
 * -1: not a reply; *at is at the offending byte. */
int memcached_meta_scan(struct memcached_meta_scanner *s, const char **at, const char *end);

/* A scanner of memcached's binary replies for the hot path: finds the end and status of each reply in the
 * read buffer, without allocation. It works like that of RESP. Every reply is a header of 24 bytes, numbers
 * in network order, and a body of the length given there. Each header counts as one reply: the caller handles
 * the several replies to a "stat" and their end. */

enum {
	MEMCACHED_BINARY_HEADER = 24,
	MEMCACHED_BINARY_BODY = 1 << 30, /* largest body; memcached's largest value is just below 1 GiB */
};

enum memcached_binary_kind {
	MEMCACHED_BINARY_NONE, /* of a scanner that has seen no reply */
	MEMCACHED_BINARY_OK,
	MEMCACHED_BINARY_MISS,	 /* no such key */
	MEMCACHED_BINARY_EXISTS, /* it exists, or has changed since it was read for cas */
	MEMCACHED_BINARY_NOT_STORED,
	MEMCACHED_BINARY_OUT_OF_MEMORY,
	MEMCACHED_BINARY_UNKNOWN_COMMAND,
	MEMCACHED_BINARY_ERROR, /* any other status */
};

struct memcached_binary_scanner {
	uint32_t left;	 /* bytes of the body to skip */
	uint32_t opaque; /* as in the request: network order, for senders that use that order */
	uint16_t status;
	uint8_t opcode;
	uint8_t kind; /* enum memcached_binary_kind; valid once memcached_binary_scan returned 1 */
	uint8_t have; /* bytes of a split header; all of them while the body is skipped */
	uint8_t header[MEMCACHED_BINARY_HEADER];
};

/* A scanner at the beginning of a reply is all zeros, or in the state after memcached_binary_scan returned 1.
 * Opcode, status, opaque and kind then stay valid until the next call. */

/* Continues scanning from *at. 1: a reply is complete, *at is after it. 0: no more bytes (*at == end).
 * -1: not a reply; *at is at the offending byte. */
int memcached_binary_scan(struct memcached_binary_scanner *s, const char **at, const char *end);

/* The name of a status: "KEY_NOT_FOUND"; "UNKNOWN_STATUS" if memcached has none of this number. */
const char *memcached_binary_status_name(uint16_t status);

/* Everything that depends on the protocol, as a table: one `struct protocol` per protocol, one `struct
 * product` per kind of server. Code uses the table and does not check which protocol it is. To add a
 * protocol, write its requests and answers, give it a row in protocols.c, and write a test.
 * Two things are elsewhere: its scanner is a member of `union reply_scanner`, because its state is
 * in each connection; and the set-up of a connection, which needs links, options and time-outs that this
 * module does not know, is a row of loadgen/server/server_setup.c. A new kind of product also has tests of -t
 * (loadgen/options/catalogue.c) and something to observe (observer/), or none. The hot path uses the table
 * for memcached's protocols only; Redis is recognized by its number. */

/* Places in the table; all zeros is Redis. */
enum protocol_id { PROTOCOL_REDIS, PROTOCOL_MEMCACHE_TEXT, PROTOCOL_MEMCACHE_BINARY, PROTOCOL_MEMCACHE_META };
enum { PROTOCOLS = PROTOCOL_MEMCACHE_META + 1 };

/* The expected answer to a command. */
struct expected {
	uint8_t kind;	/* enum reply_kind that means success */
	uint8_t miss;	/* enum reply_kind that means a miss; REPLY_ANY: none does */
	uint8_t opcode; /* of REPLY_OPCODE */
};

/* A kind of server, with any protocol. */
struct product {
	const char *name;     /* written as "Redis" */
	const char *program;  /* the program that should run at the address */
	uint16_t port;	      /* unless another one is given */
	uint32_t longest_key; /* bytes; 0: longer than any of ours */
	const char *expiry;   /* what precedes a SET's expiry, with a leading blank */
	bool reads;	 /* the table of commands has those that change nothing; else the server knows them */
	bool databases;	 /* numbered databases */
	bool records;	 /* hashes and sorted sets, which YCSB's layout needs */
	bool replicas;	 /* with clusters, Sentinels and WAIT */
	bool recordings; /* of its commands, which can be replayed */
	bool messages;	 /* pub/sub, lists and streams that consumers can wait for */
};

union reply_scanner;

struct protocol {
	const char *name; /* the name for --protocol and in recordings */
	const struct product *product;
	const char *ping; /* the cheapest command for the server */
	bool resp3;	  /* RESP3 is available, and keys can be tracked */
	bool quiet;	  /* misses can get no answer */
	bool numbers;	  /* requests contain a number that the answer repeats */
	bool redirects;	  /* errors may redirect to another server or ask to retry later */

	/* ---- requests ---- */
	/* Whether the command exists; else false, and a sentence. */
	bool (*fits)(const struct command *c, char *error, size_t size);
	void (*expect)(const struct command *c, struct expected *e);
	/* Further checks of a command before the load; `quiet`: as requested. NULL: none. False, and a
	 * sentence. */
	bool (*settle)(struct command *c, bool quiet, const char *text, char *error, size_t size);
	/* Appends one request. `patches`: NULL, or receives the positions of placeholders. False: out of
	 * memory. */
	bool (*write)(const struct command *c, const struct fill *f, const struct request_values *v,
		      struct random_stream *random, struct bytes *to, struct patches *patches);
	/* Appends the login of a new connection, as its first bytes. False: out of memory. */
	bool (*login)(const char *user, const char *password, struct bytes *to);

	/* ---- answers, whose end `s` has just found ---- */
	/* Like resp_scan: 1 complete, 0 no more bytes, -1 not a reply. */
	int (*scan)(union reply_scanner *s, const char **at, const char *end);
	/* The FT_STATUS_* of the scanned reply. For an error *word is its class, otherwise unchanged. */
	unsigned (*status)(const union reply_scanner *s, const struct expected *e, const char **word);
	/* The text of an error, as the server sent it, or its beginning and "..."; "" if it is not kept. */
	void (*error_text)(const union reply_scanner *s, char *out, size_t size);
	/* Whether a connection's greeting, such as a login, succeeded. */
	bool (*accepted)(const union reply_scanner *s);
	/* Whether another command was refused because a login is required. NULL: the protocol does not show
	 * this. */
	bool (*wants_login)(const union reply_scanner *s);
	/* The position of the value in the `length` bytes of a reply of one value. False: no value, or
	 * truncated. */
	bool (*find_value)(const char *reply, size_t length, size_t *at, size_t *bytes);
};

extern const struct product redis_product, memcached_product;

/* The table, by enum protocol_id (protocols.c). */
extern const struct protocol *const protocols[PROTOCOLS];

static inline const struct protocol *protocol_of(enum protocol_id id)
{
	return protocols[id];
}

/* The default protocol of a kind of server: its first one in the table. */
enum protocol_id product_protocol(const struct product *p);

/* Whether a proxy routes the command by its second word. */
bool product_one_key(const struct product *p, const struct command *c);

/* Answers on the hot path, for every protocol: the end of a reply, and the result of its request. Code for
 * Redis is inlined, because at a million answers per second a call is measurable; other protocols use the
 * table. */

/* Of a connection; all zeros at rest. */
union reply_scanner {
	struct resp_scanner resp;
	struct memcached_text_scanner text;
	struct memcached_binary_scanner binary;
	struct memcached_meta_scanner meta;
};

/* The decimal number at `p` that ends before `end`. A number that is far too large for a length is
 * truncated. */
static inline size_t reply_number(const char *p, const char *end)
{
	size_t n = 0;

	while (p < end && *p >= '0' && *p <= '9' && n < SIZE_MAX / 100)
		n = n * 10 + (size_t)(*p++ - '0');
	return n;
}

/* Like resp_scan: 1 complete, 0 no more bytes, -1 not a reply. */
static inline int reply_scan(enum protocol_id protocol, union reply_scanner *s, const char **at,
			     const char *end)
{
	if (__builtin_expect(protocol == PROTOCOL_REDIS, 1))
		return resp_scan(&s->resp, at, end);
	return protocol_of(protocol)->scan(s, at, end);
}

/* The FT_STATUS_* of a complete Redis reply. */
static inline unsigned reply_status_redis(const union reply_scanner *s, const struct expected *e,
					  const char **word)
{
	uint8_t kind = s->resp.kind;

	if (kind == e->kind)
		return FT_STATUS_OK;
	if (kind == RESP_ERROR) {
		*word = s->resp.word;
		return FT_STATUS_ERROR_REPLY;
	}
	if (e->kind == REPLY_ANY)
		return kind == RESP_NIL ? FT_STATUS_MISS : FT_STATUS_OK;
	return e->miss && kind == e->miss ? FT_STATUS_MISS : FT_STATUS_WRONG;
}

/* The FT_STATUS_* of a complete reply. For an error reply *word is its class: the first word, or "OOM" if a
 * server uses several words for it. */
static inline unsigned reply_status(enum protocol_id protocol, const union reply_scanner *s,
				    const struct expected *e, const char **word)
{
	if (__builtin_expect(protocol != PROTOCOL_REDIS, 0))
		return protocol_of(protocol)->status(s, e, word);
	return reply_status_redis(s, e, word);
}

/* What memcached's protocols have in common: the product, the table of commands, and the login of the line
 * protocols. For the three protocol files. */

/* Whether a command is one of the protocol's, with a valid number of words. False, and a sentence. */
bool memcached_fits(enum protocol_id protocol, const struct command *c, char *error, size_t size);

/* For the text protocol and the meta commands: a `set` whose value is "user password" and whose key and flags
 * have no meaning, as the first command of a connection (memcached's -Y). */
bool memcached_line_login(const char *user, const char *password, struct bytes *to);

/* For both line protocols: the meaning of a kind of reply. */
struct memcached_meaning {
	uint8_t status; /* FT_STATUS_* */
	uint8_t
	    answers[5]; /* enum reply_kind that a command may expect; REPLY_ANY alone: always this status */
};

/* The status of a reply with this meaning to a command that expects `e`. For an error *word is its class. */
unsigned memcached_line_status(const struct memcached_meaning *m, const struct memcached_line *line,
			       const struct expected *e, const char **word);
/* Whether the line of an error says that a login is required. */
bool memcached_line_unauthenticated(const struct memcached_line *line);

/* For both line protocols: the value after a line that has its length after `blanks` blanks. As in struct
 * protocol. */
bool memcached_find_value(const char *reply, size_t length, int blanks, size_t *at, size_t *bytes);

/* The rows of the table, each in a separate file; for protocols.c, which collects them. */

extern const struct protocol protocol_redis;	       /* resp.c */
extern const struct protocol protocol_memcache_text;   /* memcached_text.c */
extern const struct protocol protocol_memcache_binary; /* memcached_binary.c */
extern const struct protocol protocol_memcache_meta;   /* memcached_meta.c */

#ifdef __cplusplus
}
#endif
#endif
