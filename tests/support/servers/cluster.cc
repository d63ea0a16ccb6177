// SPDX-License-Identifier: MIT
// A real Redis Cluster for a test. See cluster.h.
#include "tests/support/servers/cluster.h"

#include "tests/support/servers/started.h"

namespace forktail::test
{

Cluster::Cluster(int primaries, int timeout_ms)
{
	nlohmann::json plan = plan_of("redis", true,
				      {"--cluster-node-timeout", std::to_string(timeout_ms),
				       "--repl-diskless-sync-delay", "0", "--enable-debug-command", "yes"});
	plan["cluster"] = true;
	plan["count"] = primaries;
	plan["replicas"] = 1;
	started_ = started(plan);
	for (size_t i = 0; i < started_->servers.size(); i++)
		nodes_.push_back(std::make_unique<Redis>(started_, i));
}

void Cluster::move(int first, int last, size_t from, size_t to)
{
	started_->ask({{"move", {from, to, first, last}}});
}

} // namespace forktail::test
