// SPDX-License-Identifier: MIT
// Recordings of several clients, replayed as fast as possible on a real cluster, while slots move, and in
// samples: the data is that of one server, and the commands of each key are executed in their order.
#include <csignal>
#include <set>

#include "loadgen/cluster.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/cluster.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

// Clients append to lists: alone, by a script, and in transactions, each with the next number of its list.
struct Appends {
	std::string csv;
	std::map<std::string, int> lengths;
	int commands = 0, elements = 0;

	Appends(int rounds, int clients, int keys)
	{
		for (int i = 0; i < rounds; i++) {
			const std::string client = "c" + std::to_string(i * 7 % clients);
			const std::string key = "k" + std::to_string(i * 31 % keys);
			if (i % 10 == 3) {
				add(client, "WATCH," + key);
				add(client, "LLEN," + key);
				add(client, "MULTI");
				add(client, "RPUSH," + key + next(key));
				add(client, "PUBLISH,channel,x");
				add(client, "RPUSH," + key + next(key));
				add(client, "EXEC");
			} else if (i % 10 == 6) {
				add(client, "EVAL,\"return redis.call('RPUSH', KEYS[1], ARGV[1])\",1," + key +
						next(key));
			} else if (i % 10 == 9) {
				add(client, "PING");
			} else {
				add(client, "RPUSH," + key + next(key));
			}
		}
	}

private:
	std::string next(const std::string &key)
	{
		elements++;
		return "," + std::to_string(lengths[key]++);
	}
	void add(const std::string &client, const std::string &command)
	{
		csv += std::to_string(commands / 10000) + "." +
		       std::to_string(10000 + commands % 10000).substr(1) + "," + client + "," + command +
		       "\n";
		commands++;
	}
};

// "KEY LENGTH" or "KEY wrong" for each list of the server. The elements of a list count from 0 to `lap` - 1,
// and again after that.
void check_lists(Redis &redis, const std::map<std::string, int> &laps, std::map<std::string, int> *found)
{
	for (const auto &[key, lap] : laps) {
		const std::string length = redis.command(
		    {"EVAL",
		     "local all = redis.call('LRANGE', KEYS[1], 0, -1) for i, v in ipairs(all) do "
		     "if tonumber(v) ~= (i - 1) % tonumber(ARGV[1]) then return -1 end end return #all",
		     "1", key, std::to_string(lap)});
		if (length.find("MOVED") != std::string::npos || length == "0")
			continue;
		INFO(key << ": " << length);
		REQUIRE(std::atoi(length.c_str()) > 0);
		REQUIRE(found->count(key) == 0);
		(*found)[key] = std::atoi(length.c_str());
	}
}

std::map<std::string, int> lists(Cluster &c, const std::map<std::string, int> &laps)
{
	std::map<std::string, int> all;
	for (size_t i = 0; i < static_cast<size_t>(c.primaries()); i++)
		check_lists(c.node(i), laps, &all);
	return all;
}

std::map<std::string, int> lists(Redis &redis, const std::map<std::string, int> &laps)
{
	std::map<std::string, int> all;
	check_lists(redis, laps, &all);
	return all;
}

Arguments on(Cluster &c, const Arguments &more)
{
	Arguments all = {"--cluster", "--server", c.address(0), "-q", "--no-observer"};
	all.insert(all.end(), more.begin(), more.end());
	return all;
}

// The length of a list on a node that imports its slot.
int imported(Redis &node, const std::string &key)
{
	node.command({"ASKING"});
	return std::atoi(node.command({"LLEN", key}).c_str());
}

// Other databases, and keys of several slots.
void check_what_a_cluster_cannot_do(Cluster &c)
{
	TempDir dir;
	write_file(dir.file("csv"), "0,a,SET,x,1\n0,a,SELECT,3\n0,a,SET,y,1\n0,b,MSET,x,2,y,2\n0,b,MULTI\n"
				    "0,b,SET,x,3\n0,b,EXEC\n0,a,SELECT,0\n0,a,SET,z,1\n");
	for (const char *speed : {"1", "max"}) {
		const Result r = load(on(
		    c, {"--replay", dir.file("csv"), "--replay-speed", speed, "--json", dir.file("json")}));
		INFO(r.err);
		CHECK(r.status == 3);
		CHECK(contains(r.err, "a cluster has no database 3"));
		CHECK(parse_json(read_file(dir.file("json")))["runs"][0]["error_replies"]["CROSSSLOT"] == 1);
		std::set<std::string> keys;
		for (size_t i = 0; i < 3; i++)
			for (const char *key : {"x", "y", "z"})
				if (c.node(i).command({"EXISTS", key}) == "1")
					keys.insert(key);
		CHECK(keys == std::set<std::string>{"x", "z"});
	}
}

