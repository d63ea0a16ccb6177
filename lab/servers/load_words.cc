// SPDX-License-Identifier: MIT
// Finds the installed servers and their versions, and the options with which forktail-load reaches running
// ones.
#include <cstdlib>
#include <sstream>
#include <unistd.h>

#include "common/process.h"
#include "kinds.h"
#include "lab/host/machine.h"
#include "servers.h"

namespace forktail::lab
{
namespace
{

const ServerPlan *PlanOf(const Topology &topology, const std::string &server)
{
	for (const ServerPlan &plan : topology.plans)
		if (plan.name == server)
			return &plan;
	return nullptr;
}

// A program built by script/servers: in $FORKTAIL_SERVERS, else in its directory at build time.
std::string NewerProgram(const std::string &name)
{
	const char *directory = getenv("FORKTAIL_SERVERS");
	std::string file = (directory && *directory ? directory : FORKTAIL_SERVERS) + ("/" + name);
	return access(file.c_str(), X_OK) == 0 ? file : "";
}

} // namespace

// The first number with a dot in its --version: "Redis server v=7.0.15 sha=...", "This is nutcracker-0.5.0".
std::string VersionOf(const std::string &path)
{
	std::string text;
	for (const std::string &line : common::LinesOf({.name = path, .argv = {path, "--version"}, .err = 1}))
		text += line + '\n';
	const char *kNumber = "0123456789.";
	for (size_t at = 0; (at = text.find_first_of("0123456789", at)) != std::string::npos;) {
		size_t end = text.find_first_not_of(kNumber, at);
		std::string number = text.substr(at, end - at);
		if (number.find('.') != std::string::npos)
			return number;
		at = end;
	}
	return "";
}

bool FindServer(const std::string &kind, std::string *path, std::string *version)
{
	const ServerKind *row = FindKind(kind);
	if (!row)
		return false;
	for (const char *program : row->programs) {
		*path = row->made == Made::Always ? "" : FindProgram(program);
		if (path->empty() && row->made != Made::No)
			*path = NewerProgram(program);
		if (path->empty())
			continue;
		*version = VersionOf(*path);
		return true;
	}
	return false;
}

std::vector<std::string> LoadWords(const Topology &topology, const std::string &name, bool logged)
{
	std::vector<std::string> words;
	std::vector<Instance *> instances = InstancesOf(topology, name);
	const ServerPlan *plan = instances.empty() ? nullptr : PlanOf(topology, instances[0]->server);
	if (!plan)
		return words;
	const ServerKind *kind = instances[0]->kind;
	// Clusters and Sentinels report their members, so killed nodes are not named. Without any address,
	// forktail-load would use the default port.
	if (const char *option = plan->cluster ? "--server" : kind->guide_option) {
		for (const Instance *instance : instances)
			if (instance->redis)
				words.insert(words.end(), {option, instance->Address()});
		if (words.empty())
			return words;
		if (plan->cluster)
			words.insert(words.begin(), "--cluster");
		words.insert(words.end(), kind->load_words.begin(), kind->load_words.end());
		return words;
	}
	const Instance &first = *instances[0];
	if (instances.size() > 1)
		for (const Instance *instance : instances)
			words.insert(words.end(), {"--server", instance->Address()});
	else if (first.port)
		words = {"-h", "127.0.0.1", "-p", std::to_string(first.port)};
	else
		words = {"-s", first.socket};
	if (kind->proxy && !plan->of.empty()) { // all proxies have the same servers
		std::vector<Instance *> behind = InstancesOf(topology, plan->of);
		if (logged)
			for (const Instance *server : behind)
				words.insert(words.end(),
					     {"--behind", server->name + "=" + server->Address()});
		kind = behind[0]->kind;
	}
	words.insert(words.end(), kind->load_words.begin(), kind->load_words.end());
	return words;
}

std::vector<std::string> CheckWords(const std::string &kind, bool cluster)
{
	const std::string host = "127.0.0.1";
	const ServerKind &row = *FindKind(kind);
	if (cluster)
		return {"--cluster", "--server", host};
	if (row.guide_option)
		return {row.guide_option, host};
	std::vector<std::string> words = row.load_words;
	words.insert(words.end(), {"-h", host});
	return words;
}

} // namespace forktail::lab
