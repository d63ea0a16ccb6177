// SPDX-License-Identifier: MIT
// Valkey: a redis-server under another name, with threads of its own for sockets. Debian 12 has none.
#include "kinds.h"

namespace forktail
{
namespace
{

ServerKind Valkey()
{
	ServerKind kind = RedisKind("valkey", {"valkey-server"});
	kind.made = Made::IfMissing;
	return kind;
}

} // namespace

extern const ServerKind kValkey;
const ServerKind kValkey = Valkey();

} // namespace forktail
