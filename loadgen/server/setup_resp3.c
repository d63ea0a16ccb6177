/* SPDX-License-Identifier: MIT */
/* HELLO 3 and CLIENT TRACKING, written and read with our own scanner. They are last in the set-up, so that
 * hiredis, which knows RESP2 only, has read all other answers. Answers are read byte by byte: an invalidation
 * may follow the last one directly, and belongs to the load. */
#include "setup_resp3.h"

#include <stdio.h>
#include <string.h>

#include "loadgen/protocol/resp.h"
#include "recording/recording.h"

#define HELLO "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
#define TRACKING "*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n"
#define BROADCAST "*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nBCAST\r\n"

/* Reads the answer to one command. 1: success, 0: an error, -1: none. */
static int ask(struct link *l, const char *command, struct resp_scanner *s)
{
	uint64_t deadline_ns = ft_now_ns() + (l->patience_ns ? l->patience_ns : LINK_ANSWER_NS);
	int complete = 0;
	char byte;

	if (link_send(l, command, strlen(command), deadline_ns))
		return -1;
	while (complete == 0 || complete == 2) {
		const char *at = &byte;

		if (link_receive(l, &byte, 1, deadline_ns) != 1)
			return -1;
		complete = resp_scan(s, &at, &byte + 1);
	}
	return complete < 0 ? -1 : s->kind != RESP_ERROR;
}

int resp3_begin(struct link *l, bool tracking, bool broadcast, char *what, size_t size)
{
	struct resp_scanner s = {0};
	int rc = ask(l, HELLO, &s);

	if (rc == 0)
		snprintf(what, size, "rejected HELLO 3 (%s %s). Redis supports RESP3 from version 6.0",
			 s.word, s.rest);
	else if (rc < 0)
		snprintf(what, size, "did not answer HELLO 3. Redis supports RESP3 from version 6.0");
	if (rc != 1)
		return -1;
	if (!tracking)
		return 0;
	rc = ask(l, broadcast ? BROADCAST : TRACKING, &s);
	if (rc == 0)
		snprintf(what, size, "rejected CLIENT TRACKING: %s %s", s.word, s.rest);
	else if (rc < 0)
		snprintf(what, size, "did not answer CLIENT TRACKING");
	return rc == 1 ? 0 : -1;
}

uint8_t resp3_greeting(bool tracking, bool broadcast, struct bytes *to)
{
	const char *track = !tracking ? "" : broadcast ? BROADCAST : TRACKING;

	if (!bytes_reserve(to, strlen(HELLO) + strlen(track)))
		return 0;
	bytes_add(to, HELLO, strlen(HELLO));
	bytes_add(to, track, strlen(track));
	return tracking ? 2 : 1;
}
