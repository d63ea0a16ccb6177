/* SPDX-License-Identifier: MIT */
/* Stand-in for the set-up link: questions to a server on a connection of its own. */
#ifndef FORKTAIL_LOADGEN_LINK_H
#define FORKTAIL_LOADGEN_LINK_H
#include <hiredis/hiredis.h>
#include "connect.h"
struct link;
struct link *server_enter(struct server *s, uint32_t number, char *error, size_t size);
redisReply *link_ask(struct link *l, int count, const char *const *words);
const char *link_error(const struct link *l);
void link_free(struct link *l);
#endif
