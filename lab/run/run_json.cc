// SPDX-License-Identifier: MIT
// Settings and memory are written only if there is one server, because explain could not assign them to one
// of several.
#include "run_json.h"

#include <nlohmann/json.hpp>

#include "common/process.h"
#include "files.h"
#include "lab/host/machine.h"
#include "lab/servers/kinds.h"
#include "programs.h"

namespace forktail::lab
{
namespace
{

using Json = nlohmann::ordered_json;

// Settings that matter to latency.
const char *const kShownConfig[] = {"appendonly",
				    "appendfsync",
				    "save",
				    "auto-aof-rewrite-percentage",
				    "aof-use-rdb-preamble",
				    "no-appendfsync-on-rewrite",
				    "rdbcompression",
				    "io-threads",
				    "maxmemory",
				    "disable-thp"};

// The only Redis server; nullptr unless there is exactly one.
Instance *OnlyServer(const Topology &topology)
{
	Instance *only = nullptr;
	for (const auto &instance : topology.instances)
		if (instance->redis) {
			if (only)
				return nullptr;
			only = instance.get();
		}
	return only;
}

// Reads settings one by one: old servers accept no more, and an unknown setting has an empty reply.
bool AddServer(Session *session, Redis *server, Json *json, std::string *error)
{
	Json config = Json::object();
	for (const char *name : kShownConfig) {
		std::vector<std::string> reply;
		if (!Ask(session, server, {"CONFIG", "GET", name}, &reply, error))
			return false;
		for (size_t i = 0; i + 1 < reply.size(); i += 2)
			config[reply[i]] = reply[i + 1];
	}
	RedisInfo info;
	if (!ReadInfo(session, server, &info, error))
		return false;
	(*json)["redis_config"] = config;
	(*json)["used_memory_bytes"] = Number(info, "used_memory");
	(*json)["rss_bytes"] = Number(info, "used_memory_rss");
	return true;
}

Json ReportsOf(const Forks &forks)
{
	Json reports = Json::array();
	for (const ForkReport &fork : forks.reports) {
		reports.push_back({{"t_ns", fork.t_ns},
				   {"kind", fork.kind},
				   {"asked_ns", fork.asked_ns},
				   {"latest_fork_usec", fork.fork_us},
				   {"used_memory", fork.used_memory},
				   {"used_memory_rss", fork.used_memory_rss}});
		if (fork.ended_ns) {
			reports.back()["ended_ns"] = fork.ended_ns;
			reports.back()[fork.cow_field] = fork.cow_bytes;
		}
	}
	return reports;
}

} // namespace

bool WriteRunJson(const PointRun &run, const RecordedRun &recorded, const std::string &path,
		  std::string *error)
{
	Json versions = {{"forktail", FORKTAIL_VERSION}}, commands = Json::array();
	for (const auto &instance : run.topology->instances) {
		versions[instance->kind->name] = instance->version;
		commands.push_back(common::CommandLine(instance->child->command.argv));
	}
	for (const std::string &command : recorded.commands)
		commands.push_back(command);
	Json json = {{"host", HostName()},
		     {"kernel", KernelRelease()},
		     {"scenario", run.scenario->name},
		     {"step", recorded.step},
		     {"values", run.point->values},
		     {"versions", versions},
		     {"commands", commands},
		     {"server_reports", ReportsOf(*recorded.forks)},
		     {"started_unix", recorded.started_unix}};
	Instance *server = OnlyServer(*run.topology);
	if (server && !AddServer(run.session, server->redis.get(), &json, error))
		return false;
	return ReplaceFile(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", error);
}

} // namespace forktail::lab
