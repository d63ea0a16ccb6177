// SPDX-License-Identifier: MIT
// The first key of a command, from what servers report: key specifications as Redis documents them, and fixed
// positions of older servers. Real servers' answers are in system/load/replay_cluster_test.cc.
#include "loadgen/cluster.h"

#include <hiredis/hiredis.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace
{

using Words = std::vector<std::string>;

// "[a 1 [b]]" as RESP: words are strings, numbers are integers.
std::string resp_of(const std::string &text)
{
	std::vector<std::pair<size_t, std::string>> open = {{0, ""}};
	for (size_t at = 0; at < text.size();) {
		const size_t end = std::min(text.find_first_of(" []", at), text.size());
		if (end > at) {
			const std::string word = text.substr(at, end - at);
			open.back().first++;
			open.back().second +=
			    word.find_first_not_of("-0123456789") == std::string::npos
				? ":" + word + "\r\n"
				: "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
		}
		if (end < text.size() && text[end] == '[')
			open.emplace_back(0, "");
		if (end < text.size() && text[end] == ']') {
			const auto [count, inner] = open.back();
			open.pop_back();
			open.back().first++;
			open.back().second += "*" + std::to_string(count) + "\r\n" + inner;
		}
		at = end + 1;
	}
	return open.back().second;
}

command_keys read(const std::string &text)
{
	const std::string wire = text == "nil" ? "*1\r\n$-1\r\n" : text[0] == '-' ? text : resp_of(text);
	const std::unique_ptr<redisReader, void (*)(redisReader *)> reader(redisReaderCreate(),
									   redisReaderFree);
	void *reply = nullptr;
	command_keys keys;
	redisReaderFeed(reader.get(), wire.data(), wire.size());
	REQUIRE(redisReaderGetReply(reader.get(), &reply) == REDIS_OK);
	REQUIRE(reply);
	command_keys_read(&keys, static_cast<redisReply *>(reply));
	freeReplyObject(reply);
	return keys;
}

uint32_t first(const command_keys &keys, const Words &words)
{
	std::vector<const char *> at;
	std::vector<size_t> lengths;
	for (const std::string &w : words) {
		at.push_back(w.data());
		lengths.push_back(w.size());
	}
	const auto count = static_cast<uint32_t>(words.size());
	const uint32_t found = command_keys_first(&keys, count, at.data(), lengths.data());
	CHECK(command_keys_first(&keys, count, at.data(), nullptr) == found);
	return found;
}

std::string index_spec(int index, const std::string &find)
{
	return "[flags [RW] begin_search [type index spec [index " + std::to_string(index) +
	       "]] find_keys [" + find + "]]";
}

const std::string range = "type range spec [lastkey 0 keystep 1 limit 0]";
const std::string keynum = "type keynum spec [keynumidx 0 firstkey 1 keystep 1]";

} // namespace

TEST_CASE("the first key from key specifications")
{
	const command_keys set =
	    read("[[set -3 [write denyoom] 1 1 1 [] [] [" + index_spec(1, range) + "] []]]");
	CHECK(set.known == 1);
	CHECK(set.writes);
	CHECK_FALSE(set.reads);
	CHECK_FALSE(set.ask);
	CHECK(first(set, {"SET", "k", "v"}) == 1);
	CHECK(first(set, {"SET"}) == 0);

	const command_keys eval =
	    read("[[eval -3 [movablekeys] 0 0 0 [] [] [" + index_spec(2, keynum) + "] []]]");
	CHECK_FALSE(eval.ask);
	CHECK(first(eval, {"EVAL", "return 1", "2", "a", "b"}) == 3);
	CHECK(first(eval, {"EVAL", "return 1", "0", "a"}) == 0);
	CHECK(first(eval, {"EVAL", "return 1", "1"}) == 0);
	CHECK(first(eval, {"EVAL"}) == 0);

	const command_keys xread =
	    read("[[xread -4 [readonly movablekeys] 0 0 0 [] [] [[begin_search [type keyword "
		 "spec [keyword STREAMS startfrom 1]] find_keys [type range spec [lastkey -1 "
		 "keystep 1 limit 2]]]] []]]");
	CHECK(xread.reads);
	CHECK(first(xread, {"XREAD", "COUNT", "2", "streams", "s", "0"}) == 4);
	CHECK(first(xread, {"XREAD", "STREAMS", "STREAMS", "0"}) == 2);
	CHECK(first(xread, {"XREAD", "STREAMS"}) == 0);
	CHECK(first(xread, {"XREAD", "COUNT", "2"}) == 0);

	// From the end, backwards: the last word cannot be the keyword.
	const command_keys migrate =
	    read("[[migrate -6 [write movablekeys] 3 3 1 [] [] [" + index_spec(3, range) +
		 " [begin_search [type keyword spec [keyword KEYS startfrom -2]] find_keys "
		 "[type range spec [lastkey -1 keystep 1 limit 0]]]] []]]");
	CHECK(first(migrate, {"MIGRATE", "h", "1", "k", "0", "9"}) == 3);

	const command_keys zunion = read("[[zunionstore -4 [write movablekeys] 1 1 1 [] [] [" +
					 index_spec(1, range) + " " + index_spec(2, keynum) + "] []]]");
	CHECK(first(zunion, {"ZUNIONSTORE", "to", "1", "from"}) == 1);
}

TEST_CASE("the first key from a fixed position, a part of the name, and what only the server finds")
{
	// Redis 6: no specifications.
	CHECK(first(read("[[get 2 [readonly fast] 1 1 1 [] ]]"), {"GET", "k"}) == 1);
	CHECK(first(read("[[object -2 [readonly] 2 2 1 [] ]]"), {"OBJECT", "ENCODING", "k"}) == 2);
	CHECK(first(read("[[ping -1 [fast] 0 0 0 [] ]]"), {"PING", "x"}) == 0);
	CHECK_FALSE(read("[[ping -1 [fast] 0 0 0 [] ]]").ask);
	CHECK(read("[[eval -3 [noscript movablekeys] 0 0 0 [] ]]").ask);
	CHECK_FALSE(read("[[sort -2 [write movablekeys] 1 1 1 [] ]]").ask);
	// Redis 7 says of SORT where its first key is, and that there may be others.
	const command_keys sort =
	    read("[[sort -2 [write movablekeys] 1 1 1 [] [] [" + index_spec(1, range) +
		 " [begin_search [type unknown spec []] find_keys [type unknown spec []]]] "
		 "[]]]");
	CHECK(first(sort, {"SORT", "k", "STORE", "l"}) == 1);
	CHECK(sort.ask);
	// A specification that says nothing.
	CHECK(read("[[x -2 [write] 0 0 0 [] [] [[begin_search [type unknown spec []] find_keys [type unknown "
		   "spec "
		   "[]]]] []]]")
		  .ask);
	const command_keys container =
	    read("[[xgroup -2 [] 0 0 0 [] [] [] [[xgroup|create -5 [write] 2 2 1 [] [] [] []]]]]");
	CHECK(container.container);
	CHECK(first(container, {"XGROUP", "CREATE", "k"}) == 0);
	CHECK(read("nil").known == 0);
	// A server without COMMAND: the second word.
	CHECK(read("-ERR unknown command\r\n").known == -1);
	CHECK(first(read("-ERR unknown command\r\n"), {"GET", "k"}) == 1);
	CHECK(first(read("-ERR unknown command\r\n"), {"PING"}) == 0);
}
