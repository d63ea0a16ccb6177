// SPDX-License-Identifier: MIT
// forktail record --config as a service of type notify, on a real redis-server: its messages to the manager,
// that a reload keeps the ring, that forktail trigger reaches it, and that it is silent once its recorder
// hangs.
#include <csignal>
#include <filesystem>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;

namespace
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
	Service()
	{
		chmod(dir.path().c_str(), 0755);
		write_config("");
		manager = std::make_unique<Manager>(notify);
		ProcessOptions options;
		options.environment = {{"NOTIFY_SOCKET", notify}, {"WATCHDOG_USEC", "3000000"}};
		recorder = std::make_unique<Process>(
		    std::vector<std::string>{program("forktail"), "record", "--config", config}, options);
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

} // namespace

TEST_CASE("a service reports when it is ready, its status, and its end; a reload and a trigger reach it")
{
	Service s;
	INFO(s.recorder->err());
	REQUIRE(eventually([&] { return s.manager->heard("READY=1") == 1; }, Seconds(30)));
	CHECK(eventually([&] { return s.manager->heard("WATCHDOG=1") > 0; }, Seconds(5)));
	CHECK(eventually([&] { return s.manager->heard("STATUS=recording; ") > 0; }, Seconds(15)));

	CHECK(s.trigger("later").status == 1);
	s.write_config("[[trigger]]\nname = \"later\"\n");
	const size_t before = std::distance(std::filesystem::directory_iterator(s.ring), {});
	s.recorder->signal(SIGHUP);
	Result asked;
	CHECK(eventually([&] { return (asked = s.trigger("later")).status == 0; }, Seconds(10)));
	INFO(asked.err);
	CHECK(eventually([&] { return s.snapshots() == 1; }, Seconds(120)));
	CHECK(s.recorder->running());
	CHECK(static_cast<size_t>(std::distance(std::filesystem::directory_iterator(s.ring), {})) >= before);

	s.manager->heard(""); // a socket holds ten messages
	s.recorder->signal(SIGTERM);
	CHECK(s.recorder->wait(Seconds(20)) == 0);
	CHECK(eventually([&] { return s.manager->heard("STOPPING=1") == 1; }, Seconds(10)));
}

TEST_CASE("the watchdog gets no message while the recorder hangs, and does again once it continues")
{
	Service s;
	INFO(s.recorder->err());
	REQUIRE(eventually([&] { return s.manager->heard("WATCHDOG=1") > 0; }, Seconds(30)));
	s.recorder->signal(SIGSTOP);
	sleep_for(Seconds(5)); // its last message may be three seconds old
	s.manager->heard("");
	sleep_for(Seconds(3));
	CHECK(s.manager->heard("WATCHDOG=1") == 0);
	s.recorder->signal(SIGCONT);
	CHECK(eventually([&] { return s.manager->heard("WATCHDOG=1") > 0; }, Seconds(10)));
}
