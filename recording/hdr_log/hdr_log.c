/* SPDX-License-Identifier: MIT */
/* The V2 encoding of HdrHistogram (Gil Tene), readable by its Java, C and Python readers: counts up to the
 * highest value as zigzag LEB128, a run of n > 1 zeros as -n, after a header of 40 bytes, all deflated and in
 * base64. All integers are big-endian. struct ft_histogram has HdrHistogram's slots for lowest value 1,
 * highest 2^42-1 and three significant digits (2048 sub-buckets, 32 buckets), so its counts are written
 * directly, and a reader's percentiles equal ours to the last digit. All memory is allocated when the log is
 * opened, so that writing a line during a run cannot fail for lack of memory. */
#include "recording/hdr_log.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "common/text.h"

#define HIGHEST_VALUE ((1ull << (FT_HIST_SUB_BITS + FT_HIST_BUCKETS - 1)) - 1)

enum {
	COOKIE_PLAIN = 0x1c849303,
	COOKIE_DEFLATED = 0x1c849304,
	WORD_SIZE = 0x10, /* or-ed into both: counts are LEB128 of up to 64 bits */
	SIGNIFICANT_DIGITS = 3,
	HEADER = 40,
	WRAPPER = 8, /* cookie and length before the deflated bytes */
	LONGEST = 9, /* bytes of one LEB128 count: the ninth holds eight bits */
	LEVEL = 6,   /* of deflate; a line takes well below a millisecond */
	PLAIN_LIMIT = HEADER + LONGEST * FT_HIST_SLOTS,
};

_Static_assert(FT_HIST_SUB_BITS == 11, "2048 sub-buckets are HdrHistogram's for three significant digits");

struct hdr_log {
	FILE *file;
	uint64_t start_ns;
	int error;
	unsigned char *deflated; /* WRAPPER bytes, then space for the deflated form of PLAIN_LIMIT bytes */
	size_t deflated_limit;
	char *text; /* base64 of all that */
	unsigned char plain[PLAIN_LIMIT];
};

static unsigned char *put_big_endian(unsigned char *to, uint64_t value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--, value >>= 8)
		to[i] = (unsigned char)value;
	return to + bytes;
}

static unsigned char *put_zigzag(unsigned char *to, int64_t value)
{
	uint64_t v = (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);

	for (int i = 0; i < LONGEST - 1; i++) {
		if (v < 0x80) {
			*to++ = (unsigned char)v;
			return to;
		}
		*to++ = (unsigned char)(v | 0x80);
		v >>= 7;
	}
	*to++ = (unsigned char)v;
	return to;
}

/* Writes the undeflated payload to log->plain. Returns its size. */
static size_t encode(struct hdr_log *log, const struct ft_histogram *h)
{
	const double conversion_ratio = 1.0;
	unsigned char *at = log->plain + HEADER;
	unsigned slots = FT_HIST_SLOTS;
	uint64_t ratio_bits;

	while (slots > 0 && h->slots[slots - 1] == 0)
		slots--;
	for (unsigned i = 0; i < slots; i++) {
		unsigned zeros = 0;

		while (h->slots[i + zeros] == 0) /* ends: the last slot is not 0 */
			zeros++;
		if (zeros > 1) {
			at = put_zigzag(at, -(int64_t)zeros);
			i += zeros - 1;
		} else {
			at = put_zigzag(at, (int64_t)h->slots[i]);
		}
	}
	size_t size = (size_t)(at - log->plain);

	memcpy(&ratio_bits, &conversion_ratio, sizeof(ratio_bits));
	at = put_big_endian(log->plain, COOKIE_PLAIN | WORD_SIZE, 4);
	at = put_big_endian(at, size - HEADER, 4);
	at = put_big_endian(at, 0, 4); /* normalizing index offset */
	at = put_big_endian(at, SIGNIFICANT_DIGITS, 4);
	at = put_big_endian(at, 1, 8);
	at = put_big_endian(at, HIGHEST_VALUE, 8);
	put_big_endian(at, ratio_bits, 8);
	return size;
}

