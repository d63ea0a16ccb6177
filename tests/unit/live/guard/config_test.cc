// SPDX-License-Identifier: MIT
// The service's configuration: the forktail-record options and the triggers it defines, and a line number
// with each error.
#include <algorithm>

#include "live/config.h"
#include "tests/support/catch.h"

using namespace forktail::live::guard;

namespace
{

Config parsed(const std::string &text)
{
	Config config;
	std::string error;
	const bool good = ParseConfig(text, "record.toml", &config, &error);
	INFO(error);
	REQUIRE(good);
	return config;
}

std::string refused(const std::string &text)
{
	Config config;
	std::string error;
	INFO(text);
	REQUIRE_FALSE(ParseConfig(text, "record.toml", &config, &error));
	return error;
}

constexpr uint64_t kSecond = 1'000'000'000;

} // namespace

TEST_CASE("the [record] section becomes forktail-record's options")
{
	const Config config = parsed("[record]\n"
				     "name = [\"redis-server\", \"memcached\"]\n"
				     "port = 7000\n"
				     "directory = \"/run/forktail/ring\"\n"
				     "keep = \"5m,500MB\"\n"
				     "user = \"forktail\"\n"
				     "light = true\n"
				     "samples = false\n");
	CHECK(config.directory == "/run/forktail/ring");
	CHECK(config.record == std::vector<std::string>{"--name", "redis-server", "--name", "memcached",
							"--port", "7000", "-o", "/run/forktail/ring",
							"--keep", "5m,500MB", "--user", "forktail", "--light",
							"--no-samples"});
	CHECK(parsed("[record]\ndirectory = \"/r\"\n").record ==
	      std::vector<std::string>{"-o", "/r", "--keep", "10m,1GB"});
}

