// SPDX-License-Identifier: MIT
// A redis-server of the lab's: started on a Unix socket in a directory of its own, asked over one connection.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/session.h"

struct redisContext;

namespace forktail
{

struct Redis {
	Child *child = nullptr;
	std::string directory; // its data
	std::string socket;
	redisContext *connection = nullptr;

	Redis() = default;
	Redis(const Redis &) = delete;
	Redis &operator=(const Redis &) = delete;
	~Redis(); // closes the connection; the session ends the server
};

// Starts a server that keeps its data in `directory` and logs to `log`, with `config` as further arguments
// ({"--appendonly", "yes"}), and waits until it answers. False: *error is one sentence, as below.
bool StartRedis(Session *session, const std::string &directory, const std::string &log,
		const std::vector<std::string> &config, Redis *redis, std::string *error);

// Sends one command and waits for the reply: its elements, if it is an array, or one. A reply that says
// ERR is a failure.
bool Ask(Session *session, Redis *redis, const std::vector<std::string> &words,
	 std::vector<std::string> *reply, std::string *error);

// INFO, all sections, as name -> value.
using RedisInfo = std::map<std::string, std::string>;
bool ReadInfo(Session *session, Redis *redis, RedisInfo *info, std::string *error);
// A number of INFO; 0 if there is none of that name.
uint64_t Number(const RedisInfo &info, const std::string &name);

} // namespace forktail
