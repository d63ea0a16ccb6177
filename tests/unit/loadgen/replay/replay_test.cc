// SPDX-License-Identifier: MIT
// Recordings of commands: what is read from a MONITOR capture, an append-only file and a CSV, what is
// skipped, and the messages about damage. Files of real servers are in system/load/replay_test.cc.
#include "loadgen/replay.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/tempdir.h"
#include "tests/support/text.h"

using namespace forktail::test;

namespace
{

struct Item {
	uint64_t time_ns;
	std::string client;
	uint32_t database;
	bool scripted;
	std::vector<std::string> words;
	std::string wire;
};

struct Items {
	std::vector<Item> all;
	std::string why; // damage
	bool cut = false;
	size_t at = 0;
	uint64_t line = 0;
};

using Next = int (*)(replay_reader *, replay_item *);

Items read_items(Next next, const std::string &text)
{
	// Memory of exactly its size: the sanitizers report a read beyond it.
	const std::unique_ptr<char[]> bytes(new char[text.size()]);
	std::copy(text.begin(), text.end(), bytes.get());
	replay_reader reader;
	replay_item item;
	Items items;
	int more;
	replay_reader_init(&reader, bytes.get(), bytes.get() + text.size());
	while ((more = next(&reader, &item)) > 0) {
		Item i = {
		    item.time_ns, {item.client.at, item.client.length}, item.database, item.scripted, {}, {}};
		for (uint32_t k = 0; k < item.word_count; k++)
			i.words.emplace_back(item.words[k].at, item.words[k].length);
		if (item.wire.at)
			i.wire.assign(item.wire.at, item.wire.length);
		items.all.push_back(i);
	}
	if (more < 0)
		items.why = reader.why;
	items.cut = reader.cut;
	items.at = static_cast<size_t>(reader.at - reader.begin);
	items.line = reader.line;
	replay_reader_free(&reader);
	return items;
}

using Words = std::vector<std::string>;

struct Free {
	void operator()(replay *r) const { replay_free(r); }
};
using Replay = std::unique_ptr<replay, Free>;

struct Loaded {
	Replay r;
	int rc = 0;
	std::string error;
};

Loaded load_path(const std::string &path, replay_format format = REPLAY_BY_CONTENT,
		 const std::string &allow = "")
{
	harm_allowed allowed = {};
	char error[512] = "";
	replay *r = nullptr;
	if (!allow.empty())
		REQUIRE(harm_allow(&allowed, allow.c_str(), error, sizeof(error)));
	Loaded l;
	l.rc = replay_load(&r, path.c_str(), format, &allowed, error, sizeof(error));
	l.r.reset(r);
	if (l.rc)
		l.error = error;
	return l;
}

Loaded load_text(const std::string &text, const std::string &allow = "")
{
	TempDir dir;
	write_file(dir.file("recording"), text);
	return load_path(dir.file("recording"), REPLAY_BY_CONTENT, allow);
}

std::string wire(const replay_record &r)
{
	return {r.bytes, r.length};
}

std::string resp(const Words &words)
{
	std::string s = "*" + std::to_string(words.size()) + "\r\n";
	for (const std::string &w : words)
		s += "$" + std::to_string(w.size()) + "\r\n" + w + "\r\n";
	return s;
}

} // namespace

