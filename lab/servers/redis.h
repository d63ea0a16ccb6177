// SPDX-License-Identifier: MIT
// A redis-server of the lab (or a valkey-server, or a Sentinel): started on a Unix socket or a free port,
// with one connection for commands.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/host/session.h"
#include "listen.h"

struct redisContext;

namespace forktail::lab
{

struct RedisOptions {
	Command command;		 // name, program, log and limits
	std::string directory;		 // for its data and its socket
	bool tcp = false;		 // on a free port of 127.0.0.1 instead of a Unix socket
	std::string file;		 // a configuration file, or ""
	std::vector<std::string> config; // further arguments: {"--appendonly", "yes"}
	double patience_seconds = 20;	 // for its start and for each reply; a fork or fsync may take long
};

struct Redis : Endpoint {
	Child *child = nullptr;
	redisContext *connection = nullptr; // opened by Ask
	double patience_seconds = 0;

	Redis() = default;
	Redis(const Redis &) = delete;
	Redis &operator=(const Redis &) = delete;
	~Redis(); // closes the connection; the session ends the server
};

// Starts a server and waits until it answers. False: *error is one sentence, as below.
bool StartRedis(Session *session, const RedisOptions &options, Redis *redis, std::string *error);

// Sends a command and waits for the reply: the elements of an array, or one. An error reply is a failure. If
// the server closes the connection but runs, the command is sent once more.
bool Ask(Session *session, Redis *redis, const std::vector<std::string> &words,
	 std::vector<std::string> *reply, std::string *error);

// INFO, all sections, as name -> value.
using RedisInfo = std::map<std::string, std::string>;
bool ReadInfo(Session *session, Redis *redis, RedisInfo *info, std::string *error);
// A number from INFO; 0 if missing.
uint64_t Number(const RedisInfo &info, const std::string &name);

} // namespace forktail::lab
