/* SPDX-License-Identifier: MIT */
/* What memcached's protocols have in common. A classic command is written as VERB KEY [DATA or NUMBER]
 * [EXPIRY] in every protocol, so the text and the binary protocol share the list; all have the same product;
 * and the line protocols share the login. For the three protocol files. */
#ifndef FORKTAIL_LOADGEN_PROTOCOL_MEMCACHED_H
#define FORKTAIL_LOADGEN_PROTOCOL_MEMCACHED_H

#include "memcached_line.h"
#include "protocol.h"

enum verb_form { FORM_KEY, FORM_STORE, FORM_NUMBER, FORM_EXPIRY, FORM_BARE };

struct memcached_verb {
	const char *name;
	enum verb_form form;
	uint8_t opcode; /* of the binary protocol: as in memcached's protocol_binary.h */
	uint8_t words_min, words_max;
	bool binary_only;
};

/* NULL: there's no such command. */
const struct memcached_verb *memcached_verb_of(const struct command *c);
/* Whether the command is `v` with a valid number of words. NULL is no command. False, and a sentence. */
bool memcached_verb_fits(const struct command *c, const struct memcached_verb *v, char *error, size_t size);

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

#endif
