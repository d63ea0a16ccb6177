// SPDX-License-Identifier: MIT
// A real twemproxy for a test. See nutcracker.h.
#include "tests/support/servers/nutcracker.h"

#include "tests/support/servers/started.h"

namespace forktail::test
{
namespace
{

std::shared_ptr<Started> start(const NutcrackerOptions &options)
{
	nlohmann::json plan = plan_of("nutcracker", options.tcp, options.settings);
	plan["config"].push_back("distribution: " + options.distribution);
	if (options.protocol == NutcrackerOptions::MEMCACHED)
		plan["config"].push_back("redis: false");
	for (const auto &server : options.servers)
		plan["behind"].push_back(
		    {options.named ? "server" + std::to_string(plan["behind"].size()) : "", server});
	return started(plan);
}

} // namespace

Nutcracker::Nutcracker(const NutcrackerOptions &options) : Served(start(options), 0) {}

std::string Nutcracker::stats() const
{
	const std::string line = read_file("/proc/" + std::to_string(pid()) + "/cmdline");
	const std::string option("\0-s\0", 4);
	return ask({"", std::stoi(line.substr(line.find(option) + option.size()))}, "", "\n");
}

} // namespace forktail::test
