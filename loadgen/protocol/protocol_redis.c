/* SPDX-License-Identifier: MIT */
/* Redis: the format of commands and their answers. Commands are sent as written; the server knows whether
 * they exist. RESP3 shares a scanner with RESP2 (resp.h), so it is not a separate protocol here. */
#include <stdio.h>
#include <string.h>

#include "loadgen/command/draw.h"
#include "protocol_rows.h"
#include "reply.h"

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
	static const struct {
		const char *name;
		uint8_t kind, miss;
	} replies[] = {
	    {"GET", REPLY_VALUE, REPLY_NIL},  {"SET", REPLY_LINE, 0},
	    {"INCR", REPLY_INTEGER, 0},	      {"LPUSH", REPLY_INTEGER, 0},
	    {"RPUSH", REPLY_INTEGER, 0},      {"LPOP", REPLY_VALUE, REPLY_NIL},
	    {"RPOP", REPLY_VALUE, REPLY_NIL}, {"SADD", REPLY_INTEGER, 0},
	    {"HSET", REPLY_INTEGER, 0},	      {"SPOP", REPLY_VALUE, REPLY_NIL},
	    {"ZADD", REPLY_INTEGER, 0},	      {"MSET", REPLY_LINE, 0},
	    {"XADD", REPLY_VALUE, 0},	      {"HGET", REPLY_VALUE, REPLY_NIL},
	    {"SMEMBERS", REPLY_LIST, 0},      {"ZPOPMIN", REPLY_LIST, 0},
	    {"LRANGE", REPLY_LIST, 0},	      {"HGETALL", REPLY_LIST, 0},
	    {"HMSET", REPLY_LINE, 0},	      {"PING", REPLY_LINE, 0},
	    {"ZRANGEBYSCORE", REPLY_LIST, 0},
	};
	char name[COMMAND_NAME];

	command_name(c, name, sizeof(name));
	for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++)
		if (strcmp(replies[i].name, name) == 0)
			*e = (struct expected){.kind = replies[i].kind, .miss = replies[i].miss};
	/* LPOP key count, SPOP key count: arrays. SET key value NX, ... GET; ZADD key INCR: other replies, or
	 * none */
	if ((c->word_count > 2 && strstr(name, "POP")) || (strcmp(name, "SET") == 0 && c->word_count > 3) ||
	    (strcmp(name, "ZADD") == 0 && c->word_count > 4) ||
	    (strcmp(name, "XADD") == 0 && c->word_count > 5))
		*e = (struct expected){0};
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

static const struct key_rule key_rules[] = {
    {"PING", 0}, {"AUTH", 0},	{"SELECT", 0}, {"ECHO", 0}, {"EVAL", 0},   {"EVALSHA", 0}, {"MGET", 2},
    {"DEL", 2},	 {"UNLINK", 2}, {"EXISTS", 2}, {"MSET", 3}, {"MSETNX", 3}, {"TOUCH", 2},   {NULL, 0},
};

const struct product redis_product = {
    .name = "Redis",
    .program = "redis-server",
    .port = 6379,
    .expiry = " EX",
    .key_rules = key_rules,
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
