// SPDX-License-Identifier: MIT
// A run on several hosts: its plan, the programs of each host, and their start and end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/process.h"

namespace forktail::hosts
{

// The plan of a run on several hosts (TOML): the hosts, the recorders, the loads and the duration.
// docs/guides/many-hosts.md describes each key.
//
// forktail reads it before the start, and forktail-rank on each host reads the same text for its part.

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
	bool continue_on_death = false;	    // when a program dies, the others continue
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

// The programs of one host in a plan, with their arguments.

struct Job {
	// In the order of their start; they are ended in reverse order.
	enum Kind { kClock, kRecorder, kLoad } kind;
	std::string name;	       // of its recording and its log: NAME.forktail, NAME.log
	std::vector<std::string> argv; // the program without a directory, then its arguments
};

// `directory` is the host's directory. --start-at of loads is added later.
std::vector<Job> JobsOf(const Plan &plan, const PlanHost &host, const std::string &directory);

// "recorder and load", for messages.
std::string RolesOf(const Plan &plan, const PlanHost &host);

// The command line of mpirun: the ranks, and options that keep Open MPI from disturbing the measurement.

struct MpiRun {
	std::string mpirun, rank;	  // the programs' paths
	std::string plan, run, token;	  // absolute paths, and the id of the run on its hosts
	std::string hostfile;		  // "": none
	std::vector<std::string> options; // the user's, after the plan's
};

// `mode` is "run" or "gather"; `hosts` are rank 1, 2, ...
std::vector<std::string> MpiCommand(const MpiRun &mpi, const Plan &plan, const std::string &mode,
				    const std::vector<const PlanHost *> &hosts);

// One progress line for all load generators, from the last second that each reported.

struct LoadSecond {
	double elapsed_s = 0, per_second = 0, p99_ms = 0, max_ms = 0;
	uint64_t errors = 0;
};

// Parses a progress line of forktail-load, "SET+GET 3 s 40,000/s p50 0.100 ms p99 0.310 ms max 1.200 ms
// errors 0". False: it is another line.
bool ReadProgress(const std::string &line, LoadSecond *second);

// By "HOST/NAME". "12 s  80,123/s from 2 loads  worst p99 0.310 ms (client-b)  max 4.100 ms  errors 0"
std::string MergedProgress(const std::map<std::string, LoadSecond> &loads);

// How a host's rank reports to forktail: lines of JSON on its standard output, which mpirun forwards without
// MPI calls. Other lines are mpirun's own.
//
//   {"forktail":"hello","host":"redis-a","pid":77,...}     identity of the rank
//   {"forktail":"started","host":..,"name":"server","argv":[..]}
//   {"forktail":"progress","host":..,"name":"load","line":"SET+GET  3 s  ..."}
//   {"forktail":"said", ...,"line":"..."}                  another line of a program
//   {"forktail":"ended","host":..,"name":..,"kind":..,"well":true,"how":"..."}
//   {"forktail":"cannot","host":..,"why":"one sentence"}
//   {"forktail":"here","host":..}                          heartbeat
//   {"forktail":"loaded","host":..}                        all its loads have ended
//   {"forktail":"over","host":..}                          all its programs have ended
//   {"forktail":"stored","host":..,"files":[..]} and {"forktail":"left",..,"why":..}   from gathering

using Message = nlohmann::ordered_json;

Message NewMessage(const std::string &what, const std::string &host);
// Writes the message as one atomic line.
void Send(const Message &message);
// False: the line is not a message of a rank.
bool ParseMessage(const std::string &line, Message *message);
// A text member; "" if missing.
std::string TextOf(const Message &message, const char *member);

// State of a run on several hosts from the messages of its ranks, and messages for the user.

struct HostState {
	Message hello, started = Message::array();
	bool loaded = false, over = false; // its loads have ended; all programs have ended
	uint64_t heard_ns = 0;
};

struct Session {
	std::map<std::string, HostState> hosts;
	std::map<std::string, LoadSecond> loads; // by "host/name"
	std::vector<std::string> troubles;	 // sentences for run.json
	bool cannot = false, ending = false;
	uint64_t go_ns = 0; // when all hosts were ready
	bool open = false;  // the terminal shows a progress line
	uint64_t shown_ns = 0;
};

// Removes the progress line and prints a sentence.
void Say(Session *session, const std::string &sentence);
// Prints and remembers a problem.
void Trouble(Session *session, const std::string &sentence);
// Processes one message of a rank. True: the run must end.
bool Take(Session *session, const Plan &plan, const Message &message);
// Shows the progress line if it is due.
void ShowProgress(Session *session, const Plan &plan);
// True if all loads have ended, as reported by the hosts.
bool AllLoaded(const Session &session, const Plan &plan);
bool AllOver(const Session &session, const Plan &plan);

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

// The directory of a host's files of run `token`.
std::string DirectoryOf(const Plan &plan, const std::string &token, const std::string &host);
constexpr char kLockFile[] = "running"; // in there

// Creates the directory and checks the programs and their versions. False: *error is one sentence.
bool PrepareHostRun(const Plan &plan, const PlanHost &host, const std::string &token, HostRun *host_run,
		    std::string *error);
// Starts recorders and clocks and waits until they are ready. False as above.
bool StartRecorders(HostRun *host_run, const Plan &plan, const PlanHost &host, std::string *error);
// Starts the loads, which send from `start_ns` (CLOCK_REALTIME), and reports events until "end" or the end of
// standard input, a signal, or `deadline_ns` (CLOCK_MONOTONIC). Then it ends all programs.
void RunLoads(HostRun *host_run, uint64_t start_ns, uint64_t deadline_ns);
// Ends all programs.
void EndHostRun(HostRun *host_run);
// "; its last messages: one line / another", of the lines in child.last; "" without any.
std::string LastWords(const common::Child &child);

// A run on several hosts, from the plan to the collected run directory.
//
// mpirun is started twice: for the run, and to collect the files from the hosts. There is no state in
// between, so the second works however the first ended (a killed rank, Ctrl-C, a lost host).

struct HostsOptions {
	Plan plan;
	MpiRun mpi; // all but the token
};

// Reads the plan, finds the programs, creates the run directory. False: *error is one sentence, *status the
// exit status.
bool PrepareHosts(HostsOptions *options, std::string *error, int *status);
// The programs of each host, for --check.
std::string DescribePlan(const Plan &plan);
// Returns the exit status: 0 success, 1 a program died or files are missing, 3 the run could not start.
int RunHosts(HostsOptions options);

} // namespace forktail::hosts
