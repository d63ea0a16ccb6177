// SPDX-License-Identifier: MIT
// KeyDB: a redis-server of before 7.0 whose threads share one data set, if told to: config =
// ["--server-threads", "2"].
#include "kinds.h"

namespace forktail::lab
{

extern const ServerKind kKeydb;
const ServerKind kKeydb = RedisKind("keydb", {"keydb-server"});

} // namespace forktail::lab