/* The first error is stored. */
static int keep(struct hdr_log *log, bool failed)
{
	if (failed && !log->error)
		log->error = errno ? -errno : -EIO;
	return log->error;
}

static int write_header(struct hdr_log *log, uint64_t start_realtime_ns)
{
	time_t seconds = (time_t)(start_realtime_ns / 1000000000u);
	unsigned milliseconds = (unsigned)(start_realtime_ns / 1000000u % 1000u);
	struct tm utc;
	char date[64] = "";

	if (gmtime_r(&seconds, &utc))
		strftime(date, sizeof(date), "%a %b %d %H:%M:%S UTC %Y", &utc);
	errno = 0;
	fprintf(log->file,
		"#[Histogram log format version 1.3]\n"
		"#[StartTime: %lld.%03u (seconds since epoch), %s]\n"
		"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
		(long long)seconds, milliseconds, date);
	return keep(log, fflush(log->file) != 0 || ferror(log->file));
}

static void free_log(struct hdr_log *log)
{
	free(log->deflated);
	free(log->text);
	free(log);
}

int hdr_log_open(struct hdr_log **out, const char *path, uint64_t start_realtime_ns, uint64_t start_ns)
{
	struct hdr_log *log = calloc(1, sizeof(*log));
	int rc = -ENOMEM;

	*out = NULL;
	if (!log)
		return rc;
	log->start_ns = start_ns;
	log->deflated_limit = compressBound(PLAIN_LIMIT);
	log->deflated = malloc(WRAPPER + log->deflated_limit);
	log->text = malloc((WRAPPER + log->deflated_limit + 2) / 3 * 4 + 1);
	if (!log->deflated || !log->text) {
		free_log(log);
		return rc;
	}
	log->file = output_fopen(path);
	if (!log->file) {
		rc = -errno;
		free_log(log);
		return rc;
	}
	rc = write_header(log, start_realtime_ns);
	if (rc) {
		hdr_log_close(log);
		return rc;
	}
	*out = log;
	return 0;
}

static bool is_tag(const char *tag)
{
	for (; *tag; tag++)
		if (*tag == ',' || (unsigned char)*tag <= ' ' || *tag == 0x7f)
			return false;
	return true;
}

int hdr_log_write(struct hdr_log *log, const char *tag, uint64_t start_ns, uint64_t length_ns,
		  const struct ft_histogram *h)
{
	bool tagged = tag && *tag;
	uLongf deflated = log->deflated_limit;
	size_t plain;

	if (log->error)
		return log->error;
	if ((tagged && !is_tag(tag)) || start_ns < log->start_ns)
		return -EINVAL;
	plain = encode(log, h);
	if (compress2(log->deflated + WRAPPER, &deflated, log->plain, plain, LEVEL) != Z_OK)
		return -ENOMEM; /* the sizes exclude all other errors */
	put_big_endian(log->deflated, COOKIE_DEFLATED | WORD_SIZE, 4);
	put_big_endian(log->deflated + 4, deflated, 4);
	EVP_EncodeBlock((unsigned char *)log->text, log->deflated, (int)(WRAPPER + deflated));
	errno = 0;
	fprintf(log->file, "%s%s%s%.3f,%.3f,%.3f,%s\n", tagged ? "Tag=" : "", tagged ? tag : "",
		tagged ? "," : "", (double)(start_ns - log->start_ns) / 1e9, (double)length_ns / 1e9,
		(double)h->max_ns / 1e6, log->text);
	return keep(log, fflush(log->file) != 0 || ferror(log->file));
}

int hdr_log_close(struct hdr_log *log)
{
	int rc;

	if (!log)
		return 0;
	errno = 0;
	rc = keep(log, fclose(log->file) != 0);
	free_log(log);
	return rc;
}
