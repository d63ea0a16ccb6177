// SPDX-License-Identifier: MIT
// Lanes by key: transactions are whole and at their EXEC, a sample has whole keys, and the commands of a slot
// are one lane.
#include <map>
#include <memory>
#include <set>
#include <string>

#include "loadgen/cluster.h"
#include "loadgen/replay.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;

namespace
{

struct Release {
	void operator()(replay *r) const { replay_free(r); }
};
using Recording = std::unique_ptr<replay, Release>;

// The second word is the key.
int second_word(void * /*who*/, const replay_word *words, uint32_t count, uint16_t *slot)
{
	if (count > 1)
		*slot = cluster_slot(words[1].at, words[1].length);
	return 0;
}

Recording recording(const std::string &rows)
{
	TempDir dir;
	char error[512] = "";
	const harm_allowed allowed = {};
	replay *r = nullptr;
	write_file(dir.file("csv"), rows);
	const int rc = replay_load(&r, dir.file("csv").c_str(), REPLAY_CSV, &allowed, error, sizeof(error));
	INFO(error);
	REQUIRE(rc == 0);
	REQUIRE(replay_find_slots(r, second_word, nullptr) == 0);
	return Recording(r);
}

uint16_t slot(const std::string &key)
{
	return cluster_slot(key.data(), key.size());
}

// The commands in their order, without RESP's lengths.
std::string text(const replay &r)
{
	std::string all;
	for (uint32_t i = 0; i < r.count; i++) {
		const std::string wire(r.records[i].bytes, r.records[i].length);
		for (size_t at = wire.find("\r\n$"); at != std::string::npos;
		     at = wire.find("\r\n$", at + 1)) {
			const size_t begin = wire.find("\r\n", at + 2) + 2;
			all += (at == wire.find("\r\n$") ? "" : " ") +
			       wire.substr(begin, wire.find("\r\n", begin) - begin);
		}
		all += "|";
	}
	return all;
}

const std::string mixed = "0,a,WATCH,k\n"
			  "1,b,MULTI\n"
			  "2,a,GET,k\n"
			  "3,a,MULTI\n"
			  "4,b,SET,x\n"
			  "5,c,SET,k\n"
			  "6,a,SET,other\n"
			  "7,a,EXEC\n"
			  "8,b,DISCARD\n"
			  "9,c,EXEC\n";

} // namespace

TEST_CASE("transactions: each command has its part and the slot of the first key")
{
	const Recording r = recording(mixed);
	REQUIRE(replay_find_transactions(r.get(), false) == 0);
	CHECK(text(*r) == "WATCH k|MULTI|GET k|MULTI|SET x|SET k|SET other|EXEC|DISCARD|EXEC|");
	const std::vector<int> parts = {REPLAY_WATCH,  REPLAY_MULTI, REPLAY_PLAIN,  REPLAY_MULTI,
					REPLAY_QUEUED, REPLAY_PLAIN, REPLAY_QUEUED, REPLAY_EXEC,
					REPLAY_EXEC,   REPLAY_PLAIN};
	for (uint32_t i = 0; i < r->count; i++) {
		INFO(i);
		CHECK(static_cast<int>(r->records[i].part) == parts[i]);
		CHECK(r->slots[i] == (i == 9			   ? static_cast<uint16_t>(NO_SLOT)
				      : i == 1 || i == 4 || i == 8 ? slot("x")
								   : slot("k")));
	}
}

TEST_CASE("transactions together: at the place and time of EXEC; without an end they are omitted")
{
	const Recording r = recording(mixed + "9,d,MULTI\n9,d,SET,k\n");
	REQUIRE(replay_find_transactions(r.get(), true) == 0);
	CHECK(text(*r) == "GET k|SET k|WATCH k|MULTI|SET other|EXEC|MULTI|SET x|DISCARD|EXEC|");
	CHECK(r->unfinished == 2);
	for (uint32_t i = 0, due[] = {2, 5, 7, 7, 7, 7, 8, 8, 8, 9}; i < r->count; i++)
		CHECK(r->records[i].due_ns == due[i] * 1000000000ull);
}

