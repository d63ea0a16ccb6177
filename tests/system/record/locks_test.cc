// SPDX-License-Identifier: MIT
// The recorded facts of a futex wait: which word, the lock's owner by the lock's own data, and the thread's
// waker.
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/servers/memcached.h"
#include "tests/system/record/lock_server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

struct Wait {
	uint32_t owner = 0, waker = 0;
	uint64_t address = 0, blocked_ns = 0;
};

Wait longest_wait(const Recorded &r, uint32_t tid)
{
	const ft_span *s =
	    r.longest([&](const ft_span &x) { return x.owner == FT_LOCK_WAIT && x.tid == tid; });
	REQUIRE(s);
	return {static_cast<uint32_t>(s->arg[1]), static_cast<uint32_t>(s->arg[1] >> 32), s->arg[0],
		s->blocked_ns};
}

uint32_t thread_called(const Recorded &r, const std::string &comm)
{
	for (const auto &[key, t] : r.threads)
		if (comm == t.comm.raw)
			return t.tid;
	return 0;
}

} // namespace

TEST_CASE("a wait for a lock has its holder and its waker")
{
	REQUIRE(root());
	const std::string how = GENERATE("code", "inherit", "fastlock");
	INFO(how);
	LockServer server(how, 15);
	Recorder recorder(server.process.pid());
	REQUIRE(server.wait_times(3));
	const Wait wait = longest_wait(recorder.stop(), server.tid());
	CHECK(wait.blocked_ns > 5'000'000);
	CHECK(wait.address != 0);
	CHECK(wait.owner == server.holder());
	CHECK(wait.waker == server.holder());
}

TEST_CASE("a wait for a condition has its waker and no holder")
{
	REQUIRE(root());
	LockServer server("condition", 15);
	Recorder recorder(server.process.pid());
	REQUIRE(server.wait_times(3));
	const Wait wait = longest_wait(recorder.stop(), server.tid());
	CHECK(wait.blocked_ns > 5'000'000);
	CHECK(wait.owner == 0);
	CHECK(wait.waker == server.holder());
}

TEST_CASE("of two threads that wait for a lock, one's waker is the other, which waited for the same word")
{
	REQUIRE(root());
	LockServer server("chain", 30);
	Recorder recorder(server.process.pid());
	REQUIRE(server.wait_times(5));
	const Recorded r = recorder.stop();
	const uint32_t middle = thread_called(r, "middle");
	REQUIRE(middle);
	const Wait last = longest_wait(r, server.tid()), first = longest_wait(r, middle);
	CHECK(last.owner == server.holder());
	CHECK(last.waker == middle);
	CHECK(first.owner == server.holder());
	CHECK(first.waker == server.holder());
	CHECK(first.address == last.address);
}

TEST_CASE("a futex wait that a timer ends has no waker")
{
	REQUIRE(root());
	LockServer server("nobody", 15);
	Recorder recorder(server.process.pid());
	REQUIRE(server.wait_times(3));
	const Wait wait = longest_wait(recorder.stop(), server.tid());
	CHECK(wait.blocked_ns > 14'000'000);
	CHECK(wait.address != 0);
	CHECK(wait.waker == 0);
}

TEST_CASE("a holder in another pid namespace is known by the recorder's ids")
{
	REQUIRE(root());
	// Its own ids are 1, 2 and so on.
	Process unshare({"unshare", "--pid", "--fork", "--kill-child", FORKTAIL_LOCK_HOLDER, "code", "15"});
	const std::string children =
	    "/proc/" + std::to_string(unshare.pid()) + "/task/" + std::to_string(unshare.pid()) + "/children";
	pid_t server = 0;
	eventually([&] { return unshare.out().find('\n') != std::string::npos; });
	std::ifstream(children) >> server;
	if (!server) {
		WARN("SKIPPED: cannot make a pid namespace here: " << unshare.err());
		return;
	}
	Recorder recorder(server);
	for (int i = 0; i < 3; i++) {
		kill(server, SIGUSR1);
		sleep_for(Seconds(0.1));
	}
	const Recorded r = recorder.stop();
	const uint32_t holder = thread_called(r, "holder");
	CHECK(unshare.out().find(std::to_string(holder) + "\n") != 0);
	const Wait wait = longest_wait(r, static_cast<uint32_t>(server));
	CHECK(wait.blocked_ns > 5'000'000);
	CHECK(wait.owner == holder);
	CHECK(wait.waker == holder);
}

TEST_CASE("memcached's workers wait for a lock of the thread that grows its hash table")
{
	REQUIRE(root());
	if (run({"memcached", "-V"}).status != 0) {
		WARN("SKIPPED: memcached is not installed");
		return;
	}
	Memcached memcached({.config = {"-t", "4", "-o", "hashpower=13"}});
	// It holds the lock for a few microseconds each time.
	Recorder recorder(memcached.pid(), {"--min-span", "1us"});
	std::string sets;
	for (int i = 0; i < 400'000; i++) // five times twice as large
		sets += "set key" + std::to_string(i) + " 0 0 1 noreply\r\nx\r\n";
	memcached.command(sets + "get key1", "END\r\n");
	// It checks once per second whether it should.
	REQUIRE(eventually(
	    [&] {
		    return memcached.stat("hash_power_level") == "18" &&
			   memcached.stat("hash_is_expanding") == "0";
	    },
	    Seconds(30)));
	const Recorded r = recorder.stop();
	const uint32_t grower = thread_called(r, "mc-assocmaint");
	REQUIRE(grower);
	size_t waits = 0;
	for (const ft_span &s : r.spans)
		waits += s.owner == FT_LOCK_WAIT && s.arg[1] == (grower | uint64_t{grower} << 32);
	CHECK(waits > 0);
}
