// SPDX-License-Identifier: MIT
// Who sent requests: the address of a TCP client without its port, or the name of a Unix socket's process.
// Its size is fixed and small, because watch keeps many of them.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "recording/format.h"

namespace forktail::live
{

struct Client {
	enum class Kind : uint8_t {
		Other, // several clients beyond a limit
		Address,
		Hashed, // forktail record --hash-clients
		Process,
	};
	Kind kind = Kind::Other;
	uint8_t bytes[16] = {};

	auto operator<=>(const Client &) const = default;
	// "10.0.0.7", "2001:db8::7", "client-00f1e2d3c4b5a697", "redis-benchmark", "other". Sanitized.
	std::string Name() const;
};

Client ClientOf(const ft_connection &connection);

} // namespace forktail::live
