// SPDX-License-Identifier: MIT
// The plan of a run on several hosts, and the jobs of each.
//
// An unknown key is an error, so that a misspelled key is not ignored.
#include <algorithm>
#include <cctype>

#include "common/process.h"
#include "common/toml.h"
#include "hosts/hosts.h"

namespace forktail::hosts
{

namespace
{

using common::Table;

// A name that is safe in file names and shell commands.
bool IsName(const std::string &name)
{
	return !name.empty() && name.size() <= 64 && std::isalnum(static_cast<unsigned char>(name[0])) &&
	       std::all_of(name.begin(), name.end(), [](unsigned char c) {
		       return std::isalnum(c) || c == '-' || c == '_' || c == '.';
	       });
}

void ReadHost(common::Table *table, Plan *plan)
{
	PlanHost host;
	table->Text("name", &host.name);
	host.address = host.name;
	table->Text("address", &host.address);
	host.network = host.address;
	table->Text("network", &host.network);
	table->Text("programs", &host.programs);
	if (!IsName(host.name))
		table->Refuse(
		    "a host needs a `name` that consists of letters, digits, '-', '_' and '.', not \"" +
		    host.name + "\"");
	if (host.address.empty() || host.address.find_first_of(",:; \t\n'\"") != std::string::npos)
		table->Refuse("the address of " + host.name +
			      " must be one name or address that mpirun accepts, not \"" + host.address +
			      "\"");
	for (const PlanHost &other : plan->hosts) {
		if (other.name == host.name)
			table->Refuse("two hosts have the name " + host.name);
		else if (other.address == host.address)
			table->Refuse("the hosts " + other.name + " and " + host.name +
				      " have the same address, " + host.address);
	}
	plan->hosts.push_back(host);
}

// Reads the host and name of a program. Names are unique per host.
void ReadPlace(common::Table *table, const Plan &plan, const char *what, const std::string &otherwise,
	       std::string *host, std::string *name)
{
	table->Text("host", host);
	table->Text("name", name);
	if (!FindHost(plan, *host))
		return table->Refuse("a " + std::string(what) + " needs a `host` from the plan, not \"" +
				     *host + "\"");
	auto taken = [&](const std::string &n) {
		for (const PlanRecorder &r : plan.recorders)
			if (r.host == *host && r.name == n)
				return true;
		for (const PlanLoad &l : plan.loads)
			if (l.host == *host && l.name == n)
				return true;
		return n == "clock"; // the recording of the clock comparison
	};
	if (name->empty()) {
		*name = otherwise;
		for (int i = 2; taken(*name); i++)
			*name = otherwise + "-" + std::to_string(i);
	}
	if (!IsName(*name))
		table->Refuse("a name consists of letters, digits, '-', '_' and '.', not \"" + *name + "\"");
	if (taken(*name))
		table->Refuse("the name \"" + *name + "\" is already used on " + *host);
}

void ReadRecorder(common::Table *table, Plan *plan)
{
	static const char *const kTargets[] = {"port", "pid", "name-of", "unix", "container", "cgroup"};
	PlanRecorder recorder;
	ReadPlace(table, *plan, "recorder", "server", &recorder.host, &recorder.name);
	for (const char *target : kTargets) {
		std::vector<std::string> words;
		table->Words(target, &words);
		for (const std::string &word : words) {
			recorder.targets.push_back(
			    "--" + std::string(std::string(target) == "name-of" ? "name" : target));
			recorder.targets.push_back(word);
		}
	}
	table->Words("options", &recorder.options);
	if (recorder.targets.empty())
		table->Refuse("a [[record]] needs a target: `port`, `pid`, `name-of`, `unix`, `container` or "
			      "`cgroup`");
	plan->recorders.push_back(recorder);
}

void ReadLoad(common::Table *table, Plan *plan)
{
	PlanLoad load;
	ReadPlace(table, *plan, "load", "load", &load.host, &load.name);
	table->Words("to", &load.to);
	table->Words("options", &load.options);
	plan->loads.push_back(load);
}

void ReadAll(common::Table *table, Plan *plan)
{
	std::string on_death = "end";
	table->Time("duration", &plan->duration_ns);
	table->Time("settle", &plan->settle_ns);
	table->Text("scratch", &plan->scratch);
	table->Text("on_death", &on_death);
	table->Flag("clocks", &plan->clocks);
	table->Words("mpirun", &plan->mpirun);
	plan->continue_on_death = on_death == "continue";
	if (on_death != "end" && on_death != "continue")
		table->Refuse("`on_death` must be \"end\" or \"continue\", not \"" + on_death + "\"");
	if (plan->scratch.empty() || plan->scratch[0] != '/')
		table->Refuse("`scratch` must be an absolute path, not \"" + plan->scratch + "\"");
	table->Each("hosts", "a host", [&](common::Table *one) { ReadHost(one, plan); });
	table->Each("record", "a recorder", [&](common::Table *one) { ReadRecorder(one, plan); });
	table->Each("load", "a load", [&](common::Table *one) { ReadLoad(one, plan); });
	if (plan->hosts.empty())
		table->Refuse("the plan has no [[hosts]]");
	if (plan->recorders.empty() && plan->loads.empty())
		table->Refuse("the plan needs at least one [[record]] or [[load]]");
	if (!plan->duration_ns)
		table->Refuse("`duration` is missing: set the length of the run, such as \"30s\"");
	table->End();
}

} // namespace

bool ParsePlan(const std::string &text, const std::string &path, Plan *plan, std::string *error)
{
	return common::ReadTables(
	    text, path, "a plan", [&](Table *table) { ReadAll(table, plan); }, error);
}

const PlanHost *FindHost(const Plan &plan, const std::string &name)
{
	for (const PlanHost &host : plan.hosts)
		if (host.name == name)
			return &host;
	return nullptr;
}

// On a host that is cut off, programs end by themselves two minutes after the planned end.

namespace
{

constexpr uint64_t kSpareSeconds = 120;

std::string Seconds(uint64_t ns)
{
	return std::to_string(ns / kSecondNs + (ns % kSecondNs != 0)) + "s";
}

} // namespace

std::vector<Job> JobsOf(const Plan &plan, const PlanHost &host, const std::string &directory)
{
	std::vector<Job> jobs;
	const std::string limit = Seconds(plan.duration_ns + plan.settle_ns + kSpareSeconds * kSecondNs);
	auto file = [&](const std::string &name) { return directory + "/" + name + ".forktail"; };
	if (plan.clocks && plan.hosts.size() > 1) {
		const PlanHost &first = plan.hosts[0];
		jobs.push_back({Job::kClock, "clock", {"forktail-clock"}});
		if (host.name == first.name)
			common::Append(&jobs.back().argv, {"serve", "--listen", first.network});
		else
			common::Append(&jobs.back().argv,
				       {"probe", first.network, "-o", file("clock"), "--duration", limit});
	}
	for (const PlanRecorder &r : plan.recorders) {
		if (r.host != host.name)
			continue;
		jobs.push_back({Job::kRecorder, r.name, {"forktail-record", "-o", file(r.name)}});
		common::Append(&jobs.back().argv, r.targets);
		common::Append(&jobs.back().argv, {"--duration", limit});
		common::Append(&jobs.back().argv, r.options);
	}
	for (const PlanLoad &l : plan.loads) {
		if (l.host != host.name)
			continue;
		jobs.push_back({Job::kLoad, l.name, {"forktail-load", "-o", file(l.name), "--progress"}});
		for (const std::string &server : l.to)
			common::Append(&jobs.back().argv, {"--server", server});
		common::Append(&jobs.back().argv,
			       {"--duration", std::to_string(plan.duration_ns / 1000000) + "ms"});
		common::Append(&jobs.back().argv, l.options);
	}
	return jobs;
}

std::string RolesOf(const Plan &plan, const PlanHost &host)
{
	auto count = [&](const auto &all) {
		return std::count_if(all.begin(), all.end(),
				     [&](const auto &one) { return one.host == host.name; });
	};
	const auto recorders = count(plan.recorders), loads = count(plan.loads);
	std::string roles = recorders > 1 ? std::to_string(recorders) + " recorders"
			    : recorders	  ? "recorder"
					  : "";
	if (loads)
		roles +=
		    (roles.empty() ? "" : " and ") + (loads > 1 ? std::to_string(loads) + " loads" : "load");
	return roles.empty() ? "nothing" : roles;
}

} // namespace forktail::hosts
