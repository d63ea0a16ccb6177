// SPDX-License-Identifier: MIT
// The text of a client's address.
#include "common/format.h"
#include "tests/support/catch.h"

using forktail::common::ClientAddress;

TEST_CASE("a client's address: IPv4, IPv6, a hash, or none")
{
	CHECK(ClientAddress({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 7}, false) == "10.0.0.7");
	CHECK(ClientAddress({0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}, false) ==
	      "2001:db8::7");
	CHECK(ClientAddress({0x97, 0xa6, 0xb5, 0xc4, 0xd3, 0xe2, 0xf1, 0x00}, true) ==
	      "client-00f1e2d3c4b5a697");
	CHECK(ClientAddress({}, false).empty());
	CHECK(ClientAddress({}, true).empty());
}
