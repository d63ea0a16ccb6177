// SPDX-License-Identifier: MIT
// The plan of a run on several hosts (TOML): the hosts, the recorders, the loads and the duration.
// docs/guides/many-hosts.md describes each key.
//
// forktail reads it before the start, and forktail-rank on each host reads the same text for its part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forktail::hosts
{

constexpr uint64_t kSecondNs = 1'000'000'000;

struct PlanHost {
	std::string name;     // its name in directories and messages
	std::string address;  // its address for mpirun: a name, an address, or a host of ssh's configuration
	std::string network;  // its address for the other hosts; default: address
	std::string programs; // directory of forktail's programs there; "": as on this host
};

struct PlanRecorder {
	std::string host, name;		  // `name`.forktail is the recording
	std::vector<std::string> targets; // options of forktail-record: "--port", "6379"
	std::vector<std::string> options;
};

struct PlanLoad {
	std::string host, name;
	std::vector<std::string> to; // servers
	std::vector<std::string> options;
};

struct Plan {
	uint64_t duration_ns = 0;	    // of the loads
	uint64_t settle_ns = 2'000'000'000; // between the last recorder's readiness and the first request
	std::string scratch = "/var/tmp";   // directory of each host's files until they are collected
	bool go_on = false;		    // when a program dies, the others continue
	bool clocks = true;		    // compare clocks during the run
	std::vector<std::string> mpirun;    // options for it
	std::vector<PlanHost> hosts;	    // the first is the reference of the clock comparison
	std::vector<PlanRecorder> recorders;
	std::vector<PlanLoad> loads;
};

// Reads a plan; `path` is for messages only. False: *error is one sentence that says where.
bool ParsePlan(const std::string &text, const std::string &path, Plan *plan, std::string *error);

// The host with this name, or nullptr.
const PlanHost *FindHost(const Plan &plan, const std::string &name);

} // namespace forktail::hosts