TEST_CASE("lines of MONITOR: time, database, source, and every escape that Redis writes")
{
	const Items i = read_items(
	    replay_monitor_next,
	    "OK\n"
	    "1339518083.107412 [0 127.0.0.1:60866] \"keys\" \"*\"\n"
	    "1339518087.877697 [3 unix:/a dir] with/s] \"set\" \"\\x00\\xff\\n\\r\\t\\a\\b\\\"\\\\\" \"\"\r\n"
	    "+1339518090.420270 [12 [::1]:60868] \"dbsize\"\n"
	    "\n"
	    "1339518096.506257 [0 lua] \"incr\" \"] \\\"x\"\n");
	CHECK(i.why.empty());
	REQUIRE(i.all.size() == 4);
	CHECK(i.all[0].time_ns == 1339518083107412000u);
	CHECK(i.all[0].client == "127.0.0.1:60866");
	CHECK(i.all[0].database == 0);
	CHECK(i.all[0].words == Words{"keys", "*"});
	CHECK(i.all[1].client == "unix:/a dir] with/s");
	CHECK(i.all[1].database == 3);
	CHECK(i.all[1].words == Words{"set", std::string("\0\xff\n\r\t\a\b\"\\", 9), ""});
	CHECK(i.all[2].client == "[::1]:60868");
	CHECK(i.all[2].database == 12);
	CHECK_FALSE(i.all[2].scripted);
	CHECK(i.all[3].scripted);
	CHECK(i.all[3].words == Words{"incr", "] \"x"});
}

TEST_CASE("reading ends at the first line that is not MONITOR's")
{
	const std::string good = "1.5 [0 a:1] \"ping\"\n";
	for (const char *bad :
	     {"1.5 [0 a:1] ping", "1.5 [0 a:1] \"ping", "1.5 [0 a:1] \"ping\"\"x\"", "1.5 [0 a:1] \"ping\" ",
	      "1.5 [x a:1] \"ping\"", "1.5 [0 a:1 \"ping\"", "1.5 \"ping\"", "x [0 a:1] \"ping\"",
	      "1.5 [0 a:1] \"\\q\"", "1.5 [0 a:1] \"\\xg0\"", "1.5 [0 a:1] \"\\x1\"", "1.5 [0 a:1] ",
	      "99999999999.5 [0 a:1] \"ping\"", "ERR unknown command"}) {
		INFO(bad);
		const Items i = read_items(replay_monitor_next, good + bad + "\n" + good);
		CHECK(i.all.size() == 1);
		CHECK_FALSE(i.why.empty());
		CHECK_FALSE(i.cut);
		CHECK(i.at == good.size());
		CHECK(i.line == 2);
	}
	const Items i = read_items(replay_monitor_next, good + "1.6 [0 a:1] \"set\" \"x\"");
	CHECK(i.all.size() == 1);
	CHECK(i.cut);
}

TEST_CASE("commands of an append-only file, with annotations in between")
{
	const std::string set = resp({"SET", "k", "line\r\nend"});
	const Items i = read_items(replay_aof_next, resp({"SELECT", "0"}) + "#TS:1640995200\r\n" + set +
							"# a word of somebody's\r\n#TS:1640995201\r\n" +
							resp({"INCR", "k"}));
	CHECK(i.why.empty());
	REQUIRE(i.all.size() == 3);
	CHECK(i.all[0].time_ns == REPLAY_NO_TIME);
	CHECK(i.all[1].time_ns == 1640995200000000000u);
	CHECK(i.all[1].wire == set);
	CHECK(i.all[1].words == Words{"SET", "k", "line\r\nend"});
	CHECK(i.all[2].time_ns == 1640995201000000000u);
}

TEST_CASE("an append-only file cut anywhere gives the commands before the cut")
{
	const std::string one = resp({"SET", "k", "v"}), all = one + "#TS:17\r\n" + one;
	for (size_t n = 0; n <= all.size(); n++) {
		INFO(n);
		const Items i = read_items(replay_aof_next, all.substr(0, n));
		const bool whole = n == 0 || n == one.size() || n == one.size() + 8 || n == all.size();
		CHECK(i.all.size() == (n == all.size() ? 2 : n >= one.size() ? 1 : 0));
		CHECK(i.why.empty() == whole);
		CHECK(i.cut == !whole);
	}
	for (const char *bad :
	     {"*0\r\n", "*x\r\n", "*1\r\n+OK\r\n", "*1\r\n$1\r\nabc", "SET k v\r\n", "*-1\r\n",
	      "*1\n$1\r\na\r\n", "*99999999\r\n$1\r\na\r\n", "*1\r\n$99999999999\r\na\r\n"}) {
		INFO(bad);
		const Items i = read_items(replay_aof_next, one + bad + one);
		CHECK(i.all.size() == 1);
		CHECK_FALSE(i.cut);
		CHECK_FALSE(i.why.empty());
	}
}