TEST_CASE("triggers have the defaults of all snapshots unless they override them")
{
	const Config config = parsed("[snapshots]\n"
				     "before = \"20s\"\n"
				     "cooldown = \"1m\"\n"
				     "keep = 7\n"
				     "bytes = \"2GB\"\n"
				     "when-full = \"stop\"\n"
				     "exec = [\"/bin/true\", \"x\"]\n"
				     "[[trigger]]\n"
				     "on = \"stall(fork) > 20ms\"\n"
				     "[[trigger]]\n"
				     "on = \"iteration > 50ms\"\n"
				     "name = \"slow\"\n"
				     "after = \"1s\"\n"
				     "server = \"redis-server:6379\"\n"
				     "exec = []\n"
				     "[[trigger]]\n"
				     "name = \"deploy\"\n");
	REQUIRE(config.triggers.size() == 3);
	CHECK(config.limits.cooldown_ns == 60 * kSecond);
	CHECK(config.limits.count == 7);
	CHECK(config.limits.bytes == 2'000'000'000);
	CHECK(config.limits.stop_when_full);
	const Trigger *fork = FindTrigger(config.triggers, "stall-fork");
	const Trigger *slow = FindTrigger(config.triggers, "slow");
	const Trigger *deploy = FindTrigger(config.triggers, "deploy");
	REQUIRE((fork && slow && deploy));
	CHECK(fork->before_ns == 20 * kSecond);
	CHECK(fork->after_ns == 5 * kSecond);
	CHECK(fork->command.argv == std::vector<std::string>{"/bin/true", "x"});
	CHECK(slow->after_ns == kSecond);
	CHECK(slow->server == "redis-server:6379");
	CHECK(slow->command.argv.empty());
	CHECK(deploy->rule.what == What::Named);
	CHECK(FindTrigger(config.triggers, "iteration") == nullptr);
}

TEST_CASE("a ring is retained as long as the recorder supports")
{
	const Config config =
	    parsed("[record]\nname = \"redis-server\"\ndirectory = \"/r\"\nkeep = \"7d,20GB\"\n");
	const std::vector<std::string> &words = config.record;
	const auto keep = std::find(words.begin(), words.end(), "--keep");
	REQUIRE((keep != words.end() && keep + 1 != words.end()));
	CHECK(keep[1] == "7d,20GB");
	for (const char *wrong : {"9s", "8d", "10m,3MB", "10"}) {
		INFO(wrong);
		CHECK(refused("[record]\nkeep = \"" + std::string(wrong) + "\"\n")
			  .find("record.toml:2: `keep` must be a time from 10s") == 0);
	}
}

TEST_CASE("an error in the configuration is one sentence with its line")
{
	CHECK(refused("[record]\nnmae = \"x\"\n") == "record.toml:2: [record] has no `nmae`");
	CHECK(refused("[recorder]\n") == "record.toml:1: the configuration has no `recorder`");
	CHECK(refused("[record]\ndirectory = \"ring\"\n") ==
	      "record.toml:2: `directory` must be an absolute path, not \"ring\"");
	CHECK(refused("[record]\nport = 70000\n") ==
	      "record.toml:2: `port` must be a number from 1 to 65535, not \"70000\"");
	CHECK(refused("[record]\nkeep = \"long\"\n") == "record.toml:2: `keep` must be a time from 10s to 7d "
							"and a size of at least 4MB, such as 10m or 10m,2GB, "
							"not \"long\"");
	CHECK(refused("[record]\nlight = \"yes\"\n") == "record.toml:2: `light` must be true or false");
	CHECK(refused("[record]\nrequests = \"1/3\"\n")
		  .find("record.toml:2: `requests` must be auto, or 1/N") == 0);
	CHECK(refused("[record]\nhash-clients = true\n") == "record.toml:2: `hash-clients` needs `requests`");
	CHECK(refused("[record]\nkeys = 8\n") == "record.toml:2: `keys` needs `requests`");
	CHECK(refused("[record]\nrequests = \"auto\"\nhash-keys = true\n") ==
	      "record.toml:3: `hash-keys` needs `keys`");
	CHECK(refused("[record]\nlight = true\nexact = \"fentry\"\n") ==
	      "record.toml:3: `light` and `exact` are mutually exclusive");
	CHECK(refused("[snapshots]\nbefore = \"30\"\n") ==
	      "record.toml:2: `before` must be a time from 0 ns to 3,600 s such as \"30s\", not \"30\"");
	CHECK(refused("[snapshots]\nkeep = 0\n") ==
	      "record.toml:2: `keep` must be a number from 1 to 10,000");
	CHECK(refused("[snapshots]\nbytes = \"much\"\n") ==
	      "record.toml:2: `bytes` must be a size such as \"1GB\", not \"much\"");
	CHECK(refused("[snapshots]\nwhen-full = \"panic\"\n") ==
	      "record.toml:2: `when-full` must be \"oldest-go\" or \"stop\", not \"panic\"");
	CHECK(refused("[snapshots]\nexec = [\"logger\"]\n").find("no shell is used, not \"logger\"") !=
	      std::string::npos);
	CHECK(refused("[[trigger]]\non = \"turn > 5\"\n")
		  .find("record.toml:2: the rule \"turn > 5\" is invalid") == 0);
	CHECK(refused("[[trigger]]\n") ==
	      "record.toml:1: a [[trigger]] needs a rule (`on`) or a name for forktail trigger (`name`)");
	CHECK(refused("[[trigger]]\nname = \"../x\"\n").find("consists of at most 40 letters") !=
	      std::string::npos);
	CHECK(refused("[[trigger]]\nname = \"a\"\n[[trigger]]\nname = \"a\"\n") ==
	      "record.toml:3: two triggers have the name \"a\": change one `name`");
	CHECK(refused("[trigger]\nname = \"a\"\n") ==
	      "record.toml:1: [[trigger]] must be written with two brackets");
	CHECK(refused("record = \n").find("record.toml:1: ") == 0);
}
