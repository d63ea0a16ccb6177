// SPDX-License-Identifier: MIT
// Redis 8, whose I/O threads each have their own clients: config = ["--io-threads", "4"]. Debian 12 has Redis
// 7, so script/servers builds this one.
#include "kinds.h"

namespace forktail::lab
{

extern const ServerKind kRedis8;
const ServerKind kRedis8 = RedisKind("redis8", {"redis-server"}, Made::Always);

} // namespace forktail::lab