TEST_CASE("rows of CSV, quoted by RFC 4180")
{
	const Items i = read_items(replay_csv_next, "seconds,client,command\r\n"
						    "0,app,PING\r\n"
						    "0.25,app,SET,k,\"a, b\"\n"
						    "\n"
						    "1.000000001,,SET,k,\"two\nlines \"\"quoted\"\"\"\r\n"
						    "1640995200.5,\"x,y\",SET,k,\n"
						    "7,z,GET,k");
	CHECK(i.why.empty());
	REQUIRE(i.all.size() == 5);
	CHECK(i.all[0].words == Words{"PING"});
	CHECK(i.all[1].time_ns == 250000000);
	CHECK(i.all[1].words == Words{"SET", "k", "a, b"});
	CHECK(i.all[2].time_ns == 1000000001);
	CHECK(i.all[2].client.empty());
	CHECK(i.all[2].words == Words{"SET", "k", "two\nlines \"quoted\""});
	CHECK(i.all[3].client == "x,y");
	CHECK(i.all[3].time_ns == 1640995200500000000u);
	CHECK(i.all[3].words == Words{"SET", "k", ""});
	CHECK(i.all[4].words == Words{"GET", "k"});
}

TEST_CASE("invalid rows of CSV")
{
	const std::string good = "1,a,PING\n";
	for (const char *bad :
	     {"x,a,PING\n", "1,a\n", "1\n", "-1,a,PING\n", "1x,a,PING\n", "1,a,\"PING\"x\n"}) {
		INFO(bad);
		const Items i = read_items(replay_csv_next, good + bad + good);
		CHECK(i.all.size() == 1);
		CHECK_FALSE(i.why.empty());
		CHECK_FALSE(i.cut);
		CHECK(i.line == 2);
	}
	// A quote that does not begin its field is an ordinary character.
	const Items stray = read_items(replay_csv_next, "1,a,SET,k,5\" disc,\"x\ny\"\n" + good);
	REQUIRE(stray.all.size() == 2);
	CHECK(stray.all[0].words == Words{"SET", "k", "5\" disc", "x\ny"});
	const Items cut = read_items(replay_csv_next, good + "2,a,SET,k,\"open");
	CHECK(cut.all.size() == 1);
	CHECK(cut.cut);
}

TEST_CASE("a capture becomes records: offsets, clients, databases, names by frequency")
{
	const Loaded l = load_text("100.5 [0 a:1] \"get\" \"x\"\n"
				   "100.75 [2 b:1] \"Get\" \"y\"\n"
				   "100.7 [0 lua] \"incr\" \"z\"\n"
				   "100.7 [0 a:1] \"set\" \"x\" \"1\"\n"
				   "101.5 [2 a:1] \"select\" \"2\"\n");
	REQUIRE(l.rc == 0);
	const replay &r = *l.r;
	CHECK(r.format == REPLAY_MONITOR);
	CHECK(r.timed);
	REQUIRE(r.count == 4);
	CHECK(r.clients == 2);
	CHECK(r.records[0].due_ns == 0);
	CHECK(r.records[1].due_ns == 250000000);
	CHECK(r.records[2].due_ns == 250000000); // the time went back
	CHECK(r.backwards == 1);
	CHECK(r.records[3].due_ns == 1000000000);
	CHECK(r.span_ns == 1000000000 + 333333333);
	CHECK(wire(r.records[1]) == resp({"Get", "y"}));
	CHECK(r.records[0].lane == 0);
	CHECK(r.records[1].lane == 1);
	CHECK(r.records[1].database == 2);
	CHECK(r.records[3].selects);
	CHECK(r.scripted == 1);
	REQUIRE(r.name_count == 3);
	CHECK(std::string(r.names[0]) == "GET");
	CHECK(r.records[1].operation == 0);
	CHECK_FALSE(r.others);
	CHECK(sizeof(replay_record) <= 36); // and 4 bytes per command everywhere
}

