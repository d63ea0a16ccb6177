// SPDX-License-Identifier: MIT
// A real memcached for a test. See memcached.h.
#include "tests/support/servers/memcached.h"

#include "tests/support/servers/started.h"

namespace forktail::test
{
namespace
{

std::shared_ptr<Started> start(const MemcachedOptions &options)
{
	nlohmann::json plan = plan_of("memcached", options.tcp, options.config);
	plan["environment"] = environment_of(options.environment);
	return started(plan);
}

} // namespace

Memcached::Memcached(const MemcachedOptions &options) : Served(start(options), 0) {}

std::string Memcached::stat(const std::string &name) const
{
	const std::string all = "\n" + command("stats", "END\r\n");
	const std::string line = "\nSTAT " + name + " ";
	const size_t at = all.find(line);
	if (at == std::string::npos)
		return "";
	const size_t from = at + line.size();
	return all.substr(from, all.find('\r', from) - from);
}

} // namespace forktail::test
