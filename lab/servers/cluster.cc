// SPDX-License-Identifier: MIT
// A Redis Cluster: created with the commands of redis-cli --cluster create; slots are moved with those of
// redis-cli --cluster reshard. The lab sends them itself to notice signals and dead servers, and to wait for
// states instead of fixed times.
#include <sstream>

#include "servers.h"
#include "starting.h"

namespace forktail::lab
{
namespace
{

constexpr size_t kSlots = 16384;
constexpr double kFormSeconds = 120;
constexpr const char *kKeysAtOnce = "10"; // as in redis-cli
constexpr const char *kMigrateMs = "10000";

bool SendCommand(Session *session, const Instance &node, const std::vector<std::string> &words,
		 std::string *error)
{
	std::vector<std::string> reply;
	return Ask(session, node.redis.get(), words, &reply, error);
}

bool AskText(Session *session, const Instance &node, const std::vector<std::string> &words, std::string *text,
	     std::string *error)
{
	std::vector<std::string> reply;
	if (!Ask(session, node.redis.get(), words, &reply, error))
		return false;
	*text = reply.empty() ? "" : reply[0];
	return true;
}

bool ReadId(Session *session, const Instance &node, std::string *id, std::string *error)
{
	return AskText(session, node, {"CLUSTER", "MYID"}, id, error);
}

// A line of CLUSTER NODES: id, address, flags, primary, three times and counts, link, slots.
struct NodeLine {
	std::string id, flags, slots;
};

bool ReadNodes(Session *session, const Instance &node, std::vector<NodeLine> *nodes, std::string *error)
{
	std::string text;
	if (!AskText(session, node, {"CLUSTER", "NODES"}, &text, error))
		return false;
	nodes->clear();
	std::istringstream lines(text);
	for (std::string line; std::getline(lines, line);) {
		NodeLine one;
		std::string skipped;
		std::istringstream words(line);
		words >> one.id >> skipped >> one.flags;
		for (int i = 0; i < 5; i++)
			words >> skipped;
		std::getline(words, one.slots);
		nodes->push_back(one);
	}
	return true;
}

bool Has(const std::string &text, const std::string &part)
{
	return text.find(part) != std::string::npos;
}

size_t CountWith(const std::vector<NodeLine> &nodes, const std::string &flag)
{
	size_t count = 0;
	for (const NodeLine &node : nodes)
		count += Has(node.flags, flag);
	return count;
}

bool GiveSlots(Session *session, const std::vector<Instance *> &nodes, size_t primaries, std::string *error)
{
	for (size_t i = 0; i < primaries; i++) {
		std::vector<std::string> words = {"CLUSTER", "ADDSLOTS"};
		for (size_t slot = kSlots * i / primaries; slot < kSlots * (i + 1) / primaries; slot++)
			words.push_back(std::to_string(slot));
		if (!SendCommand(session, *nodes[i], {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)},
				 error) ||
		    !SendCommand(session, *nodes[i], words, error))
			return false;
	}
	return true;
}

// Introduces every pair of nodes instead of waiting for gossip.
bool Meet(Session *session, const std::vector<Instance *> &nodes, std::string *error)
{
	for (size_t i = 1; i < nodes.size(); i++)
		for (size_t other = 0; other < i; other++)
			if (!SendCommand(session, *nodes[i],
					 {"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes[other]->port)},
					 error))
				return false;
	for (Instance *node : nodes) {
		auto known = [&](bool *yes, std::string *why) {
			std::vector<NodeLine> lines;
			if (!ReadNodes(session, *node, &lines, why))
				return false;
			*yes = lines.size() == nodes.size() && CountWith(lines, "handshake") == 0;
			return true;
		};
		if (!Await(session, kFormSeconds, node->name + " did not find the other nodes", known, error))
			return false;
	}
	return true;
}

bool MakeReplicas(Session *session, const std::vector<Instance *> &nodes, size_t primaries,
		  std::string *error)
{
	for (size_t i = primaries; i < nodes.size(); i++) {
		std::string id;
		if (!ReadId(session, *nodes[i % primaries], &id, error) ||
		    !SendCommand(session, *nodes[i], {"CLUSTER", "REPLICATE", id}, error))
			return false;
	}
	return true;
}

bool AwaitClusterServing(Session *session, const std::vector<Instance *> &nodes, size_t primaries,
			 std::string *error)
{
	for (size_t i = 0; i < nodes.size(); i++) {
		auto serves = [&](bool *yes, std::string *why) {
			RedisInfo info;
			std::string cluster;
			std::vector<NodeLine> lines;
			if (!ReadInfo(session, nodes[i]->redis.get(), &info, why))
				return false;
			if (i >= primaries && info["master_link_status"] != "up")
				return true;
			if (!AskText(session, *nodes[i], {"CLUSTER", "INFO"}, &cluster, why) ||
			    !ReadNodes(session, *nodes[i], &lines, why))
				return false;
			*yes = Has(cluster, "cluster_state:ok") &&
			       CountWith(lines, "slave") == nodes.size() - primaries;
			return true;
		};
		if (!Await(session, kFormSeconds,
			   nodes[i]->name + " did not report cluster_state:ok with all replicas", serves,
			   error))
			return false;
	}
	return true;
}

// The first slots of a node.
bool FirstSlots(Session *session, const Instance &node, size_t count, std::vector<size_t> *slots,
		std::string *error)
{
	std::vector<NodeLine> lines;
	if (!ReadNodes(session, node, &lines, error))
		return false;
	for (const NodeLine &line : lines) {
		if (!Has(line.flags, "myself"))
			continue;
		std::istringstream ranges(line.slots);
		for (std::string range; ranges >> range;) {
			if (range[0] == '[') // one that is being moved
				continue;
			size_t dash = range.find('-');
			size_t last = std::stoul(dash == std::string::npos ? range : range.substr(dash + 1));
			for (size_t slot = std::stoul(range); slot <= last && slots->size() < count; slot++)
				slots->push_back(slot);
		}
	}
	if (slots->size() == count)
		return true;
	*error = node.name + " has " + std::to_string(slots->size()) + " slots: cannot move " +
		 std::to_string(count);
	return false;
}

bool MoveKeys(Session *session, const Instance &from, const Instance &to, const std::string &slot,
	      std::string *error)
{
	for (;;) {
		std::vector<std::string> keys;
		if (!Ask(session, from.redis.get(), {"CLUSTER", "GETKEYSINSLOT", slot, kKeysAtOnce}, &keys,
			 error))
			return false;
		if (keys.empty())
			return true;
		std::vector<std::string> words = {"MIGRATE",  "127.0.0.1", std::to_string(to.port), "", "0",
						  kMigrateMs, "KEYS"};
		words.insert(words.end(), keys.begin(), keys.end());
		if (!SendCommand(session, from, words, error))
			return false;
	}
}

// Running primaries of the Cluster, `to` and `from` first: `to` must know its new slot before `from`
// redirects clients there.
bool PrimariesToInform(Session *session, const Topology &topology, Instance *from, Instance *to,
		       std::vector<Instance *> *primaries, std::string *error)
{
	*primaries = {to, from};
	for (Instance *node : InstancesOf(topology, from->server)) {
		RedisInfo info;
		if (node == from || node == to || !node->redis)
			continue;
		if (!ReadInfo(session, node->redis.get(), &info, error))
			return false;
		if (info["role"] == "master")
			primaries->push_back(node);
	}
	return true;
}

} // namespace

bool FormCluster(const Starting &starting, std::string *error)
{
	Session *session = starting.session;
	std::vector<Instance *> nodes = InstancesOf(*starting.topology, starting.plan->name);
	size_t primaries = static_cast<size_t>(starting.plan->count);
	return GiveSlots(session, nodes, primaries, error) && Meet(session, nodes, error) &&
	       MakeReplicas(session, nodes, primaries, error) &&
	       AwaitClusterServing(session, nodes, primaries, error);
}

bool MoveSlots(Session *session, Topology *topology, Instance *from, Instance *to, int slots,
	       std::string *error)
{
	for (Instance *node : {from, to})
		if (!node->redis) {
			*error = node->name + " does not run: cannot move slots";
			return false;
		}
	std::vector<size_t> numbers;
	return FirstSlots(session, *from, static_cast<size_t>(slots), &numbers, error) &&
	       MoveSlots(session, topology, from, to, numbers, error);
}

bool MoveSlots(Session *session, Topology *topology, Instance *from, Instance *to,
	       const std::vector<size_t> &numbers, std::string *error)
{
	std::string source, target;
	std::vector<Instance *> primaries;
	if (!ReadId(session, *from, &source, error) || !ReadId(session, *to, &target, error) ||
	    !PrimariesToInform(session, *topology, from, to, &primaries, error))
		return false;
	for (size_t number : numbers) {
		std::string slot = std::to_string(number);
		if (!SendCommand(session, *to, {"CLUSTER", "SETSLOT", slot, "IMPORTING", source}, error) ||
		    !SendCommand(session, *from, {"CLUSTER", "SETSLOT", slot, "MIGRATING", target}, error) ||
		    !MoveKeys(session, *from, *to, slot, error))
			return false;
		for (Instance *node : primaries)
			if (!SendCommand(session, *node, {"CLUSTER", "SETSLOT", slot, "NODE", target}, error))
				return false;
	}
	return true;
}

} // namespace forktail::lab
