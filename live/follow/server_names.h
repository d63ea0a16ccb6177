// SPDX-License-Identifier: MIT
// What servers are called: by what they listen on, so that one that is started again, with another process
// id, is the same one to whoever counts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/json/json_read.h"
#include "live.h"

namespace forktail::live
{

class Servers
{
public:
	// A target as a manifest or a "target-began" note has it: pid, comm, listens, cgroup_of.
	void Add(const common::Json &target, uint64_t t_ns);
	// Its process ended.
	void End(uint32_t pid, uint64_t t_ns);
	// Another recorder: who is still there, it will say.
	void EndAll(uint64_t t_ns);
	// The server that a process is. Of one that nobody told of: one of that name that had ended, else a
	// new one.
	uint32_t Of(uint32_t pid, const std::string &comm, uint64_t t_ns);
	// kNone: not known.
	uint32_t Known(uint32_t pid) const;

	const std::vector<Server> &all() const { return all_; }

private:
	void Name(uint32_t pid, const std::string &base, const std::string &place, const std::string &comm,
		  uint64_t t_ns);
	bool Take(const std::string &name, uint32_t pid, const std::string &comm, uint64_t t_ns);

	std::vector<Server> all_;
	std::map<uint32_t, uint32_t> of_pid_;
	std::map<std::string, uint32_t> by_name_;
};

} // namespace forktail::live
