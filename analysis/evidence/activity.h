// SPDX-License-Identifier: MIT
// What a server was doing, told from a sampled stack by the names of its functions.
//
// Names of activities are an interface like those of causes: docs/causes.md lists them. They rest on the
// names that Redis, Valkey, KeyDB and memcached give their functions, which have been stable for a decade; a
// function that is not known is named itself.
#pragma once

#include <string>
#include <vector>

#include "analysis/run/run.h"

namespace forktail
{

struct Activity {
	std::string name; // "command/KEYS", "expire", "function/serverCron", "module/libc.so.6"
	std::string
	    where; // the functions that say so, innermost first: "keysCommand < call < processCommand"
	bool in_lua = false; // a script's own code ran, rather than a command that it called
};

Activity ActivityOf(const Stack &stack);

// Of all of a run's stacks, by their index.
std::vector<Activity> ActivitiesOf(const Run &run);

// What an activity's name says, in a sentence after "the server ran": "KEYS", "expiry of keys".
std::string ActivityText(const std::string &name);

} // namespace forktail
