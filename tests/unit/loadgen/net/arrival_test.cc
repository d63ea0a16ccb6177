// SPDX-License-Identifier: MIT
// The kernel's arrival timestamps, over real TCP connections of this host.
#include "tests/support/catch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loadgen/net.h"
#include "recording/recording.h"
#include "tests/support/process.h"

using namespace forktail::test;

namespace
{

// Both ends of a connection over loopback.
struct Tcp {
	int here = -1, there = -1;

	explicit Tcp(sa_family_t family = AF_INET)
	{
		sockaddr_storage address = {};
		socklen_t size = sizeof(address);
		address.ss_family = family;
		if (family == AF_INET)
			reinterpret_cast<sockaddr_in *>(&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		else
			reinterpret_cast<sockaddr_in6 *>(&address)->sin6_addr = in6addr_loopback;
		const int listener = socket(family, SOCK_STREAM, 0);
		auto *where = reinterpret_cast<sockaddr *>(&address);
		if (bind(listener, where, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)) ==
			0 &&
		    listen(listener, 1) == 0 && getsockname(listener, where, &size) == 0) {
			here = socket(family, SOCK_STREAM, 0);
			if (connect(here, where, size) == 0)
				there = accept(listener, nullptr, nullptr);
		}
		close(listener);
	}
	~Tcp()
	{
		close(here);
		close(there);
	}
	Tcp(const Tcp &) = delete;
	Tcp &operator=(const Tcp &) = delete;
};

void wait_readable(int fd)
{
	pollfd p = {fd, POLLIN, 0};
	REQUIRE(poll(&p, 1, 10'000) == 1);
}

// Timestamps start shortly after the host's first socket requests them.
bool stamps_come(Tcp &tcp)
{
	char byte;
	uint64_t stamp = 0;
	return eventually(
	    [&] {
		    REQUIRE(write(tcp.there, "x", 1) == 1);
		    wait_readable(tcp.here);
		    REQUIRE(arrival_read(tcp.here, &byte, 1, &stamp) == 1);
		    return stamp != 0;
	    },
	    Seconds(10));
}

} // namespace

TEST_CASE("bytes waiting in the socket have the time when they were sent, not when they were read")
{
	for (const sa_family_t family : {AF_INET, AF_INET6}) {
		Tcp tcp(family);
		if (tcp.there < 0 && family == AF_INET6) {
			WARN("SKIPPED IPv6: this host has none");
			return;
		}
		REQUIRE(tcp.there >= 0);
		REQUIRE(arrival_ask(tcp.here));
		REQUIRE(stamps_come(tcp));
		arrival_clock clock = {};
		char bytes[16];
		for (int i = 0; i < 20; i++) {
			const uint64_t before = ft_now_ns();
			REQUIRE(write(tcp.there, "answer", 6) == 6);
			const uint64_t after = ft_now_ns();
			wait_readable(tcp.here);
			usleep(2000);
			uint64_t stamp = 0;
			REQUIRE(arrival_read(tcp.here, bytes, sizeof(bytes), &stamp) == 6);
			const uint64_t now = ft_now_ns(), at = arrival_monotonic(&clock, stamp, now);
			// Over loopback the segment arrives in the sender's write(), or in an interrupt soon
			// after.
			INFO(before << " " << at << " " << after << " " << now);
			CHECK(at + 1000 >= before);
			CHECK(at < now);
			CHECK(now - at >= 2'000'000);
		}
	}
}

TEST_CASE("of several segments read at once, the last one's arrival is reported")
{
	Tcp tcp;
	REQUIRE(arrival_ask(tcp.here));
	REQUIRE(stamps_come(tcp));
	arrival_clock clock = {};
	char bytes[16];
	uint64_t stamp = 0;
	REQUIRE(write(tcp.there, "one", 3) == 3);
	usleep(2000);
	const uint64_t between = ft_now_ns();
	REQUIRE(write(tcp.there, "two", 3) == 3);
	REQUIRE(eventually([&] { return recv(tcp.here, bytes, 16, MSG_PEEK) == 6; }, Seconds(10)));
	REQUIRE(arrival_read(tcp.here, bytes, sizeof(bytes), &stamp) == 6);
	CHECK(arrival_monotonic(&clock, stamp, ft_now_ns()) + 1000 >= between);
	// An end of stream and an empty socket have none.
	shutdown(tcp.there, SHUT_WR);
	wait_readable(tcp.here);
	CHECK(arrival_read(tcp.here, bytes, sizeof(bytes), &stamp) == 0);
	CHECK(stamp == 0);
}

TEST_CASE("a Unix socket reports no arrivals, and neither does a file that is no socket")
{
	int pair[2];
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK_FALSE(arrival_ask(pair[0]));
	close(pair[0]);
	close(pair[1]);
	CHECK_FALSE(arrival_ask(-1));
}

TEST_CASE("a timestamp in the future is the clocks' error, or the clock was set")
{
	ft_clock c;
	ft_clock_read(&c);
	arrival_clock clock = {};
	const uint64_t now = c.monotonic_ns, ahead = c.realtime_ns - c.monotonic_ns;
	CHECK(arrival_monotonic(&clock, 0, now) == 0);
	const uint64_t at = arrival_monotonic(&clock, ahead + now - 500'000, now);
	CHECK(at + 10'000 > now - 500'000);
	CHECK(at < now - 490'000);
	CHECK(arrival_monotonic(&clock, clock.ahead_ns + now + 100, now) == now);
	CHECK(arrival_monotonic(&clock, clock.ahead_ns + now + 5'000'000, now) == 0);
	// The difference of the clocks is read again, but seldom.
	clock.ahead_ns = 7;
	CHECK(arrival_monotonic(&clock, 1007, now + 999'999) == 1000);
	CHECK(arrival_monotonic(&clock, ahead + now, now + 1'000'000) + 10'000 > now);
}
