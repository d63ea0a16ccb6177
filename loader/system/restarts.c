/* SPDX-License-Identifier: MIT */
/* See restarts.h. */
#include "loader/system/restarts.h"

#define SECOND_NS 1000000000ull
enum { LONGEST_S = 60, QUIET_S = 300, FAILED_S = 5 };

void restarts_ended(struct restarts *r, uint64_t now_ns)
{
	if (r->ended_ns + QUIET_S * SECOND_NS < now_ns)
		r->wait_s = 0;
	r->ended_ns = now_ns;
	r->due_ns = now_ns + r->wait_s * SECOND_NS;
	r->wait_s = !r->wait_s ? 1 : 2 * r->wait_s < LONGEST_S ? 2 * r->wait_s : LONGEST_S;
}

void restarts_failed(struct restarts *r, uint64_t now_ns)
{
	r->due_ns = now_ns + FAILED_S * SECOND_NS;
}

bool restarts_due(const struct restarts *r, uint64_t now_ns)
{
	return now_ns >= r->due_ns;
}
