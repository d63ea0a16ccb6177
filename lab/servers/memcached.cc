// SPDX-License-Identifier: MIT
// memcached as a kind of server: on a Unix socket or TCP, with counters from `stats`.
#include <fcntl.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

#include "starting.h"

namespace forktail::lab
{
namespace
{

constexpr int kStatsSeconds = 5;

bool StartMemcached(const Starting &starting, size_t, Instance *instance, std::string *error)
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
			argv.insert(argv.end(), {"-u", "root"}); // it refuses to run as root without this
		argv.insert(argv.end(), starting.plan->config.begin(), starting.plan->config.end());
		return start;
	};
	return StartListening(starting.session,
			      starting.plan->tcp ? "" : instance->directory + "/memcached.sock", command,
			      PatienceSeconds(starting), instance, &instance->child, error);
}

// Reads "stats": lines "STAT name value" up to "END". Empty if it does not answer in time.
RedisInfo ReadStats(const Instance &instance)
{
	int fd = ConnectTo(instance);
	if (fd < 0)
		return {};
	fcntl(fd, F_SETFL, 0); // blocking, with a time limit
	timeval limit = {kStatsSeconds, 0};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	std::string text;
	const std::string ask = "stats\r\n";
	if (send(fd, ask.data(), ask.size(), MSG_NOSIGNAL) > 0) {
		char chunk[4096];
		for (ssize_t n;
		     text.find("END\r\n") == std::string::npos && (n = recv(fd, chunk, sizeof chunk, 0)) > 0;)
			text.append(chunk, static_cast<size_t>(n));
	}
	close(fd);
	RedisInfo stats;
	std::istringstream in(text);
	for (std::string word, name, value; in >> word && word == "STAT" && in >> name && in >> value;)
		stats[name] = value;
	return stats;
}

} // namespace

extern const ServerKind kMemcached;
const ServerKind kMemcached = {.name = "memcached",
			       .programs = {"memcached"},
			       .start = StartMemcached,
			       .counters = ReadStats,
			       .load_words = {"--protocol", "memcache_text"}};

} // namespace forktail::lab