TEST_CASE("without databases in the file, each client is in the database of its SELECTs")
{
	const Loaded l = load_text("0,a,SELECT,3\n1,b,GET,x\n2,a,GET,x\n3,a,SELECT,nonsense\n4,a,GET,x\n");
	REQUIRE(l.rc == 0);
	REQUIRE(l.r->count == 5);
	std::vector<int> databases;
	for (uint32_t i = 0; i < l.r->count; i++)
		databases.push_back(l.r->records[i].database);
	CHECK(databases == std::vector<int>{3, 0, 3, 3, 3});
	CHECK(l.r->records[0].selects);
	CHECK_FALSE(l.r->records[3].selects);
}

TEST_CASE("more names than there are operations share one")
{
	std::string text;
	for (int i = 0; i < 100; i++)
		for (int k = 0; k <= i; k++)
			text += "0,a,command" + std::to_string(i) + "\n";
	const Loaded l = load_text(text);
	REQUIRE(l.rc == 0);
	CHECK(l.r->name_count == REPLAY_NAMES);
	CHECK(l.r->others);
	CHECK(std::string(l.r->names[0]) == "COMMAND99");
	CHECK(l.r->records[0].operation == REPLAY_NAMES);
	CHECK(l.r->records[l.r->count - 1].operation == 0);
}

TEST_CASE("harmful commands are skipped and counted by name, unless allowed")
{
	const std::string text =
	    "0,a,FLUSHALL\n0,a,flushall,ASYNC\n0,a,CONFIG,SET,maxmemory,1\n0,a,DEBUG,SLEEP,9\n"
	    "0,a,client,kill,ID,3\n0,a,CLIENT,GETNAME\n0,a,SCRIPT,FLUSH\n0,a,COMMANDLOG,RESET,slow\n"
	    "0,a,SCRIPT,LOAD,return 1\n0,a,SHUTDOWN\n0,a,SUBSCRIBE,x\n0,a,BLPOP,k,0\n"
	    "0,a,BLPOP,k,0.5\n0,a,XREAD,BLOCK,0,STREAMS,s,$\n0,a,XREAD,BLOCK,5,STREAMS,s,$\n"
	    "0,a,XREAD,STREAMS,BLOCK,0\n0,a,BLMPOP,0,1,k,LEFT\n0,a,BLMPOP,1,1,k,LEFT\n";
	const auto names = [](const Loaded &l) {
		std::string all;
		for (uint32_t i = 0; i < l.r->count; i++)
			all += std::string(l.r->names[l.r->records[i].operation]) + " ";
		return all;
	};
	const Loaded safe = load_text(text);
	REQUIRE(safe.rc == 0);
	CHECK(names(safe) == "CLIENT SCRIPT BLPOP XREAD XREAD BLMPOP ");
	std::string out;
	for (int i = 0; i < COMMAND_ROWS; i++)
		if (safe.r->left_out[i])
			out += std::string(commands_table[i].name) + "=" +
			       std::to_string(safe.r->left_out[i]) + " ";
	for (const char *part :
	     {"FLUSHALL=2 ", "CONFIG=1 ", "DEBUG=1 ", "CLIENT KILL=1 ", "SCRIPT FLUSH=1 ", "SHUTDOWN=1 ",
	      "COMMANDLOG RESET=1 ", "SUBSCRIBE=1 ", "BLPOP=1 ", "XREAD=1 ", "BLMPOP=1 "}) {
		INFO(out << " has no " << part);
		CHECK(contains(out, part));
	}
	const Loaded some = load_text(text, "flushall,client kill,blpop");
	CHECK(names(some) == "FLUSHALL FLUSHALL CLIENT CLIENT SCRIPT BLPOP BLPOP XREAD XREAD BLMPOP ");
	const Loaded all = load_text(text, "all");
	CHECK(all.r->count == 17); // except SUBSCRIBE
}

