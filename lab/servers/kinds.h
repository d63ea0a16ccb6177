// SPDX-License-Identifier: MIT
// Kinds of servers, each a row of a table: programs, start, readiness, counters, and options for
// forktail-load. A new kind needs a file, a row in kinds.cc and a test; see docs/adding.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "redis.h"

namespace forktail::lab
{

struct Instance;
struct Starting;

// When to use the program built by script/servers: never, if none is installed, or always.
enum class Made : uint8_t { No, IfMissing, Always };

struct ServerKind {
	const char *name;		    // in scenarios
	std::vector<const char *> programs; // the preferred one first
	bool (*start)(const Starting &, size_t number, Instance *,
		      std::string *error); // instance `number`, from 0
	// Waits until all instances serve; nullptr: they serve when they listen.
	bool (*ready)(const Starting &, std::string *error) = nullptr;
	// Counters of an instance; nullptr: INFO with the Redis protocol, else none.
	RedisInfo (*counters)(const Instance &) = nullptr;
	// Options of forktail-load in addition to addresses.
	std::vector<std::string> load_words = {};
	// The option before each address for servers that only name other servers (Sentinels); nullptr: it is
	// a target itself.
	const char *guide_option = nullptr;
	const char *of = nullptr;  // its relation to the servers it needs: "in front of"
	bool proxy = false;	   // the servers behind it define the protocol
	bool speaks_redis = false; // supports data, replication and Cluster
	bool needs_tcp = false;	   // others must reach it
	bool carries = true;	   // requests pass through it, so it is recorded
	Made made = Made::No;
};

// nullptr: unknown kind.
const ServerKind *FindKind(const std::string &name);
// "redis, valkey and memcached".
std::string KindNames();

// A redis-server or a compatible server.
ServerKind RedisKind(const char *name, const std::vector<const char *> &programs, Made made = Made::No);

} // namespace forktail::lab
