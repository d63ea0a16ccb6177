// SPDX-License-Identifier: MIT
// The plan of a run on several hosts (TOML): which hosts there are, what is recorded on which, and which
// sends what load for how long. docs/guides/many-hosts.md describes each key.
//
// Who reads it: forktail, before anything is started, and forktail-rank on each host, which gets the same
// text and takes its own part of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forktail::hosts
{

constexpr uint64_t kSecondNs = 1'000'000'000;

struct PlanHost {
	std::string name;     // what directories and messages call it
	std::string address;  // what mpirun knows it by: a name or an address, or one of ssh's configuration
	std::string network;  // what the other hosts reach it by; the address, unless the plan says otherwise
	std::string programs; // the directory of forktail's programs there; "": as where forktail runs
};

struct PlanRecorder {
	std::string host, name;		  // `name`.forktail is the recording
	std::vector<std::string> targets; // forktail-record's own words: "--port", "6379"
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
	std::string scratch = "/var/tmp";   // where each host keeps its files until they are gathered
	bool go_on = false;		    // when a program dies, the others go on
	bool clocks = true;		    // clocks are compared meanwhile
	std::vector<std::string> mpirun;    // options for it
	std::vector<PlanHost> hosts;	    // the first is whom the others' clocks are compared with
	std::vector<PlanRecorder> recorders;
	std::vector<PlanLoad> loads;
};

// Reads a plan; `path` is for messages only. False: *error is one sentence that says where.
bool ParsePlan(const std::string &text, const std::string &path, Plan *plan, std::string *error);

// The host of that name; nullptr: there is none.
const PlanHost *FindHost(const Plan &plan, const std::string &name);

} // namespace forktail::hosts
