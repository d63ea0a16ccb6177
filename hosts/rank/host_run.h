// SPDX-License-Identifier: MIT
// One host's part of a run on several hosts, as forktail-rank does it. python/forktail/hosts.py reads the
// plan, starts mpirun, and collects what the ranks report.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/process.h"

namespace forktail::hosts
{

struct Job {
	// In the order of their start; they are ended in reverse order.
	std::string kind;	       // "clock", "recorder", "load"
	std::string name;	       // of its recording and its log: NAME.forktail, NAME.log
	std::vector<std::string> argv; // the program without a directory, then its arguments
	bool is_load() const { return kind == "load"; }
};

struct PlanHost {
	std::string name;      // its name in directories and messages
	std::string programs;  // directory of forktail's programs there; "": as on this host
	std::string directory; // of its files until they are collected
	std::vector<Job> jobs;
};

struct Plan {
	uint64_t duration_ns = 0; // of the loads
	uint64_t settle_ns = 0;	  // between the last recorder's readiness and the first request
	std::vector<PlanHost> hosts;
};

// Reads a plan as JSON, which hosts.py makes: a member for each field above. False: it is something else.
bool ReadPlan(const std::string &text, Plan *plan);
// The host with this name, or nullptr.
const PlanHost *FindHost(const Plan &plan, const std::string &name);

// How a host's rank reports to forktail: lines of JSON on its standard output, which mpirun forwards without
// MPI calls. Other lines are mpirun's own.
//
//   {"forktail":"go","seconds":2.1}                        all are ready; of rank 0
//   {"forktail":"hello","host":"redis-a","pid":77,...}     identity of the rank
//   {"forktail":"started","host":..,"name":"server","argv":[..]}
//   {"forktail":"progress","host":..,"name":"load","line":"SET+GET  3 s  ..."}
//   {"forktail":"said", ...,"line":"..."}                  another line of a program
//   {"forktail":"ended","host":..,"name":..,"kind":..,"well":true,"how":"..."}
//   {"forktail":"cannot","host":..,"why":"one sentence"}
//   {"forktail":"here","host":..}                          heartbeat
//   {"forktail":"loaded","host":..}                        all its loads have ended
//   {"forktail":"over","host":..}                          all its programs have ended
//   {"forktail":"stored","host":..} and {"forktail":"left",..,"why":..}   from gathering

using Message = nlohmann::ordered_json;

Message NewMessage(const std::string &what, const std::string &host);
// Writes the message as one atomic line.
void Send(const Message &message);

// One host's part of a run: its directory, its programs, and how they end. Independent of MPI.
//
// Recorders run from before the first request until after the last. Each program closes its own recording: it
// gets SIGTERM if this process dies.

struct RunningJob {
	Job job;
	common::Child child;
	bool ready = false; // it records or compares clocks
};

struct HostRun {
	std::string host, programs, directory;
	std::vector<Job> loads;
	std::vector<std::unique_ptr<RunningJob>> running;
	int lock = -1; // locked by every program until all have ended
};

constexpr char kLockFile[] = "running"; // in the host's directory

// Creates the directory and checks the programs and their versions. False: *error is one sentence.
bool PrepareHostRun(const PlanHost &host, HostRun *host_run, std::string *error);
// Starts recorders and clocks and waits until they are ready. False as above.
bool StartRecorders(HostRun *host_run, const PlanHost &host, std::string *error);
// Starts the loads, which send from `start_ns` (CLOCK_REALTIME), and reports events until "end" or the end of
// standard input, a signal, or `deadline_ns` (CLOCK_MONOTONIC). Then it ends all programs.
void RunLoads(HostRun *host_run, uint64_t start_ns, uint64_t deadline_ns);
// Ends all programs.
void EndHostRun(HostRun *host_run);

} // namespace forktail::hosts
