// SPDX-License-Identifier: MIT
// forktail record --config as a service of type notify: the manager's end of its messages, and the service on
// a real redis-server.
#pragma once
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"

namespace forktail::test
{

// The manager's end of NOTIFY_SOCKET.
class Manager
{
public:
	explicit Manager(const std::string &path)
	    : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))
	{
		struct sockaddr_un at = {};
		at.sun_family = AF_UNIX;
		snprintf(at.sun_path, sizeof(at.sun_path), "%s", path.c_str());
		REQUIRE(bind(fd_, reinterpret_cast<struct sockaddr *>(&at), sizeof(at)) == 0);
		// The guard has changed to the ring's user by then.
		chmod(path.c_str(), 0666);
	}
	~Manager() { close(fd_); }
	Manager(const Manager &) = delete;
	Manager &operator=(const Manager &) = delete;

	// How many messages have this beginning, since the last call of this.
	size_t heard(const std::string &begin)
	{
		size_t count = 0;
		char text[1024];
		for (ssize_t n; (n = recv(fd_, text, sizeof(text), 0)) >= 0;) {
			const std::string message(text, static_cast<size_t>(n));
			all_ += message + "\n";
			count += message.compare(0, begin.size(), begin) == 0;
		}
		return count;
	}
	const std::string &all() const { return all_; }

private:
	int fd_;
	std::string all_;
};

struct Service {
	TempDir dir;
	Redis redis;
	std::string ring = dir.file("ring"), config = dir.file("record.toml"), notify = dir.file("notify");
	std::unique_ptr<Manager> manager;
	std::unique_ptr<Process> recorder;

	void write_config(const std::string &more)
	{
		write_file(config,
			   "[record]\nunix = \"" + redis.socket() + "\"\ndirectory = \"" + ring +
			       "\"\nkeep = \"1m,100MB\"\nuser = \"nobody\"\nlight = true\n[snapshots]\n"
			       "before = \"2s\"\nafter = \"500ms\"\n[control]\nsocket = \"" +
			       ring + "/control\"\n[[trigger]]\nname = \"deploy\"\n" + more);
		chmod(config.c_str(), 0644);
	}
	// `within`: a command that runs the recorder. `ring_at`: the ring, if it is elsewhere.
	explicit Service(const std::vector<std::string> &within = {}, const std::string &ring_at = "")
	{
		chmod(dir.path().c_str(), 0755);
		ring = ring_at.empty() ? ring : ring_at;
		write_config("");
		manager = std::make_unique<Manager>(notify);
		Start(within);
	}
	void Start(const std::vector<std::string> &within)
	{
		std::vector<std::string> argv = within;
		argv.insert(argv.end(), {program("forktail"), "record", "--config", config});
		ProcessOptions options;
		options.environment = {{"NOTIFY_SOCKET", notify}, {"WATCHDOG_USEC", "3000000"}};
		recorder = std::make_unique<Process>(argv, options);
	}
	bool ready()
	{
		return eventually([&] { return manager->heard("READY=1") == 1; }, Seconds(30));
	}
	Result trigger(const std::string &name) { return run({program("forktail"), "trigger", ring, name}); }
	size_t snapshots() const
	{
		std::error_code ec;
		size_t count = 0;
		for (const auto &entry : std::filesystem::directory_iterator(ring + "/snapshots", ec))
			count += std::filesystem::exists(entry.path() / "explain.txt");
		return count;
	}
};

} // namespace forktail::test
