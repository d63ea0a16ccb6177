// SPDX-License-Identifier: MIT
// KeyDB: a fork of Redis older than 7.0 whose threads share one data set with config = ["--server-threads",
// "2"].
#include "kinds.h"

namespace forktail::lab
{

extern const ServerKind kKeydb;
const ServerKind kKeydb = RedisKind("keydb", {"keydb-server"});

} // namespace forktail::lab
