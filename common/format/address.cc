// SPDX-License-Identifier: MIT
// A recording has IPv4 addresses in IPv6 form. The operator knows the IPv4 form.
#include "address.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace forktail::common
{

std::string ClientAddress(const uint8_t (&address)[16], bool hashed)
{
	static constexpr uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	char text[INET6_ADDRSTRLEN] = "";
	uint64_t hash;
	if (std::count(std::begin(address), std::end(address), 0) == sizeof address)
		return "";
	if (hashed) {
		memcpy(&hash, address, sizeof hash);
		snprintf(text, sizeof text, "client-%016" PRIx64, hash);
	} else if (memcmp(address, mapped, sizeof mapped) == 0) {
		inet_ntop(AF_INET, address + sizeof mapped, text, sizeof text);
	} else {
		inet_ntop(AF_INET6, address, text, sizeof text);
	}
	return text;
}

} // namespace forktail::common
