// SPDX-License-Identifier: MIT
// The parts of the guard: triggers, the commands that they run, and the snapshots that they save.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "common/process.h"
#include "live/config.h"
#include "live/follow.h"
#include "live/guard.h"

namespace forktail::live::guard
{

// The memory limit of this process' cgroup.

// The lowest limit of the cgroup and the groups above it, in bytes; UINT64_MAX without one. `root` replaces
// the root of the file system.
uint64_t MemoryLimit(const std::string &root = "");

// Checks events against the trigger rules. A trigger fires once per event-loop iteration, stall or second.
//
// Only stalls of serving threads count (live/follow.h): threads with an event loop, and a server's main
// thread. Background threads and snapshot children do not delay clients.

// One trigger that fired.
struct Firing {
	std::string trigger; // its name
	std::string server;  // "": no particular server
	std::string what;    //  "fork for 25.1 ms", "an event-loop iteration of 62.0 ms"
	uint64_t start_ns = 0, end_ns = 0;
};

class TriggerMatcher
{
public:
	// Replaces the triggers. An event that already fired a trigger of the same name does not fire it
	// again.
	void Use(const std::vector<Trigger> &triggers) { triggers_ = triggers; }
	const std::vector<Trigger> &triggers() const { return triggers_; }

	// Adds the triggers that fired to *fired.
	void See(const live::Batch &batch, const std::vector<live::Server> &servers,
		 const std::vector<live::ThreadTotals> &threads, std::vector<Firing> *fired);

private:
	struct Interval {
		uint64_t start_ns, end_ns;
	};
	bool IsNew(const Trigger &trigger, uint32_t thread, Interval interval);
	void SeeIterations(const Trigger &trigger, const live::Batch &batch, std::vector<Firing> *fired);
	void SeeStalls(const Trigger &trigger, const live::Batch &batch, std::vector<Firing> *fired);
	void SeeRates(const Trigger &trigger, const live::Batch &batch, std::vector<Firing> *fired);
	void SeeDrops(const Trigger &trigger, const live::Batch &batch, std::vector<Firing> *fired);
	bool Concerns(const Trigger &trigger, uint32_t server) const;
	bool IsChilds(uint32_t thread) const;
	const std::string &NameOf(uint32_t server) const;

	std::vector<Trigger> triggers_;
	const std::vector<live::Server> *servers_ = nullptr;	   // during See()
	const std::vector<live::ThreadTotals> *threads_ = nullptr; // likewise
	// The last event of each trigger and thread: a stall is reported while it lasts and again at its end.
	std::map<std::pair<std::string, uint32_t>, Interval> last_;
};

// Decides when to take a snapshot and of which time: one at a time, with a cooldown.
//
// The first trigger that fires starts a plan: `before` is the time before the event, `after` the time after
// it. A trigger that fires until the end of the plan is added and moves the end by at most a minute, so a
// server that stalls all the time gets one snapshot after another. Then the cooldown starts. A trigger that
// fires during the cooldown starts the next plan if its `before` reaches beyond the cooldown's end; otherwise
// it is only counted.

struct Plan {
	uint64_t from_ns = 0, to_ns = 0;
	std::vector<Firing> fired; // the first started the plan; at most kMostFirings
	uint64_t count = 0;	   // of all triggers that fired
	bool empty() const { return fired.empty(); }
};
constexpr size_t kMostFirings = 100;
constexpr uint64_t kMostAfterNs = 60'000'000'000;

enum class FireResult : uint8_t { Begun, Added, Counted };

class Planner
{
public:
	explicit Planner(uint64_t cooldown_ns) : cooldown_ns_(cooldown_ns) {}
	void SetCooldown(uint64_t ns) { cooldown_ns_ = ns; }

	FireResult Fire(const Firing &fired, uint64_t before_ns, uint64_t after_ns);
	// The plan to execute at `now_ns`, when the recorder has written everything up to `newest_ns`; empty:
	// none yet.
	Plan Due(uint64_t newest_ns, uint64_t now_ns);
	// A snapshot is done or has failed: the cooldown starts.
	void Made(uint64_t now_ns);

	const Plan &plan() const { return plan_; } // the pending plan
	uint64_t counted() const { return counted_; }
	uint64_t cool_ns() const { return cool_ns_; } // end of the cooldown

private:
	Plan plan_;
	bool making_ = false;
	uint64_t cooldown_ns_;
	uint64_t cool_ns_ = 0;
	uint64_t counted_ = 0;
};

// The directory of snapshots: their names, and which are removed when there are too many.

struct SavedSnapshot {
	std::string name;
	uint64_t number = 0; // of its marker
	uint64_t bytes = 0;  // of its files, including those shared with the ring
	bool kept = false;   // it has a file named kKeepFile
};

// A file that every snapshot of a trigger has: what fired. It is also the marker by which a snapshot is known
// as one of ours. Its member "number" increases by one from snapshot to snapshot, so their order does not
// depend on a clock.
inline constexpr char kMarker[] = "trigger.json";
// With a file of this name in it, a snapshot is never removed.
inline constexpr char kKeepFile[] = "keep";

// 20261123T081503Z-redis-server-6379-stall-fork; realtime_ns is the time of the trigger.
std::string SnapshotName(uint64_t realtime_ns, const Firing &first);

// Directories that have a marker under the name that it says, the oldest first. Anything else, also a renamed
// snapshot, is not ours.
std::vector<SavedSnapshot> SnapshotsIn(const std::string &directory);

// The number of the next snapshot's marker.
uint64_t NextNumber(const std::string &directory);

// Removes the oldest snapshots until at most `count` with at most `bytes` in total remain; never `keep`, the
// one just taken, nor one with a kKeepFile, which does not count either. Returns how many were removed.
size_t MakeRoom(const std::string &directory, uint64_t count, uint64_t bytes, const std::string &keep);

// Starts the guard's programs: explanations of snapshots, and the commands of triggers. Commands may be any
// program, so they cannot have the guard's limits (common/confine/), which children inherit. A separate
// process ("forktail-run") starts them instead. It is forked before the guard reads anything of the ring, and
// takes from the guard only the names of a snapshot and of a trigger: a guard that a recording took over
// starts nothing else.

class Runner
{
public:
	Runner() = default;
	~Runner(); // ends the program, and waits for that
	Runner(const Runner &) = delete;
	Runner &operator=(const Runner &) = delete;

