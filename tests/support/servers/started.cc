// SPDX-License-Identifier: MIT
// Talks to serve.py over pipes. See started.h.
#include "tests/support/servers/started.h"

#include <csignal>
#include <stdexcept>
#include <sys/syscall.h>
#include <unistd.h>

namespace forktail::test
{

Started::Started(const std::string &kept)
{
	common::Command command{.name = "serve.py",
				.argv = {"/usr/bin/python3", "-B", FORKTAIL_SERVE},
				.in = common::kPipe,
				.out = common::kPipe,
				.err = 2};
	if (!kept.empty())
		command.argv.push_back(kept);
	std::string why;
	if (!common::StartChild(command, &child_, &why))
		throw std::runtime_error(why);
	directory = answer()["directory"];
}

Started::~Started()
{
	close(child_.in);
	child_.in = -1;
	while (!common::HasEnded(&child_))
		common::WaitForAny({child_.pidfd}, -1);
	common::CloseStreams(&child_);
	for (const StartedServer &one : servers)
		close(one.pidfd);
}

nlohmann::json Started::answer()
{
	for (;;) {
		const std::vector<std::string> lines = child_.out.Read();
		if (!lines.empty())
			return parse_json(lines.front());
		if (child_.out.fd < 0)
			throw std::runtime_error("serve.py ended");
		common::WaitForAny({child_.out.fd}, -1);
	}
}

nlohmann::json Started::ask(const nlohmann::json &request)
{
	const std::string line = request.dump() + "\n";
	if (write(child_.in, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
		throw std::runtime_error("serve.py does not read");
	nlohmann::json reply = answer();
	if (reply.contains("error"))
		throw std::runtime_error(reply["error"].get<std::string>());
	return reply;
}

void Started::start(const nlohmann::json &plan)
{
	const nlohmann::json all = ask({{"start", plan}})["servers"];
	for (size_t i = servers.size(); i < all.size(); i++) {
		StartedServer one{.server = all[i]["server"],
				  .pid = all[i]["pid"],
				  .socket = all[i]["socket"],
				  .port = all[i]["port"],
				  .directory = all[i]["directory"],
				  .log = all[i]["log"]};
		one.pidfd = static_cast<int>(syscall(SYS_pidfd_open, one.pid, 0));
		servers.push_back(one);
	}
}

nlohmann::json plan_of(const std::string &kind, bool tcp, const std::vector<std::string> &config)
{
	return {{"name", kind}, {"kind", kind}, {"tcp", tcp}, {"config", config}};
}

std::shared_ptr<Started> started(const nlohmann::json &plan)
{
	auto servers = std::make_shared<Started>();
	servers->start(plan);
	return servers;
}

nlohmann::json environment_of(const std::vector<std::string> &variables)
{
	nlohmann::json environment = nlohmann::json::object();
	for (const std::string &variable : variables) {
		const size_t equals = variable.find('=');
		environment[variable.substr(0, equals)] = variable.substr(equals + 1);
	}
	return environment;
}

} // namespace forktail::test