// Again and again, until slots have moved: the importing node has keys before the others know it. Then only
// redirects report where keys are.
void check_moving_slots(Cluster &c, const std::string &csv, const std::map<std::string, int> &laps)
{
	TempDir dir;
	Process p(
	    load_command(on(c, {"--replay", csv, "--rate", "10000", "-l", "--json", dir.file("json")})));
	const auto waits_for = [&](Redis &node, const std::string &key, int length) {
		REQUIRE(eventually([&] { return imported(node, key) > length; }, Seconds(30)));
	};
	int moved = 0;
	for (const auto &entry : laps) {
		const std::string &key = entry.first;
		const std::string slot = std::to_string(cluster_slot(key.data(), key.size()));
		Redis &from = c.node(0), &to = c.node(1);
		if (from.command({"EXISTS", key}) != "1")
			continue;
		waits_for(from, key, imported(from, key));
		// From here on only redirects say where keys are.
		for (size_t i = 0; moved == 0 && i < c.size(); i++)
			c.node(i).command({"ACL", "SETUSER", "default", "-cluster|slots"});
		to.command({"CLUSTER", "SETSLOT", slot, "IMPORTING", c.id(0)});
		from.command({"CLUSTER", "SETSLOT", slot, "MIGRATING", c.id(1)});
		while (from.command({"CLUSTER", "COUNTKEYSINSLOT", slot}) != "0")
			from.command({"MIGRATE", "127.0.0.1", std::to_string(to.port()),
				      from.command({"CLUSTER", "GETKEYSINSLOT", slot, "1"}), "0", "5000"});
		waits_for(to, key, imported(to, key) + 2);
		for (size_t i : {1u, 0u, 2u})
			c.node(i).command({"CLUSTER", "SETSLOT", slot, "NODE", c.id(1)});
		waits_for(to, key, imported(to, key) + 2);
		if (++moved == 2)
			break;
	}
	CHECK(moved == 2);
	p.signal(SIGINT);
	REQUIRE(p.wait(Seconds(30)) == 0);
	const Json run = parse_json(read_file(dir.file("json")))["runs"][0];
	// Commands that were due when the signal arrived were not sent.
	const Json &kinds = run["total"]["errors_by_kind"];
	INFO(kinds.dump());
	CHECK(run["total"]["errors"] == kinds.value("never sent", 0));
	CHECK(run["redirects"]["ask"] >= 2);
	CHECK(run["redirects"]["moved"] >= 2);
	CHECK(lists(c, laps).size() == laps.size());
}

} // namespace

TEST_CASE("a cluster gets the data of one server, and each list in order, while slots move")
{
	Cluster c;
	Redis one;
	TempDir dir;
	const Appends appends(3000, 20, 50);
	write_file(dir.file("csv"), appends.csv);
	for (const char *order : {"client", "key"}) {
		INFO(order);
		for (size_t i = 0; i < static_cast<size_t>(c.primaries()); i++)
			c.node(i).command({"FLUSHALL"});
		// With one connection, clients are in their order, too.
		const Result r =
		    load(on(c, {"--replay", dir.file("csv"), "--replay-speed", "max", "--replay-order", order,
				"-c", std::string(order) == "key" ? "30" : "1", "--threads",
				std::string(order) == "key" ? "2" : "1", "--json", dir.file("json")}));
		INFO(r.err);
		REQUIRE(r.status == 0);
		const Json json = parse_json(read_file(dir.file("json")));
		CHECK(json["replay"]["order"] == order);
		CHECK(json["runs"][0]["total"]["requests"] == appends.commands);
		CHECK(json["runs"][0]["total"]["errors"] == 0);
		CHECK(json["runs"][0]["redirects"]["moved"] == 0);
		CHECK(json["runs"][0]["nodes"].size() == 3);
		CHECK(lists(c, appends.lengths) == appends.lengths);
	}
	REQUIRE(
	    load({"-s", one.socket(), "--replay", dir.file("csv"), "--replay-speed", "max", "-q"}).status ==
	    0);
	CHECK(lists(one, appends.lengths) == appends.lengths);

	check_what_a_cluster_cannot_do(c);
	check_moving_slots(c, dir.file("csv"), appends.lengths);
}

TEST_CASE("a sample has all commands of some keys, and no others")
{
	Redis one;
	TempDir dir;
	const Appends appends(6000, 20, 1500);
	write_file(dir.file("csv"), appends.csv);
	std::map<std::string, int> whole[2];
	for (const char *seed : {"0", "1"}) {
		one.command({"FLUSHALL"});
		const Result r =
		    load({"-s", one.socket(), "--replay", dir.file("csv"), "--replay-speed", "max",
			  "--replay-sample", "20%", "--seed", seed, "-q", "--json", dir.file("json")});
		INFO(r.err);
		REQUIRE(r.status == 0);
		const Json replay = parse_json(read_file(dir.file("json")))["replay"];
		const uint64_t omitted = replay["outside_sample"].get<uint64_t>();
		CHECK(replay["commands"].get<uint64_t>() + omitted ==
		      static_cast<uint64_t>(appends.commands));
		CHECK(
		    contains(r.out, "omitted by --replay-sample: " + std::to_string(omitted) + " commands"));
		whole[*seed - '0'] = lists(one, appends.lengths);
		for (const auto &[key, length] : whole[*seed - '0'])
			CHECK(length == appends.lengths.at(key));
		// 1500 keys in as many slots: 300, +- four standard deviations.
		CHECK(whole[*seed - '0'].size() > 300 - 4 * 16);
		CHECK(whole[*seed - '0'].size() < 300 + 4 * 16);
	}
	CHECK(whole[0] != whole[1]);
}
