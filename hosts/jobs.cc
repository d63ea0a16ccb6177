// SPDX-License-Identifier: MIT
// See jobs.h. On a host that is cut off, programs end by themselves two minutes after the planned end.
#include "jobs.h"

#include <algorithm>

#include "common/process/words.h"

namespace forktail::hosts
{
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
