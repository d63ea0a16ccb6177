// SPDX-License-Identifier: MIT
// Valkey: a redis-server under another name, with threads of its own for sockets. Debian 12 has none.
#include "kinds.h"

namespace forktail::lab
{

extern const ServerKind kValkey;
const ServerKind kValkey = RedisKind("valkey", {"valkey-server"}, Made::IfMissing);

} // namespace forktail::lab
