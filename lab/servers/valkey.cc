// SPDX-License-Identifier: MIT
// Valkey: a fork of Redis with its own I/O threads. Debian 12 does not package it.
#include "kinds.h"

namespace forktail::lab
{

extern const ServerKind kValkey;
const ServerKind kValkey = RedisKind("valkey", {"valkey-server"}, Made::IfMissing);

} // namespace forktail::lab