TEST_CASE("commands are known also behind more names than a replay counts")
{
	std::string text;
	for (int i = 0; i < 5000; i++)
		text += "0,a,NAME" + std::to_string(i) + "\n";
	const Loaded l = load_text(text + "0,a,FLUSHALL\n0,a,SELECT,3\n0,a,MULTI\n");
	REQUIRE(l.rc == 0);
	CHECK(l.r->count == 5002);
	CHECK(l.r->records[5000].selects);
	CHECK(l.r->records[5001].part == REPLAY_MULTI);
}

TEST_CASE("--replay-allow takes names of skipped commands, and nothing else")
{
	char error[256] = "";
	harm_allowed allowed = {};
	CHECK(harm_allow(&allowed, "FlushAll,config", error, sizeof(error)));
	for (const char *bad : {"", "get", "flushall,", "subscribe", "flushall get", "monitor"}) {
		INFO(bad);
		CHECK_FALSE(harm_allow(&allowed, bad, error, sizeof(error)));
		CHECK(contains(error, "--replay-allow"));
	}
}

TEST_CASE("an append-only file with times: commands of a second are spread over it")
{
	std::string text = resp({"SELECT", "0"}) + "#TS:100\r\n";
	for (int i = 0; i < 4; i++)
		text += resp({"INCR", "k"});
	text += "#TS:102\r\n" + resp({"INCR", "k"});
	const Loaded l = load_text(text);
	REQUIRE(l.rc == 0);
	CHECK(l.r->format == REPLAY_AOF);
	REQUIRE(l.r->count == 6);
	std::vector<uint64_t> due;
	for (uint32_t i = 0; i < l.r->count; i++)
		due.push_back(l.r->records[i].due_ns);
	CHECK(due == std::vector<uint64_t>{0, 200000000, 400000000, 600000000, 800000000, 2000000000});
	CHECK_FALSE(load_text(resp({"INCR", "k"})).r->timed);
}

TEST_CASE("a recording of one instant lasts a second, so that it can be repeated")
{
	for (const char *text : {"5,a,PING\n", "5,a,PING\n5,b,PING\n"}) {
		const Loaded l = load_text(text);
		REQUIRE(l.rc == 0);
		CHECK(l.r->span_ns == 1000000000);
	}
	CHECK(load_text("5,a,PING\n5.5,b,PING\n6,a,PING\n").r->span_ns == 1500000000);
}

TEST_CASE("damage: commands before it are read, and one message names its place")
{
	const Loaded cut = load_text(resp({"SET", "a", "1"}) + "*3\r\n$3\r\nSET\r\n$1\r\n");
	REQUIRE(cut.rc == 0);
	CHECK(cut.r->count == 1);
	CHECK(cut.r->cut);
	CHECK(contains(cut.r->damage,
		       "byte 27: the last command is truncated. The 1 commands before it are replayed"));
	const Loaded bad = load_text("1.5 [0 a:1] \"ping\"\nwhat?\n1.5 [0 a:1] \"ping\"\n");
	REQUIRE(bad.rc == 0);
	CHECK(bad.r->count == 1);
	CHECK_FALSE(bad.r->cut);
	CHECK(contains(bad.r->damage, "line 2, byte 19: not a line of MONITOR's output"));
}

