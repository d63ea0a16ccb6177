// SPDX-License-Identifier: MIT
// Redis 8, whose helpers each have clients of their own: config = ["--io-threads", "4"]. Debian 12 has Redis
// 7, so script/servers makes this one.
#include "kinds.h"

namespace forktail
{
namespace
{

ServerKind Redis8()
{
	ServerKind kind = RedisKind("redis8", {"redis-server"});
	kind.made = Made::Always;
	return kind;
}

} // namespace

extern const ServerKind kRedis8;
const ServerKind kRedis8 = Redis8();

} // namespace forktail
