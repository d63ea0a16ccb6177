// SPDX-License-Identifier: MIT
// The guard of a ring, started by its recorder, on a real redis-server: what fires, what the snapshot
// contains, which user runs the command, and what callers of the control socket cannot do.
#include <csignal>
#include <filesystem>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "live/config.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/memory_cgroup.h"
#include "tests/support/process.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;
using forktail::live::guard::AskForTrigger;
using forktail::live::guard::TriggerAnswer;

namespace
{

// Snapshots that contain this file.
std::vector<std::string> snapshots(const std::string &ring, const std::string &file)
{
	std::vector<std::string> paths;
	std::error_code ec;
	for (const auto &entry : std::filesystem::directory_iterator(ring + "/snapshots", ec))
		if (std::filesystem::exists(entry.path() / file))
			paths.push_back(entry.path());
	return paths;
}

int caller(const std::string &path)
{
	struct sockaddr_un at = {};
	at.sun_family = AF_UNIX;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path.c_str());
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connect(fd, reinterpret_cast<struct sockaddr *>(&at), sizeof(at)) == 0)
		return fd;
	close(fd);
	return -1;
}

// A ring of the user nobody in a directory that others cannot enter, and a command that prints its user.
struct Guarded {
	TempDir dir;
	Redis redis;
	std::string ring = dir.file("ring"), said = dir.file("said/by"), control = ring + "/control";
	std::unique_ptr<Process> recorder;

	// `within`: a command that runs the recorder, which is in the directory `bin`.
	explicit Guarded(const std::vector<std::string> &within = {},
			 const std::string &bin = FORKTAIL_BIN_DIR)
	{
		chmod(dir.path().c_str(), 0755);
		const std::string command = dir.file("command.sh"), config = dir.file("record.toml");
		write_file(command, "#!/bin/sh\necho \"$(id -un) $FORKTAIL_TRIGGER $2\" >> \"$1\"\n");
		chmod(command.c_str(), 0755);
		std::filesystem::create_directory(dir.file("said"));
		chmod(dir.file("said").c_str(), 0777);
		write_file(config,
			   "[snapshots]\nbefore = \"3s\"\nafter = \"500ms\"\ncooldown = \"1s\"\nkeep = 2\n"
			   "exec = [\"" +
			       command + "\", \"" + said + "\"]\n[control]\nsocket = \"" + control +
			       "\"\n[[trigger]]\non = \"stall(stopped) > 50ms\"\n"
			       "[[trigger]]\nname = \"deploy\"\n");
		chmod(config.c_str(), 0644);
		std::vector<std::string> argv = within;
		argv.insert(argv.end(),
			    {bin + "/forktail-record", "--pid", std::to_string(redis.pid()), "--keep",
			     "1m,100MB", "--user", "nobody", "-o", ring, "--config", config});
		recorder = std::make_unique<Process>(argv);
	}
	// The guard may answer before the recorder has begun. A snapshot requested then has no recorded time.
	bool ready()
	{
		return eventually(
		    [&] {
			    return std::filesystem::exists(control) &&
				   recorder->err().find("recording ") != std::string::npos;
		    },
		    Seconds(20));
	}
};

} // namespace

TEST_CASE("a stopped server is in a snapshot that names the stop, and the command has run as the ring's user")
{
	Guarded g;
	INFO(g.recorder->err());
	REQUIRE(g.ready());
	sleep_for(Seconds(3));
	// While idle: requests at that time would have waited too.
	g.redis.process().signal(SIGSTOP);
	sleep_for(Seconds(0.3));
	g.redis.process().signal(SIGCONT);
	// At idle priority, so it is late on a busy machine.
	REQUIRE(eventually([&] { return !snapshots(g.ring, "explain.json").empty(); }, Seconds(120)));
	const std::string path = snapshots(g.ring, "explain.json")[0];
	CHECK(path.find("-stall-stopped") != std::string::npos);
	const auto fired = parse_json(read_file(path + "/trigger.json"));
	CHECK(fired["fired"][0]["trigger"] == "stall-stopped");
	CHECK(fired["fired"][0]["what"].get<std::string>().find("stopped for ") == 0);
	CHECK(read_file(path + "/explain.txt").find("stopped") != std::string::npos);
	CHECK(parse_json(read_file(path + "/explain.json"))["causes"].dump().find("stopped") !=
	      std::string::npos);
	for (const auto &entry : std::filesystem::directory_iterator(path))
		CHECK(entry.path().filename().string()[0] != '.');
	REQUIRE(eventually([&] { return !read_file(g.said).empty(); }, Seconds(10)));
	CHECK(read_file(g.said) == "nobody stall-stopped " + path + "\n");
	struct stat there = {};
	REQUIRE(stat(path.c_str(), &there) == 0);
	CHECK((there.st_mode & 077) == 0);
}