TEST_CASE("no recording at all: one message")
{
	TempDir dir;
	CHECK(contains(load_path(dir.file("none")).error, "No such file"));
	write_file(dir.file("empty"), "");
	CHECK(contains(load_path(dir.file("empty")).error, "is empty"));
	write_file(dir.file("text"), "hello\nworld\n");
	CHECK(contains(load_path(dir.file("text")).error, "neither a MONITOR capture"));
	CHECK(contains(load_path(dir.file("text"), REPLAY_MONITOR).error, "not a line of MONITOR's output"));
	CHECK(
	    contains(load_path(dir.file("text"), REPLAY_AOF).error, "not a command of an append-only file"));
	CHECK(contains(load_path(dir.path()).error, "without a manifest"));
	write_file(dir.file("harm"), "0,a,FLUSHALL\n");
	CHECK(contains(load_path(dir.file("harm")).error, "no commands to replay"));
	write_file(dir.file("rdb"), "REDIS0009\xfa");
	CHECK(contains(load_path(dir.file("rdb")).error, "RDB preamble is truncated"));
	write_file(dir.file("x.manifest"), "file a.aof seq 1 type i\n");
	CHECK(contains(load_path(dir.path()).error, "a.aof: No such file"));
	write_file(dir.file("y.manifest"), "file a.aof seq 1 type i\n");
	CHECK(contains(load_path(dir.path()).error, "several manifests"));
	write_file(dir.file("x.manifest"), "file ../a.aof seq 1 type i\n");
	CHECK(contains(load_path(dir.file("x.manifest")).error, "is not a manifest"));
}

TEST_CASE("a manifest's files are read in its order, without replaced ones")
{
	TempDir dir;
	write_file(dir.file("base"), "REDIS0009\xff"
				     "12345678" +
					 resp({"SET", "a", "0"}));
	write_file(dir.file("one two"), resp({"SET", "a", "1"}));
	write_file(dir.file("last"), "");
	write_file(dir.file("old"), resp({"SET", "a", "old"}));
	write_file(dir.file("m"),
		   "file old seq 1 type h\nfile base seq 2 type b\nfile \"one two\" seq 1 type i\n"
		   "file last seq 2 type i\n");
	const Loaded l = load_path(dir.file("m"));
	INFO(l.error);
	REQUIRE(l.rc == 0);
	REQUIRE(l.r->count == 2);
	CHECK(wire(l.r->records[0]) == resp({"SET", "a", "0"}));
	CHECK(wire(l.r->records[1]) == resp({"SET", "a", "1"}));
	CHECK(l.r->preamble_bytes == 18);
}

TEST_CASE("records are chained by connection, in the file's order")
{
	const Loaded l = load_text("0,a,GET,1\n0,b,GET,2\n0,c,GET,3\n0,a,GET,4\n0,c,GET,5\n");
	REQUIRE(l.rc == 0);
	REQUIRE(replay_share(l.r.get(), 2) == 0);
	const auto chain = [&](uint32_t at) {
		std::vector<uint32_t> all;
		for (; at != REPLAY_END; at = l.r->records[at].next)
			all.push_back(at);
		return all;
	};
	CHECK(chain(l.r->heads[0]) == std::vector<uint32_t>{0, 2, 3, 4});
	CHECK(chain(l.r->heads[1]) == std::vector<uint32_t>{1});
	replay_limit(l.r.get(), 3);
	REQUIRE(replay_share(l.r.get(), 4) == 0);
	CHECK(chain(l.r->heads[0]) == std::vector<uint32_t>{0});
	CHECK(chain(l.r->heads[2]) == std::vector<uint32_t>{2});
	CHECK(chain(l.r->heads[3]).empty());
}

TEST_CASE("with a rate the recorded times do not count")
{
	const Loaded l = load_text(resp({"INCR", "k"}) + resp({"INCR", "k"}) + resp({"INCR", "k"}));
	REQUIRE(l.rc == 0);
	replay_pace(l.r.get(), ARRIVAL_CONSTANT, 1000, 1);
	CHECK(l.r->timed);
	CHECK(l.r->records[0].due_ns == 0);
	CHECK(l.r->records[2].due_ns == 2000000);
	CHECK(l.r->span_ns == 3000000);
}
