// SPDX-License-Identifier: MIT
// Losses become records: how many events of which kind, and between which two readings.
#include "tests/support/catch.h"
#include "tests/unit/loader/support.h"

#include <cstring>

#include "loader/output.h"

using namespace forktail::test;

TEST_CASE("a counter that has grown makes a record, others do not")
{
	Written written;
	losses l;
	uint64_t drops[FT_DROP_SLOTS] = {};
	losses_begin(&l, 1000);
	losses_dropped(&l, written.writer(), drops, 2000);
	drops[int{FT_DROP_SLOT_SPAN} + FT_FSYNC] = 3;
	drops[int{FT_DROP_SLOT_SPAN} + FT_ITERATION] = 1;
	drops[FT_DROP_SLOT_TALLY] = 5;
	drops[FT_DROP_SLOT_IO_TABLE] = 6;
	losses_dropped(&l, written.writer(), drops, 3000);
	drops[FT_DROP_SLOT_TALLY] = 12;
	drops[FT_DROP_SLOT_UNWIND] = 2;
	losses_dropped(&l, written.writer(), drops, 4000);
	losses_dropped(&l, written.writer(), drops, 5000);
	CHECK(losses_total(&l) == 3 + 1 + 12 + 6 + 2);

	const Recorded r = written.finish();
	const std::vector<ft_drop> wanted = {
	    {2000, 3000, 3, FT_DROP_RING, FT_FSYNC},	  {2000, 3000, 1, FT_DROP_RING, FT_ITERATION},
	    {2000, 3000, 5, FT_DROP_RING, FT_DROP_TALLY}, {2000, 3000, 6, FT_DROP_IO, 0},
	    {3000, 4000, 7, FT_DROP_RING, FT_DROP_TALLY}, {3000, 4000, 2, FT_DROP_UNWIND, 0},
	};
	REQUIRE(r.drops.size() == wanted.size());
	for (size_t i = 0; i < wanted.size(); i++) {
		INFO(i);
		CHECK(memcmp(&r.drops[i], &wanted[i], sizeof(ft_drop)) == 0);
	}
	CHECK(r.dropped() == 24);
}

TEST_CASE("every slot that the kernel programs count is recorded by its source")
{
	Written written;
	losses l;
	uint64_t drops[FT_DROP_SLOTS] = {};
	losses_begin(&l, 1000);
	for (uint32_t i = FT_DROP_SLOT_TALLY; i < FT_DROP_SLOTS; i++)
		drops[i] = 1;
	losses_dropped(&l, written.writer(), drops, 2000);
	const Recorded r = written.finish();
	REQUIRE(r.drops.size() == FT_DROP_SLOTS - FT_DROP_SLOT_TALLY);
	for (size_t i = 0; i < r.drops.size(); i++)
		for (size_t k = i + 1; k < r.drops.size(); k++) {
			INFO(i << " and " << k);
			CHECK((r.drops[i].source != r.drops[k].source ||
			       r.drops[i].detail != r.drops[k].detail));
		}
	for (const ft_drop &d : r.drops)
		CHECK(d.source != 0);
}

TEST_CASE("runs that the kernel skipped are recorded by the program's place in the manifest")
{
	Written written;
	losses l;
	losses_begin(&l, 1000);
	program_cost costs[3] = {
	    {"a", true, 10, 1, 1, 0}, {"b", true, 20, 1, 1, 4}, {"c", true, 30, 1, 1, 0}};
	losses_missed(&l, written.writer(), costs, 3, 2000);
	costs[1].missed = 5;
	costs[2].missed = 9;
	losses_missed(&l, written.writer(), costs, 3, 3000);
	CHECK(losses_total(&l) == 14);
	const Recorded r = written.finish();
	REQUIRE(r.drops.size() == 3);
	CHECK(r.drops[0].detail == 1);
	CHECK(r.drops[0].start_ns == 1000);
	CHECK(r.drops[0].count == 4);
	CHECK(r.drops[1].count == 1);
	CHECK(r.drops[2].detail == 2);
	CHECK(r.drops[2].start_ns == 2000);
	CHECK(r.missed() == 14);
}
