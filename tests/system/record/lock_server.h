// SPDX-License-Identifier: MIT
// A server delayed by its own threads (lock_holder.c), for tests of who is named as responsible.
#pragma once
#include <csignal>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace forktail::test
{

struct LockServer {
	Process process;

	LockServer(const std::string &how, int hold_ms)
	    : process({FORKTAIL_LOCK_HOLDER, how, std::to_string(hold_ms)})
	{
		eventually([&] { return !numbers().empty(); });
	}
	uint32_t tid() const { return static_cast<uint32_t>(process.pid()); }
	uint32_t holder() const { return static_cast<uint32_t>(numbers().at(0)); }
	// How long each of its waits has taken so far, in ns.
	std::vector<uint64_t> waits() const
	{
		std::vector<uint64_t> all = numbers();
		return {all.begin() + !all.empty(), all.end()};
	}
	// Makes it wait this many times, one after the other.
	bool turns(int times)
	{
		for (int i = 0; i < times; i++) {
			const size_t before = waits().size();
			process.signal(SIGUSR1);
			if (!eventually([&] { return waits().size() > before; }))
				return false;
			sleep_for(Seconds(0.02));
		}
		return true;
	}

private:
	std::vector<uint64_t> numbers() const
	{
		std::istringstream said(process.out());
		std::vector<uint64_t> all;
		std::string line;
		while (std::getline(said, line) && !said.eof()) // a complete one
			all.push_back(std::stoull(line));
		return all;
	}
};

} // namespace forktail::test
