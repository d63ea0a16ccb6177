// SPDX-License-Identifier: MIT
// Sentinels for a test; see sentinel.h.
#include "tests/support/sentinel.h"

#include <fstream>
#include <stdexcept>

namespace forktail::test
{
namespace
{
constexpr int SENTINELS = 3;
}

Sentinels::Sentinels(int replicas, int down_ms)
{
	RedisOptions options;
	options.tcp = true;
	options.config = {"--repl-diskless-sync-delay", "0"};
	servers_.push_back(std::make_unique<Redis>(options));
	options.config.insert(options.config.end(),
			      {"--replicaof", "127.0.0.1 " + std::to_string(primary().port())});
	for (int i = 0; i < replicas; i++)
		servers_.push_back(std::make_unique<Redis>(options));
	for (int i = 0; i < SENTINELS; i++) {
		// A Sentinel rewrites its configuration, so it wants a file of its own.
		directories_.push_back(std::make_unique<TempDir>());
		const std::string file = directories_.back()->file("sentinel.conf");
		std::ofstream(file) << "sentinel monitor " << name << " 127.0.0.1 " << primary().port()
				    << " 2\n"
				    << "sentinel down-after-milliseconds " << name << " " << down_ms << "\n"
				    << "sentinel failover-timeout " << name << " 3000\n";
		RedisOptions sentinel;
		sentinel.tcp = true;
		sentinel.before = {file};
		sentinel.config = {"--sentinel"};
		sentinels_.push_back(std::make_unique<Redis>(sentinel));
	}
	const auto ready = [&] {
		for (auto &s : sentinels_) {
			const std::string about = s->command({"SENTINEL", "MASTER", name});
			if (about.find("num-slaves\n" + std::to_string(replicas)) == std::string::npos ||
			    about.find("num-other-sentinels\n2") == std::string::npos)
				return false;
		}
		for (size_t i = 1; i < servers(); i++)
			if (server(i).info("master_link_status") != "up")
				return false;
		return true;
	};
	if (!eventually(ready, Seconds(60)))
		throw std::runtime_error("Sentinels don't find each other, or the replicas");
}

} // namespace forktail::test