TEST_CASE("by key, the commands of a slot are one lane, neighbours share it, others are their client's")
{
	const Recording r = recording(mixed);
	REQUIRE(replay_find_transactions(r.get(), true) == 0);
	replay_order_by_key(r.get(), 100);
	for (uint32_t i = 0; i < r->count; i++) {
		INFO(i);
		CHECK(r->records[i].lane ==
		      (r->slots[i] == NO_SLOT ? 2
					      : r->slots[i] * 100u / REPLAY_SLOTS)); // c is the third client
	}
	REQUIRE(replay_share(r.get(), 100) == 0);
	CHECK(r->heads[slot("x") * 100u / REPLAY_SLOTS] == 6);
}

TEST_CASE("a sample has whole keys, whole transactions, every SELECT, and about its share")
{
	std::string rows;
	for (int i = 0; i < 20000; i++) {
		const std::string c = "0,c" + std::to_string(i % 50) + ",", key = std::to_string(i % 4000);
		rows += i % 100 == 0  ? c + "SELECT,1\n"
			: i % 10 == 0 ? c + "MULTI\n" + c + "SET," + key + "\n" + c + "EXEC\n"
			: i % 7 == 0  ? c + "PING\n"
				      : c + "SET," + key + "\n";
	}
	const Recording all = recording(rows);
	std::map<std::string, uint32_t> count;
	std::set<std::string> parts[2];
	for (uint32_t i = 0; i < all->count; i++)
		count[std::string(all->records[i].bytes, all->records[i].length)]++;
	for (const uint64_t seed : {0u, 1u}) {
		const Recording r = recording(rows);
		REQUIRE(replay_find_transactions(r.get(), false) == 0);
		replay_sample(r.get(), 0.25, seed);
		CHECK(r->count + r->outside_sample == all->count);
		std::map<std::string, uint32_t> kept;
		for (uint32_t i = 0; i < r->count; i++)
			kept[std::string(r->records[i].bytes, r->records[i].length)]++;
		uint32_t begun = 0, ended = 0, selects = 0, sets = 0;
		for (const auto &[bytes, n] : kept) {
			const bool set = bytes.find("SET\r\n") != std::string::npos;
			begun += bytes.find("MULTI") != std::string::npos ? n : 0;
			ended += bytes.find("EXEC") != std::string::npos ? n : 0;
			selects += bytes.find("SELECT") != std::string::npos ? n : 0;
			sets += set;
			if (set) {
				CHECK(n == count[bytes]);
				parts[seed].insert(bytes);
			}
		}
		CHECK(begun == ended);
		CHECK(begun > 0);
		CHECK(selects == 200);
		CHECK(sets > 4000 * 0.22);
		CHECK(sets < 4000 * 0.28);
	}
	CHECK(parts[0] != parts[1]);
}

TEST_CASE("the first key of a recorded command")
{
	const Recording r =
	    recording("0,a,GET,first\n1,a,set,second,value\n2,a,PING\n3,a,NO.SUCH,k\n4,a,MGET,x,y\n"
		      "5,a,EVAL,return 1,1,k\n6,a,GET,\n");
	workload w = {};
	replay_fill(r.get(), &w);
	std::vector<std::string> keys;
	for (uint64_t i = 0; i < r->count; i++) {
		size_t length = 99;
		const char *key = w.recorded.key(r.get(), i, &length);
		keys.emplace_back(key, length);
	}
	CHECK(keys == std::vector<std::string>{"first", "second", "", "", "x", "", ""});
	size_t length = 99;
	CHECK(*w.recorded.key(r.get(), REPLAY_DISCARD, &length) == 0);
	CHECK(length == 0);
	bytes to = {};
	bool whole = true;
	CHECK(request_key(&w, 0, 1, 3, &to, &whole));
	CHECK(std::string(to.at, to.length) == "sec");
	CHECK_FALSE(whole);
	free(to.at);
	workload_free(&w);
}
