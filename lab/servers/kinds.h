// SPDX-License-Identifier: MIT
// Kinds of servers, each a row of one table: its programs, how it is started, when it is ready, what it
// counts, and how forktail-load speaks to it. A new kind is a file that describes it, its row in kinds.cc,
// and a test; docs/adding.md goes through one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "redis.h"

namespace forktail::lab
{

struct Instance;
struct Starting;

// Whether a kind's program is the one that script/servers made: never, where this machine has none installed,
// or whatever it has.
enum class Made : uint8_t { No, IfMissing, Always };

struct ServerKind {
	const char *name;		    // in scenarios
	std::vector<const char *> programs; // the preferred one first
	bool (*start)(const Starting &, size_t number, Instance *,
		      std::string *error); // instance `number`, from 0
	// Waits until all instances serve, once they listen; nullptr: then they do.
	bool (*ready)(const Starting &, std::string *error) = nullptr;
	// What an instance counts itself; nullptr: INFO, if it speaks Redis' protocol, else nothing.
	RedisInfo (*counters)(const Instance &) = nullptr;
	// What forktail-load is told beside addresses.
	std::vector<std::string> load_words = {};
	// The option before each address of those that only tell where others are; nullptr: it is asked
	// itself.
	const char *guide_option = nullptr;
	const char *of = nullptr;  // it needs other servers, and is this of them: "in front of"
	bool proxy = false;	   // what it is asked are the servers behind it, which say the protocol
	bool speaks_redis = false; // to a load: it stores data, replicates, forms a Cluster
	bool needs_tcp = false;	   // others must reach it
	bool carries = true;	   // requests go through it, so it is recorded
	Made made = Made::No;
};

// nullptr: there is none.
const ServerKind *FindKind(const std::string &name);
// "redis, valkey and memcached".
std::string KindNames();

// A redis-server, or one that takes its arguments and commands.
ServerKind RedisKind(const char *name, const std::vector<const char *> &programs, Made made = Made::No);

} // namespace forktail::lab
