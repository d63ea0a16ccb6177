/* SPDX-License-Identifier: MIT */
/* The protocols differ in their first byte: RESP has a sign, memcached's text and meta protocols a letter or
 * digit, its binary protocol 0x81. Anything else (TLS, a message without a request) is unknown. */
#include "loader/requests/outcome.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "recording/format.h"

struct beginning {
	const char *text;
	uint8_t status;
};

/* The first match counts. RESP's push and attribute types precede an answer, or are none. */
static const struct beginning beginnings[] = {
    {"-", FT_STATUS_ERROR_REPLY},
    {"!", FT_STATUS_ERROR_REPLY},
    {"$-1\r", FT_STATUS_MISS},
    {"*-1\r", FT_STATUS_MISS},
    {"_\r", FT_STATUS_MISS},
    {"ERROR", FT_STATUS_ERROR_REPLY},
    {"CLIENT_E", FT_STATUS_ERROR_REPLY},
    {"SERVER_E", FT_STATUS_ERROR_REPLY},
    {"END\r", FT_STATUS_MISS},
    {"NOT_FOUN", FT_STATUS_MISS},
    {"EN\r", FT_STATUS_MISS},
    {"NF", FT_STATUS_MISS},
};

/* Of memcached's binary protocol: bytes 6 and 7 of the header. */
static uint8_t binary_status(const uint8_t *begin)
{
	enum { NO_ERROR = 0, NOT_FOUND = 1, EXISTS = 2, NOT_STORED = 5 };
	switch (begin[6] << 8 | begin[7]) {
	case NO_ERROR:
	case EXISTS: /* as in the text protocol, an answer and no error */
	case NOT_STORED:
		return FT_STATUS_OK;
	case NOT_FOUND:
		return FT_STATUS_MISS;
	default:
		return FT_STATUS_ERROR_REPLY;
	}
}

bool outcome_of(const uint8_t begin[FT_ANSWER_BEGIN], uint8_t *status)
{
	enum { BINARY_RESPONSE = 0x81 };
	*status = FT_STATUS_OK;
	if (begin[0] == BINARY_RESPONSE) {
		*status = binary_status(begin);
		return true;
	}
	if (!begin[0] || (!strchr("-+:$*_,#!=(%~", begin[0]) && !isalnum(begin[0])))
		return false;
	for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
		if (memcmp(begin, beginnings[i].text, strlen(beginnings[i].text)) == 0) {
			*status = beginnings[i].status;
			return true;
		}
	return true;
}
