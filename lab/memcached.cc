// SPDX-License-Identifier: MIT
// Starting memcached, which listens on a Unix socket or on TCP.
#include <unistd.h>

#include "lab/servers_parts.h"

namespace forktail
{

bool StartMemcached(const Starting &starting, Instance *instance, std::string *error)
{
	auto command = [&](const Endpoint &endpoint) {
		Command start = CommandOf(starting, *instance);
		std::vector<std::string> &argv = start.argv;
		if (endpoint.port)
			argv.insert(argv.end(),
				    {"-l", "127.0.0.1", "-p", std::to_string(endpoint.port), "-U", "0"});
		else
			argv.insert(argv.end(), {"-s", endpoint.socket});
		if (geteuid() == 0)
			argv.insert(argv.end(), {"-u", "root"}); // it refuses to run as root unless told to
		argv.insert(argv.end(), starting.plan->config.begin(), starting.plan->config.end());
		return start;
	};
	return StartListening(starting.session,
			      starting.plan->tcp ? "" : instance->directory + "/memcached.sock", command,
			      PatienceSeconds(starting), instance, &instance->child, error);
}

} // namespace forktail
