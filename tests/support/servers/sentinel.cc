// SPDX-License-Identifier: MIT
// Sentinels for a test. See sentinel.h.
#include "tests/support/servers/sentinel.h"

#include "tests/support/servers/started.h"

namespace forktail::test
{

Sentinels::Sentinels(int replicas, int down_ms)
{
	auto all = std::make_shared<Started>();
	nlohmann::json plan = plan_of("redis", true, {"--repl-diskless-sync-delay", "0"});
	all->start(plan);
	plan["name"] = "replica";
	plan["replica_of"] = "redis";
	plan["count"] = replicas;
	all->start(plan);
	plan = plan_of("sentinel", true,
		       {"down-after-milliseconds " + std::to_string(down_ms), "failover-timeout 3000"});
	plan["of"] = "redis";
	plan["count"] = 3;
	all->start(plan);
	for (size_t i = 0; i < all->servers.size(); i++)
		(all->servers[i].server == "sentinel" ? sentinels_ : servers_)
		    .push_back(std::make_unique<Redis>(all, i));
}

} // namespace forktail::test
