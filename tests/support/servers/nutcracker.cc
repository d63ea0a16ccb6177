// SPDX-License-Identifier: MIT
// A real twemproxy for a test. See nutcracker.h.
#include "tests/support/servers/nutcracker.h"

#include <algorithm>

#include "tests/support/servers/started.h"

namespace forktail::test
{
namespace
{

std::shared_ptr<Started> start(const NutcrackerOptions &options)
{
	lab::ServerPlan plan = plan_of("nutcracker", options.tcp, options.settings);
	plan.config.push_back("distribution: " + options.distribution);
	if (options.protocol == NutcrackerOptions::MEMCACHED)
		plan.config.push_back("redis: false");
	for (const auto &server : options.servers)
		plan.behind.push_back(
		    {options.named ? "server" + std::to_string(plan.behind.size()) : "", server});
	return started(plan);
}

} // namespace

Nutcracker::Nutcracker(const NutcrackerOptions &options) : Served(start(options), 0) {}

std::string Nutcracker::stats() const
{
	const std::vector<std::string> &argv = started_->topology.instances[number_]->child->command.argv;
	const std::string port = *(std::find(argv.begin(), argv.end(), "-s") + 1);
	return ask({"", std::stoi(port)}, "", "\n");
}

} // namespace forktail::test
