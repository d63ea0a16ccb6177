// SPDX-License-Identifier: MIT
// HAProxy as a kind of server: a proxy with several threads, each of which has connections of its own. It
// passes a connection's bytes on to one server and knows no commands, so there is one behind it.
#include <cerrno>
#include <cstring>
#include <fstream>

#include "starting.h"

namespace forktail::lab
{
namespace
{

// Times are those of a load that may rest for as long as it likes.
bool WriteConfig(const std::string &path, const ServerPlan &plan, const Behind &behind,
		 const Endpoint &endpoint, std::string *error)
{
	auto bound = [](const std::string &address) { return (address[0] == '/' ? "unix@" : "") + address; };
	std::ofstream out(path);
	out << "global\n  nbthread 2\n  maxconn 4000\n";
	for (const std::string &line : plan.config) // what comes later counts
		out << "  " << line << '\n';
	out << "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 24d\n  timeout server 24d\n"
	    << "listen forktail\n  bind " << bound(endpoint.Address()) << "\n  server " << behind.name << ' '
	    << bound(behind.address) << '\n';
	out.close();
	if (!out)
		*error = "cannot write " + path + ": " + std::strerror(errno);
	return static_cast<bool>(out);
}

bool StartHaproxy(const Starting &starting, size_t, Instance *instance, std::string *error)
{
	const ServerPlan &plan = *starting.plan;
	std::vector<Behind> behind = BehindOf(starting);
	if (behind.size() != 1) {
		*error = plan.name + " forwards connections to exactly one server, but " + plan.of + " has " +
			 std::to_string(behind.size()) + " instances";
		return false;
	}
	std::string config = instance->directory + "/haproxy.cfg", unwritten;
	auto command = [&](const Endpoint &endpoint) {
		WriteConfig(config, plan, behind[0], endpoint, &unwritten);
		Command start = CommandOf(starting, *instance);
		start.argv.insert(start.argv.end(), {"-db", "-f", config});
		return start;
	};
	bool good = StartListening(starting.session, plan.tcp ? "" : instance->directory + "/haproxy.sock",
				   command, PatienceSeconds(starting), instance, &instance->child, error);
	if (!unwritten.empty())
		*error = unwritten;
	return good && unwritten.empty();
}

} // namespace

extern const ServerKind kHaproxy;
const ServerKind kHaproxy = {
    .name = "haproxy", .programs = {"haproxy"}, .start = StartHaproxy, .of = "in front of", .proxy = true};

} // namespace forktail::lab
