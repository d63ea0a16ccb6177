/* SPDX-License-Identifier: MIT */
/* The binary protocol has SASL, of which PLAIN is what every server has that takes passwords at all. The text
 * protocol and the meta commands log in with the first "set" of a connection, whose value is "user password"
 * and whose key and flags say nothing. */
#include "memcached_login.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

enum { SASL_AUTH = 0x21, AUTHENTICATION_ERROR = 0x20 };

static const char mechanism[] = "PLAIN";

static bool binary_request(const char *user, const char *password, struct bytes *to)
{
	size_t user_length = strlen(user), password_length = strlen(password);
	size_t key_length = sizeof(mechanism) - 1, value_length = user_length + password_length + 2;
	char header[MEMCACHED_BINARY_HEADER] = {(char)0x80, SASL_AUTH};
	uint16_t key = htobe16((uint16_t)key_length);
	uint32_t body = htobe32((uint32_t)(key_length + value_length));

	memcpy(header + 2, &key, sizeof(key));
	memcpy(header + 8, &body, sizeof(body));
	if (!bytes_reserve(to, sizeof(header) + key_length + value_length))
		return false;
	bytes_add(to, header, sizeof(header));
	bytes_add(to, mechanism, key_length);
	bytes_add(to, "", 1); /* whom to act for: the user */
	bytes_add(to, user, user_length + 1);
	bytes_add(to, password, password_length);
	return true;
}

bool memcached_login_request(enum protocol protocol, const char *user, const char *password, struct bytes *to)
{
	size_t length = strlen(user) + 1 + strlen(password);
	char head[64];

	if (protocol == PROTOCOL_MEMCACHE_BINARY)
		return binary_request(user, password, to);
	snprintf(head, sizeof(head), "set forktail 0 0 %zu\r\n", length);
	if (!bytes_reserve(to, strlen(head) + length + 2))
		return false;
	bytes_add(to, head, strlen(head));
	bytes_add(to, user, strlen(user));
	bytes_add(to, " ", 1);
	bytes_add(to, password, strlen(password));
	bytes_add(to, "\r\n", 2);
	return true;
}

bool memcached_login_accepted(enum protocol protocol, const union reply_scanner *s)
{
	if (protocol == PROTOCOL_MEMCACHE_BINARY)
		return s->binary.opcode == SASL_AUTH && s->binary.status == 0;
	return protocol == PROTOCOL_MEMCACHE_TEXT ? s->text.kind == MEMCACHED_TEXT_STORED
						  : s->meta.kind == MEMCACHED_META_STORED;
}

bool memcached_login_wanted(enum protocol protocol, const union reply_scanner *s)
{
	if (protocol == PROTOCOL_MEMCACHE_BINARY)
		return s->binary.status == AUTHENTICATION_ERROR;
	return protocol == PROTOCOL_MEMCACHE_TEXT
		   ? s->text.kind == MEMCACHED_TEXT_ERROR &&
			 strcmp(s->text.line.explanation, "unauthenticated") == 0
		   : s->meta.kind == MEMCACHED_META_ERROR &&
			 strcmp(s->meta.line.explanation, "unauthenticated") == 0;
}
