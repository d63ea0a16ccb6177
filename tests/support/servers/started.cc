// SPDX-License-Identifier: MIT
// Sessions of the lab in a test program. See started.h.
#include "tests/support/servers/started.h"

#include <array>
#include <csignal>
#include <stdexcept>

#include "tests/support/tempdir.h"

namespace forktail::test
{

Started::Started(const std::string &directory)
{
	// A session takes over the signals that end a program, but a test has to handle its own.
	constexpr std::array ending = {SIGINT, SIGTERM, SIGHUP};
	std::array<struct sigaction, ending.size()> before = {};
	for (size_t i = 0; i < ending.size(); i++)
		sigaction(ending[i], nullptr, &before[i]);
	std::string why;
	const bool opened = lab::OpenSession(&session, &why);
	for (size_t i = 0; i < ending.size(); i++)
		sigaction(ending[i], &before[i], nullptr);
	topology.directory = directory;
	if (!opened || (directory.empty() && !lab::MakeTempDirectory(&session, &topology.directory, &why)))
		throw std::runtime_error(why);
}

Started::~Started()
{
	std::string why;
	lab::CloseSession(&session, &why);
}

void Started::start(const lab::ServerPlan &plan)
{
	std::string why;
	if (!lab::StartServers(&session, plan, topology.directory + "/logs", &topology, &why))
		throw std::runtime_error(why + (topology.instances.empty()
						    ? ""
						    : "\n" + read_file(topology.instances.back()->log)));
	for (auto &instance : topology.instances)
		instance->child->needed = false; // tests may end servers at any time
}

lab::ServerPlan plan_of(const std::string &kind, bool tcp, const std::vector<std::string> &config)
{
	lab::ServerPlan plan;
	plan.name = plan.kind = kind;
	plan.tcp = tcp;
	plan.config = config;
	return plan;
}

std::shared_ptr<Started> started(const lab::ServerPlan &plan)
{
	auto servers = std::make_shared<Started>();
	servers->start(plan);
	return servers;
}

} // namespace forktail::test
