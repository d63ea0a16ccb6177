// SPDX-License-Identifier: MIT
// Addresses of network namespaces: this one's, a synthetic one's, and invalid files.
#include <algorithm>
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <set>
#include <string>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

extern "C" {
#include "loader/targets.h"
}

using namespace forktail::test;

namespace
{

std::set<std::string> Set(json_t *all)
{
	std::set<std::string> texts;
	size_t i;
	json_t *one;
	json_array_foreach(all, i, one) texts.insert(json_string_value(one));
	CHECK(texts.size() == json_array_size(all)); // each once
	json_decref(all);
	return texts;
}

// As the C library reports them, by netlink.
std::set<std::string> OwnAddresses()
{
	std::set<std::string> texts;
	ifaddrs *all = nullptr;
	REQUIRE(getifaddrs(&all) == 0);
	for (ifaddrs *a = all; a; a = a->ifa_next) {
		char text[INET6_ADDRSTRLEN];
		if (!a->ifa_addr)
			continue;
		const int family = a->ifa_addr->sa_family;
		const void *address = &reinterpret_cast<sockaddr_in *>(a->ifa_addr)->sin_addr;
		if (family == AF_INET6)
			address = &reinterpret_cast<sockaddr_in6 *>(a->ifa_addr)->sin6_addr;
		else if (family != AF_INET)
			continue;
		const std::string one = inet_ntop(family, address, text, sizeof text);
		if (!one.starts_with("127.") && one != "::1")
			texts.insert(one);
	}
	freeifaddrs(all);
	return texts;
}

} // namespace

TEST_CASE("a process' addresses are those of its network namespace", "[addresses]")
{
	CHECK(Set(addresses_of(getpid())) == OwnAddresses());
}

TEST_CASE("addresses are found among routes, and each once", "[addresses]")
{
	TempDir dir;
	write_file(dir.file("fib"), "Main:\n  +-- 0.0.0.0/0 3 0 5\n"
				    "     |-- 10.77.0.0\n        /24 link UNICAST\n"
				    "     |-- 10.77.0.2\n        /32 host LOCAL\n"
				    "     |-- 10.77.0.255\n        /32 link BROADCAST\n"
				    "     |-- 127.0.0.1\n        /32 host LOCAL\n"
				    "Local:\n     |-- 10.77.0.2\n        /32 host LOCAL\n"
				    "     |-- 10.77.0.9\n        /32 link UNICAST\n        /32 host LOCAL\n");
	write_file(dir.file("inet6"), "fd000000000000000000000000000002 04 40 00 82     eth0\n"
				      "00000000000000000000000000000001 01 80 10 80       lo\n");
	CHECK(Set(addresses_read(dir.file("fib").c_str(), dir.file("inet6").c_str())) ==
	      std::set<std::string>{"10.77.0.2", "10.77.0.9", "fd00::2"});
}

TEST_CASE("incomplete and invalid files have no addresses", "[addresses]")
{
	TempDir dir;
	write_file(dir.file("fib"), "/32 host LOCAL\n     |-- 999.1.2.3\n  /32 host LOCAL\n     |-- 10.0.0");
	write_file(dir.file("inet6"), "fd00000000000000000000\nzz\n\n");
	CHECK(Set(addresses_read(dir.file("fib").c_str(), dir.file("inet6").c_str())).empty());
	CHECK(Set(addresses_read(dir.file("no").c_str(), dir.file("no").c_str())).empty());
}