TEST_CASE("callers can name triggers and do nothing else")
{
	Guarded g;
	INFO(g.recorder->err());
	REQUIRE(g.ready());
	std::string answer;
	CHECK(forktail::live::guard::AskForTrigger(g.ring, "nosuch", &answer) ==
	      forktail::live::guard::TriggerAnswer::No);
	CHECK(answer == "the configuration has no trigger of that name");
	CHECK(forktail::live::guard::AskForTrigger(g.ring, "stall-stopped", &answer) ==
	      forktail::live::guard::TriggerAnswer::No);
	CHECK(answer == "that trigger has a rule. It fires only by its rule.");
	CHECK(forktail::live::guard::AskForTrigger(g.ring, std::string(199, 'x') + "\x1b[2J", &answer) ==
	      forktail::live::guard::TriggerAnswer::No);

	// A thousand that connect and send nothing, or no complete line.
	std::vector<int> callers;
	for (int i = 0; i < 1000; i++) {
		const int fd = caller(g.control);
		if (fd >= 0 && i % 2)
			(void)!send(fd, std::string(4096, '\0').data(), 4096, MSG_NOSIGNAL | MSG_DONTWAIT);
		callers.push_back(fd);
	}
	CHECK(eventually(
	    [&] {
		    return forktail::live::guard::AskForTrigger(g.ring, "deploy", &answer) ==
			   forktail::live::guard::TriggerAnswer::Yes;
	    },
	    Seconds(15)));
	for (const int fd : callers)
		if (fd >= 0)
			close(fd);
	const bool made = eventually([&] { return !snapshots(g.ring, "trigger.json").empty(); }, Seconds(30));
	INFO(g.recorder->err());
	CHECK(made);
	CHECK(g.recorder->running());
}

TEST_CASE("an explanation may use half of the cgroup's memory, and the kernel kills it before the recorder")
{
	constexpr uint64_t kLimit = 256 << 20;
	MemoryCgroup group(kLimit);
	if (!group.usable()) {
		WARN("SKIPPED: cannot make a cgroup with a memory limit");
		return;
	}
	TempDir bin;
	chmod(bin.path().c_str(), 0755);
	for (const char *name : {"forktail-record", "forktail-guard"})
		std::filesystem::copy(program(name), bin.file(name));
	// In place of an explanation: its limits.
	write_file(bin.file("forktail"), "#!/bin/sh\ncat /proc/self/oom_score_adj\nulimit -d\necho \"$*\"\n");
	REQUIRE(chmod(bin.file("forktail").c_str(), 0755) == 0);
	Guarded g(group.within({}), bin.path());
	INFO(g.recorder->err());
	REQUIRE(g.ready());
	std::string answer;
	CHECK(AskForTrigger(g.ring, "deploy", &answer) == TriggerAnswer::Yes);
	REQUIRE(eventually([&] { return !snapshots(g.ring, "explain.txt").empty(); }, Seconds(60)));
	const std::string limits = read_file(snapshots(g.ring, "explain.txt")[0] + "/explain.txt");
	INFO(limits);
	CHECK(limits.find("1000\n" + std::to_string(kLimit / 2 / 1024) + "\n") == 0);
	CHECK(limits.find(" --memory " + std::to_string(64 << 20)) != std::string::npos);
	const std::string pid = std::to_string(g.recorder->pid());
	CHECK(read_file("/proc/" + pid + "/oom_score_adj") == read_file("/proc/self/oom_score_adj"));
}
