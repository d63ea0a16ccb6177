// SPDX-License-Identifier: MIT
// A real Redis Cluster for a test; see cluster.h.
#include "tests/support/cluster.h"

#include <sstream>
#include <stdexcept>

namespace forktail::test
{
namespace
{

constexpr int SLOTS = 16384;

// A node that answers but refuses says so; nobody expects that here.
std::string must(Redis &node, const std::vector<std::string> &words)
{
	const std::string reply = node.command(words);
	if (reply.rfind("(error)", 0) == 0)
		throw std::runtime_error(words.at(0) + " " + words.at(1) + ": " + reply);
	return reply;
}

} // namespace

Cluster::Cluster(int primaries, int timeout_ms) : primaries_(primaries)
{
	for (int i = 0; i < 2 * primaries; i++) {
		// By default a node's bus listens 10000 ports above, which may be no free port, or none at
		// all.
		RedisOptions options;
		options.tcp = true;
		options.config = {"--cluster-enabled",
				  "yes",
				  "--cluster-node-timeout",
				  std::to_string(timeout_ms),
				  "--cluster-port",
				  std::to_string(free_port()),
				  "--repl-diskless-sync-delay",
				  "0",
				  "--enable-debug-command",
				  "yes"};
		nodes_.push_back(std::make_unique<Redis>(options));
	}
	for (int i = 0; i < primaries; i++) {
		Redis &n = node(static_cast<size_t>(i));
		must(n, {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
		must(n, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(SLOTS * i / primaries),
			 std::to_string(SLOTS * (i + 1) / primaries - 1)});
	}
	for (size_t i = 1; i < size(); i++) {
		must(node(i),
		     {"CLUSTER", "MEET", "127.0.0.1", std::to_string(node(0).port()),
		      node(0).command({"CONFIG", "GET", "cluster-port"}).substr(sizeof("cluster-port"))});
	}
	const auto known = [&] {
		for (size_t i = 0; i < size(); i++)
			if (node(i)
				.command({"CLUSTER", "INFO"})
				.find("cluster_known_nodes:" + std::to_string(size())) == std::string::npos)
				return false;
		return true;
	};
	if (!eventually(known, Seconds(60)))
		throw std::runtime_error("a cluster's nodes don't find each other");
	for (size_t i = 0; i < static_cast<size_t>(primaries); i++)
		must(node(i + static_cast<size_t>(primaries)), {"CLUSTER", "REPLICATE", id(i)});
	const auto in_step = [&] {
		for (size_t i = 0; i < size(); i++)
			if (i >= static_cast<size_t>(primaries) && node(i).info("master_link_status") != "up")
				return false;
		return fine();
	};
	if (!eventually(in_step, Seconds(60)))
		throw std::runtime_error("a cluster does not get ready: " +
					 node(0).command({"CLUSTER", "NODES"}));
}

bool Cluster::fine(size_t except)
{
	for (size_t i = 0; i < size(); i++)
		if (i != except &&
		    node(i).command({"CLUSTER", "INFO"}).find("cluster_state:ok") == std::string::npos)
			return false;
	return true;
}

void Cluster::move(int first, int last, size_t from, size_t to)
{
	const std::string source = id(from), target = id(to);
	for (int slot = first; slot <= last; slot++) {
		const std::string number = std::to_string(slot);
		must(node(to), {"CLUSTER", "SETSLOT", number, "IMPORTING", source});
		must(node(from), {"CLUSTER", "SETSLOT", number, "MIGRATING", target});
		for (;;) {
			std::istringstream keys(
			    node(from).command({"CLUSTER", "GETKEYSINSLOT", number, "10"}));
			std::vector<std::string> words = {
			    "MIGRATE", "127.0.0.1", std::to_string(node(to).port()), "", "0", "5000", "KEYS"};
			for (std::string key; std::getline(keys, key);)
				if (!key.empty())
					words.push_back(key);
			if (words.back() == "KEYS")
				break;
			must(node(from), words);
		}
		for (const size_t tell : {to, from})
			must(node(tell), {"CLUSTER", "SETSLOT", number, "NODE", target});
	}
}

} // namespace forktail::test
