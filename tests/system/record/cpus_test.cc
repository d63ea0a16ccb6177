// SPDX-License-Identifier: MIT
// A CPU goes offline and comes back while the recorder runs, as after a suspend: its perf events are gone
// then.
#include <algorithm>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

constexpr int kCpu = 1;
constexpr char kOnline[] = "/sys/devices/system/cpu/cpu1/online";

bool set_online(char value)
{
	const int fd = open(kOnline, O_WRONLY | O_CLOEXEC);
	const bool done = fd >= 0 && write(fd, &value, 1) == 1;
	close(fd);
	return done;
}

// The CPU is offline until end(). A separate process brings it back, also if this test is killed.
class Offline
{
public:
	Offline()
	{
		int ends[2];
		REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
		guard_ = fork();
		REQUIRE(guard_ >= 0);
		if (guard_ == 0) {
			char c;
			setsid();
			close(ends[1]);
			while (read(ends[0], &c, 1) != 0)
				;
			set_online('1');
			_exit(0);
		}
		close(ends[0]);
		end_ = ends[1];
		done_ = set_online('0');
		if (!done_)
			WARN("SKIPPED: cannot take CPU 1 offline by " << kOnline);
	}
	~Offline() { end(); }
	Offline(const Offline &) = delete;
	Offline &operator=(const Offline &) = delete;

	bool done() const { return done_; }
	void end()
	{
		if (end_ < 0)
			return;
		close(end_);
		end_ = -1;
		waitpid(guard_, nullptr, 0);
	}

private:
	int end_ = -1;
	pid_t guard_ = -1;
	bool done_ = false;
};

constexpr int kPages = 2000;
constexpr size_t kPage = 4096;

// A server whose snapshot takes long, with memory for it.
struct Server {
	Server() { redis.command({"SETRANGE", "pages", std::to_string(kPages * kPage), "x"}); }

	// On that CPU: computes for a while, and writes to pages that a snapshot child shares.
	void work()
	{
		cpu_set_t cpu;
		CPU_ZERO(&cpu);
		CPU_SET(kCpu, &cpu);
		REQUIRE(sched_setaffinity(redis.pid(), sizeof cpu, &cpu) == 0);
		redis.command({"EVAL", "for i = 1, 20000000 do end", "0"});
		REQUIRE(redis.command({"BGSAVE"}) == "Background saving started");
		for (int i = 0; i < kPages; i++)
			redis.command(
			    {"SETRANGE", "pages", std::to_string(static_cast<size_t>(i) * kPage), "x"});
		CHECK(redis.info("rdb_bgsave_in_progress") == "1");
	}

	Redis redis{{.config = {"--rdb-key-save-delay", "20000000"}}};
};

// The CPU comes back, the server works on it, and all of that is recorded.
void check_recorded(Server &server, Recorder &recorder, Offline &offline)
{
	offline.end();
	REQUIRE(eventually(
	    [&] { return recorder.process().err().find("CPU 1 came online") != std::string::npos; }));
	server.work();
	const Recorded r = recorder.stop();
	INFO(recorder.process().err());
	const uint32_t main = static_cast<uint32_t>(server.redis.pid());
	CHECK((r.count(main, FT_COW_COPY) + r.missed() >= kPages || r.unseen_switches()));
	CHECK(std::any_of(r.cpu_samples.begin(), r.cpu_samples.end(),
			  [&](const ft_cpu_sample &s) { return s.cpu == kCpu && s.tid == main; }));
	CHECK(std::any_of(r.counters.begin(), r.counters.end(),
			  [&](const ft_counters &c) { return c.cpu == kCpu && c.tid == main; }));
	const Result explained = run({program("forktail"), "explain", "--all", recorder.path()});
	INFO(explained.out);
	CHECK(explained.out.find("Not recorded: page faults and CPU samples on CPU 1 for a moment") !=
	      std::string::npos);
	CHECK(recorder.process().err().find("is not on the recorder's list") == std::string::npos);
}

} // namespace

TEST_CASE("on a CPU that was offline, page faults and samples are recorded again")
{
	REQUIRE(root());
	if (!two_cpus()) // a CPU that was offline before should stay so
		return;
	Server server;
	Recorder recorder(server.redis.pid(), {"--counters", "software"});
	Offline offline;
	if (offline.done())
		check_recorded(server, recorder, offline);
}

TEST_CASE("a CPU that comes online for the first time while recording is recorded too")
{
	REQUIRE(root());
	if (!two_cpus()) // a CPU that was offline before should stay so
		return;
	Server server;
	Offline offline;
	Recorder recorder(server.redis.pid(), {"--counters", "software"});
	if (offline.done())
		check_recorded(server, recorder, offline);
}
