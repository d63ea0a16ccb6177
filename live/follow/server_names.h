// SPDX-License-Identifier: MIT
// Names servers by the address they listen on, so a restarted server keeps its name and its counters.
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
	// Adds a target from a manifest or a "target-began" note: pid, comm, listens, cgroup_of.
	void Add(const common::Json &target, uint64_t t_ns);
	// The process ended.
	void End(uint32_t pid, uint64_t t_ns);
	// Ends all servers when another recorder starts, which reports those that run.
	void EndAll(uint64_t t_ns);
	// The server of a process. For an unannounced process: an ended server of that name, else a new one.
	uint32_t Of(uint32_t pid, const std::string &comm, uint64_t t_ns);
	// kNone if unknown.
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
