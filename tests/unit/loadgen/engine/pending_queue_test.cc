// SPDX-License-Identifier: MIT
// The instants of a request: when it is due and when it is sent.
#include <cstdint>
#include <cstdlib>

#include "loadgen/pending_queue.h"
#include "tests/support/catch.h"

TEST_CASE("a request without a due time is due when it is sent")
{
	pending_request p = {};

	CHECK(!pending_set_sent(&p, 100)); // no later than due
	CHECK(p.intended_ns == 100);
	CHECK(p.start_ns == 100);
}

TEST_CASE("a request that was due earlier is sent late")
{
	pending_request p = {};

	p.intended_ns = 70;
	CHECK(pending_set_sent(&p, 100));
	CHECK(p.intended_ns == 70);
	CHECK(p.start_ns == 100);
}

TEST_CASE("a request that is sent again keeps its first instants")
{
	pending_request p = {};

	pending_set_sent(&p, 100);
	CHECK(!pending_set_sent(&p, 200));
	CHECK(p.intended_ns == 100);
	CHECK(p.start_ns == 100);
}

TEST_CASE("a request that begins to wait is due from then on and not sent")
{
	pending_request p = {};

	CHECK(pending_set_due(&p, 50));
	CHECK(!pending_set_due(&p, 60));
	CHECK(p.intended_ns == 50);
	CHECK(p.start_ns == 0);
	CHECK(pending_set_sent(&p, 100));
	CHECK(p.intended_ns == 50);
}

TEST_CASE("requests without a connection leave in the order in which they came, while the ring grows")
{
	pending_queue w = {};
	pending_request p = {};
	uint64_t next = 0;

	for (uint64_t i = 0; i < 1000; i++) {
		p.intended_ns = i;
		pending_queue_push(&w, &p);
		if (i % 3 == 0) {
			REQUIRE(pending_queue_pop(&w, &p));
			CHECK(p.intended_ns == next++);
		}
	}
	while (pending_queue_pop(&w, &p))
		CHECK(p.intended_ns == next++);
	CHECK(next == 1000);
	CHECK(w.count == 0);
	free(w.ring);
}
