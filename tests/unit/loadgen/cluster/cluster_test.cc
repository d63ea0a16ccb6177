// SPDX-License-Identifier: MIT
// Routing without a server: which server a key belongs to, and what an outage is. System tests compare slots
// and the ring with a real cluster and a real proxy.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "loadgen/cluster.h"
#include "tests/support/catch.h"

namespace
{

uint16_t slot(const std::string &key)
{
	return cluster_slot(key.data(), key.size());
}

// Slots 0..99 are the first node's, 100..199 the second's.
void begin(outages *o, uint16_t node, uint64_t last_ok_ns, uint64_t now_ns)
{
	if (!outages_begin(o, node, last_ok_ns, now_ns))
		return;
	for (uint32_t i = 0; i < 100; i++)
		outages_mark(o, node * 100u + i);
}

} // namespace

TEST_CASE("CRC16 and slots match the cluster specification")
{
	CHECK(crc16("123456789", 9) == 0x31C3);
	CHECK(crc16("", 0) == 0);
	CHECK(slot("foo") == 12182);
	CHECK(slot("somekey") == 11058);
	CHECK(slot("") == 0);
}

TEST_CASE("a non-empty hash tag decides the slot")
{
	CHECK(slot("{user1000}.following") == slot("{user1000}.followers"));
	CHECK(slot("{user1000}.following") == slot("user1000"));
	CHECK(slot("foo{}{bar}") == crc16("foo{}{bar}", 10) % CLUSTER_SLOTS);
	CHECK(slot("foo{{bar}}zap") == slot("{bar"));
	CHECK(slot("foo{bar}{zap}") == slot("bar"));
	CHECK(slot("foo{bar") == crc16("foo{bar", 7) % CLUSTER_SLOTS);
	CHECK(slot("foo}bar{") == crc16("foo}bar{", 8) % CLUSTER_SLOTS);
	const std::string zero("a\0{b}", 5);
	CHECK(slot(zero) == slot("b"));
}

TEST_CASE("a ring: all servers, evenly, and few keys move when one is added")
{
	const char *names[] = {"10.0.0.1", "10.0.0.2:11212", "/run/a.sock", "10.0.0.4:6379"};
	ketama three = {}, four = {};
	REQUIRE(ketama_init(&three, names, 3) == 0);
	REQUIRE(ketama_init(&four, names, 4) == 0);
	CHECK(three.count == 480);
	int counts[4] = {}, moved = 0;
	for (int i = 0; i < 40000; i++) {
		const std::string key = "key:" + std::to_string(i);
		const uint32_t a = ketama_server(&three, key.data(), key.size());
		const uint32_t b = ketama_server(&four, key.data(), key.size());
		REQUIRE(b < 4);
		counts[b]++;
		moved += a != b;
		CHECK((a == b || b == 3)); // a key only moves to the new server
	}
	for (int n : counts)
		CHECK(n > 40000 / 4 / 2);
	CHECK(moved == counts[3]);
	ketama_free(&three);
	ketama_free(&four);
}

TEST_CASE("an outage begins once, ends with the first answer for its slots, and counts waiting requests")
{
	const auto o = std::make_unique<outages>();
	CHECK_FALSE(outages_concern(o.get(), 1));
	begin(o.get(), 1, 900, 1000);
	begin(o.get(), 1, 950, 1100); // the second broken connection
	REQUIRE(o->count == 1);
	CHECK(o->open == 1);
	CHECK(outages_is_open(o.get(), 1));
	CHECK_FALSE(outages_is_open(o.get(), 0));
	CHECK(outages_concern(o.get(), 5000));
	outages_note_answer(o.get(), 50, 0, 1200, 1300); // another node's key
	CHECK(o->list[0].first_ok_ns == 0);
	outages_note_failure(o.get(), 150);
	outages_note_failure(o.get(), 50);
	outages_note_answer(o.get(), 150, 2, 1200, 3000);
	CHECK(o->list[0].first_ok_ns == 3000);
	CHECK(o->list[0].after == 2);
	CHECK(o->list[0].last_ok_ns == 900);
	CHECK(o->open == 0);
	CHECK_FALSE(outages_is_open(o.get(), 1));
	// One more that was due during it, and one that came later.
	CHECK(outages_concern(o.get(), 1500));
	outages_note_answer(o.get(), 199, 2, 1500, 3100);
	CHECK_FALSE(outages_concern(o.get(), 3200));
	outages_note_answer(o.get(), 150, 2, 3200, 3300);
	CHECK(o->list[0].delayed == 2);
	CHECK(o->list[0].failed == 1);
	CHECK(o->list[0].longest_ns == 1800);
	// The node fails again.
	begin(o.get(), 1, 4000, 4100);
	CHECK(o->count == 2);
}

TEST_CASE("threads that see one outage report one, and threads that see two report two")
{
	const auto a = std::make_unique<outages>(), b = std::make_unique<outages>(),
		   all = std::make_unique<outages>();
	begin(a.get(), 1, 900, 1000);
	outages_note_answer(a.get(), 150, 2, 1100, 3000);
	begin(b.get(), 1, 950, 1010);
	outages_note_answer(b.get(), 160, 3, 1050, 2900);
	outages_note_answer(b.get(), 161, 3, 1060, 2950);
	begin(b.get(), 1, 5000, 5100);
	begin(b.get(), 0, 0, 1020);
	outages_add(all.get(), a.get());
	outages_add(all.get(), b.get());
	REQUIRE(all->count == 3);
	CHECK(all->list[0].noticed_ns == 1000);
	CHECK(all->list[0].last_ok_ns == 950);
	CHECK(all->list[0].first_ok_ns == 2900);
	CHECK(all->list[0].after == 3);
	CHECK(all->list[0].delayed == 3);
	CHECK(all->list[1].first_ok_ns == 0);
	CHECK(all->list[2].node == 0);
	// Two of them delayed no request.
	outages_drop_unfelt(all.get());
	REQUIRE(all->count == 1);
	CHECK(all->list[0].delayed == 3);
}

TEST_CASE("outages beyond the limit are counted")
{
	const auto o = std::make_unique<outages>();
	for (uint64_t i = 1; i <= OUTAGES_MAX + 5; i++) {
		begin(o.get(), 1, 10 * i, 10 * i + 1);
		outages_note_answer(o.get(), 150, 1, 10 * i, 10 * i + 2);
	}
	CHECK(o->count == OUTAGES_MAX);
	CHECK(o->lost == 5);
}
