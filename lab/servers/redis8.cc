// SPDX-License-Identifier: MIT
// Redis 8, whose helpers each have clients of their own: config = ["--io-threads", "4"]. Debian 12 has Redis
// 7, so script/servers makes this one.
#include "kinds.h"

namespace forktail::lab
{

extern const ServerKind kRedis8;
const ServerKind kRedis8 = RedisKind("redis8", {"redis-server"}, Made::Always);

} // namespace forktail::lab