	// Forks the process. `config` is in effect until the file of `options` has another valid one;
	// `snapshots` is their directory. False: *error is one sentence.
	bool Begin(const GuardOptions &options, const Config &config, const std::string &snapshots,
		   std::string *error);
	// Explains a snapshot, by its name, into kExplanations in it; not while a program runs. False: *error
	// is one sentence. `limit_ns` is for program(): the process takes the limits from its own reading of
	// the configuration.
	bool Explain(const std::string &snapshot, uint64_t limit_ns, std::string *error);
	// Runs the trigger's command for it; `name` is for program().
	bool RunCommand(const std::string &snapshot, const std::string &trigger, const std::string &name,
			uint64_t limit_ns, std::string *error);
	// True, once: the program has ended, or could not be started.
	bool HasEnded();
	// What runs or ran last: its name and time limit, and how it ended.
	const common::Child &program() const { return program_; }
	bool running() const { return running_; }
	bool gone() const { return gone_; } // the process has ended, and can start no more
	int fd() const { return fd_; }	    // readable when HasEnded() is to be asked

private:
	bool Start(const std::string &snapshot, const std::string &trigger, const common::Command &about,
		   std::string *error);

	int fd_ = -1;
	pid_t pid_ = -1;
	bool running_ = false, gone_ = false;
	common::Child program_;
};

// Files of an explanation in its snapshot. Their names start with a dot until they are complete.
inline constexpr const char *kExplanations[] = {"explain.txt", "explain.json"};

// Takes snapshots, then explains them and runs the commands of the triggers that fired. Child processes do
// all of it, so the guard never waits for a disk. One snapshot and one follow-up run at a time.

struct SnapshotCounts {
	std::map<std::string, uint64_t> taken; // by trigger
	uint64_t failed = 0, disk_full = 0, refused = 0, removed = 0;
	uint64_t explained = 0, not_explained = 0;
	uint64_t commands = 0, commands_failed = 0;
};

// The command of a trigger that fired for a snapshot.
struct CommandOf {
	std::string trigger;
	Command command;
};

class SnapshotJobs
{
public:
	// `ring` is the ring's directory, `forktail` the program for explanations ("": none), which `runner`
	// starts.
	SnapshotJobs(const std::string &ring, const std::string &forktail, Runner *runner);
	~SnapshotJobs();
	void Use(const SnapshotLimits &limits) { limits_ = limits; }

	// Starts a snapshot. False: no snapshot is taken, and the reason is printed.
	bool Take(const Plan &plan, uint64_t realtime_ns, const std::vector<CommandOf> &commands);
	// Checks the children. True: the current snapshot is done or has failed.
	bool Look();

	// Of the last snapshot: the first trigger, and whether it succeeded.
	const std::string &last_trigger() const { return last_trigger_; }
	bool last_made() const { return last_made_; }
	const SnapshotCounts &figures() const { return figures_; }
	const std::string &directory() const { return directory_; }

private:
	// All work for one snapshot.
	struct Job {
		Plan plan;
		uint64_t realtime_ns = 0; // when the first trigger fired
		std::string name, path;
		std::vector<CommandOf> commands;
		size_t step = 0; // 0: the explanation; then the commands
	};
	bool Full();
	void Taken();
	bool BeginStep(Job *job);
	bool BeginExplaining(const Job &job);
	bool BeginCommand(const Job &job, const CommandOf &command);
	void StepEnded(const Job &job);
	void Continue();

	const std::string ring_, directory_, forktail_;
	SnapshotLimits limits_;
	Job taking_;
	Runner &runner_; // of explanations and commands
	common::Child taker_;
	std::deque<Job> after_; // the first is in progress
	SnapshotCounts figures_;
	std::string last_trigger_;
	bool last_made_ = false;
	bool disk_full_reported_ = false, refusal_reported_ = false;
};

} // namespace forktail::live::guard

// The server side of the control socket (client: live/config.h): accepts names of triggers from any process
// that may open it. Lines are short, a connection lasts at most two seconds, and at most 16 are open at a
// time, so callers cannot block the guard.

struct event_base;
struct evconnlistener;
namespace forktail::live::guard
{

// Returns whether the request is accepted; *answer is one sentence.
using RequestHandler = std::function<bool(const std::string &name, std::string *answer)>;

class Control
{
public:
	Control() = default;
	~Control();
	Control(const Control &) = delete;
	Control &operator=(const Control &) = delete;

	// Listens on `path` and replaces the socket of a guard that ended. False: *error is one sentence.
	bool Listen(struct event_base *base, const std::string &path, RequestHandler handler,
		    std::string *error);

private:
	friend struct Caller;
	::evconnlistener *listener_ = nullptr;
	ino_t inode_ = 0; // of the socket
	std::string path_;
	RequestHandler handler_;
	int callers_ = 0;
};

} // namespace forktail::live::guard
