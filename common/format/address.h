// SPDX-License-Identifier: MIT
// The address of a client in text, without its port.
#pragma once

#include <cstdint>
#include <string>

namespace forktail::common
{

// "10.0.0.7", "2001:db8::7", or "client-00f1e2d3c4b5a697" for a hashed address. "" for zeros.
std::string ClientAddress(const uint8_t (&address)[16], bool hashed);

} // namespace forktail::common
