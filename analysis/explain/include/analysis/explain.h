// SPDX-License-Identifier: MIT
// The explanation of a run: a Reading has what is read of its files, passes over it make the Explanation,
// which is data for outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/blame.h"
#include "analysis/evidence.h"
#include "analysis/passes.h"
#include "analysis/run.h"
#include "analysis/snapshots.h"
#include "analysis/source.h"
#include "analysis/timeline.h"

namespace forktail::analysis
{

// The CPU time of recorded threads in a period, by the kernel's account, with the interrupts on top of them.

class CpuTimes
{
public:
	explicit CpuTimes(const TimeSpan &period) : period_(period) {}
	// Adds what began in [from_ns, to_ns), which must be loaded.
	void Add(const Run &run, uint64_t from_ns, uint64_t to_ns);
	// Per Run::threads.
	uint64_t Of(size_t thread) const { return thread < by_thread_.size() ? by_thread_[thread] : 0; }

private:
	// The part in the period of an amount spread evenly over [start_ns, end_ns].
	uint64_t Within(uint64_t amount_ns, uint64_t start_ns, uint64_t end_ns) const;

	TimeSpan period_;
	std::vector<uint64_t> by_thread_;
};

// Numbers of a server's INFO, which the load generator's observer asks for every second. All values of an
// answer are of one instant. Only changed ones are written: a value holds until the next one.

// nullptr: the server did not report it.
const Series *InfoSeries(const Run &run, const std::string &name);

// A value as a whole number. A recording may have any numbers: negative ones are 0.
uint64_t WholeInfo(double value);

// By how much it grew in the period, times `unit`. Nothing if it was not reported, or set back by a restart.
std::optional<uint64_t> InfoGrowth(const Run &run, const std::string &name, const TimeSpan &period,
				   double unit = 1);

// What a Redis or Valkey server counted itself, to compare with the kernel's account of its thread: the load
// generator's observer writes the numbers of INFO every second.

struct ServerCount {
	uint64_t ns = 0;	 // between the first answer to INFO and the last
	uint64_t cycles = 0;	 // of its event loop (eventloop_cycles)
	uint64_t loop_ns = 0;	 // from the end of polling until the next (eventloop_duration_sum)
	uint64_t command_ns = 0; // of that in commands (eventloop_duration_cmd_sum)
};

// Nothing for a server that does not count (before Redis 7.2), with fewer than two answers, and if it was
// restarted meanwhile.
std::optional<ServerCount> ServerCountOf(const Run &run);

// What a Redis or Valkey server counted of each command while the load ran, beside the requests of the log.
// The load generator's observer notes the server's counters at the begin and at the end.

struct ServerCommand {
	std::string name;			      // "get", "config|set"
	uint64_t calls = 0, rejected = 0, failed = 0; // failed ones are among the calls
	uint64_t time_ns = 0;			      // in the command's function
	// Upper bounds of percentiles of a call's time (LATENCY HISTOGRAM); 0: unknown.
	uint64_t p50_ns = 0, p99_ns = 0;
	// The log's requests with this command; nothing if the log has no such operation.
	std::optional<OperationCount> logged;

	uint64_t MeanNs() const { return calls ? time_ns / calls : 0; }
	// How many more the server counted than the log has.
	int64_t Difference() const { return static_cast<int64_t>(calls + rejected - logged->requests); }
};

struct ServerCommands {
	uint64_t ns = 0;		     // between the two readings of the counters
	std::vector<ServerCommand> commands; // that were counted in that time, by their time, largest first
};

// From the first to the last reading of the counters of the same process of a server; empty without them.
TimeSpan CommandCountsSpan(const Run &run);

// `by_op`: the requests answered in that time. Nothing without two readings.
std::optional<ServerCommands> ServerCommandsOf(const Run &run, const OperationCounts &by_op);

// What a Redis or Valkey server reports of its threads (INFO, every second), beside the kernel's account of
// them.

// A counter is empty if the server does not report it.
struct ServerThread {
	std::string name;		   // "main", "io_thd_1"
	std::optional<uint64_t> cpu_ns;	   // its CPU time (used_cpu_sys_main_thread and ..user..)
	std::optional<uint64_t> active_ns; // without polling for work (used_active_time_..., Valkey 9.1)
	std::optional<uint64_t> connections, reads,
	    writes;		    // Redis 8: the most at a time; requests and replies
	int thread = -1;	    // index into Run::threads; -1: not recorded
	uint64_t kernel_cpu_ns = 0; // in the same time
};

struct ServerThreads {
	TimeSpan period = {0, 0}; // between two answers to INFO, while the main thread was recorded
	std::vector<ServerThread> threads;
};

// The threads of the only server, without kernel_cpu_ns. `process`: its id, 0 if it was not recorded. No
// threads for a server that reports nothing of them or was restarted.
ServerThreads ServerThreadsOf(const Run &run, uint32_t process);
void AddCpuTimes(const CpuTimes &cpu, ServerThreads *all);

// A run that is being read. Passes explain it, and outputs that show single requests or spans read it again.
// It must not move once it is open.
struct Reading {
	Reading() = default;
	Reading(const Reading &) = delete; // its parts have the addresses of others

	Run run; // its small data; of requests a window, of what threads did a stretch
	// Of that stretch, by hop (Explanation::hop_threads), and of the load generators' threads.
	std::vector<Timeline> timelines;
	Clients clients;
	// In this many timelines, waits for another thread are replaced by what that thread did.
	size_t resolved = 0;
	Progress progress; // of the passes
	// Null: `run` holds all that was recorded.
	std::unique_ptr<RunSource> source;
	// Loads stretches of the threads' records into `run` and the timelines. Default: all is loaded.
	Stretches stretches;
	std::unique_ptr<Log> log, log_before; // of the part, and of requests due before it (null: none)
};

// Makes the timelines for the loaded stretch of the run.
void MakeTimelines(Reading *reading);

// The whole explanation of a run as data. Text, JSON and report page only present it.

// What the end of a recorded process did to requests: an entry per Run::ended.
struct ServerEnd {
	int server = -1;	     // index into Run::servers; -1: it served none of these requests itself
	uint64_t next_answer_ns = 0; // to a request that was sent after the end; 0: none
	// Requests of the outage without an answer: sent, and never sent.
	uint64_t failed = 0, unsent = 0;
	uint32_t successor = 0; // a recorded process of the same name that began later; 0: none
	uint64_t began_ns = 0;	// when
};

// Overload of an open loop.
struct Overload {
	enum Limit { Unknown, Server, Client }; // who used all of its CPU
	TimeSpan period = {0, 0};
	bool whole = false; // almost all of the time in which requests were due
	double due_per_s = 0, answered_per_s = 0;
	uint64_t backlog = 0; // due, and neither answered nor failed, at the period's end
	uint64_t unsent = 0;  // of the run
	Limit limit = Unknown;
	int thread = -1; // index into Run::threads; of that one, or the busiest serving one; -1: none
	double cpu = 0;	 // its share of a CPU in the period
	double server_cpu = 0, client_cpu = 0; // of the busiest serving and load threads; -1: not recorded
};

struct Explanation {
	explicit Explanation(const Run &of) : run(of) {}
	explicit Explanation(Run &&) = delete; // it would end before this

	const Run &run; // a Reading's, which must outlive this
	// Index into run.threads, or -1: one per server, one per server behind a proxy, then further serving
	// threads. Without a request log: all threads with an event loop.
	std::vector<int> serving;
	// In the same order (at least one), then threads they waited for; UINT32_MAX: not recorded.
	std::vector<uint32_t> hop_threads;
	Blame blame;
	// Only of a kernel log, or if requested; by client only if the log names clients.
	std::array<std::vector<RequestGroup>, kGroupings> groups; // by GroupBy
	Peaks peaks;				 // of all answered requests; empty without a request log
	std::vector<Episode> episodes;		 // by start
	TcpFacts tcp;				 // of all of them
	Lead lead;				 // what the answer speaks of
	Culprits culprits;			 // behind the causes that it names
	std::vector<Account> accounts;		 // per thread of the run
	std::vector<OwnCode> own_codes;		 // per thread of the run
	OwnCode own_code;			 // of the serving threads
	std::optional<ServerCount> server_count; // of the only server, for the whole run
	std::optional<ServerCommands> server_commands; // likewise
	// Calls, in the whole run, of commands that pause clients: {"CLIENT PAUSE", 2}. Of the only server.
	std::map<std::string, uint64_t> pauses;
	ServerThreads server_threads;
	std::vector<ServerEnd> server_ends; // per Run::ended; empty without a request log
	std::optional<Overload> overload;   // only of an open loop
	Snapshots snapshots;
	std::vector<std::string> notes;		// limits of this explanation, one sentence each
	std::set<std::string> unrecorded_peers; // addresses of servers that recorded processes are clients of
	uint64_t zero_ns = 0;	  // origin of "+12.304 s": the first request, else the start of the recording
	uint64_t first_ns = 0;	  // the same for a part of a run: its first request, or its start
	uint64_t measured_ns = 0; // from first_ns to the last answer, or the end of the recording
	bool in_part = false;	  // only requests due (iterations begun) in `part`
	TimeSpan part;
};

// What the ends of recorded processes did to requests. A server's end is an outage: from its end to the first
// answer to a request that was sent after it.

// Per Run::ended. Reads the log twice if a server of it has ended.
std::vector<ServerEnd> FindServerEnds(const Run &run, Log *log);
std::vector<Outage> OutagesOf(const Run &run, const std::vector<ServerEnd> &ends);

// The end behind most of the requests without an answer, as an index into Run::ended, or -1.
int OutageOf(const Explanation &e);
std::string NameOf(const ProcessEnd &end); // "redis-server (12345)"
std::string SignalName(int signal);	   // "SIGKILL"
// The cgroup that reached its limit of memory about then; "" if none did, or several.
std::string FullCgroup(const Run &run, uint64_t t_ns);
// How a process ended: ", killed by SIGKILL", ", with status 0"; "" if unknown.
std::string HowText(const Run &run, const ProcessEnd &end);
// "redis-server (12345) exited 3.00 s after the first request, killed by SIGKILL: 3,000 requests were due and
// never sent ..."; "" if OutageOf() is -1.
std::string OutageText(const Explanation &e);
// Notes on the other ends that a reader of the run must know.
std::vector<std::string> EndNotes(const Explanation &e);

// Overload of an open loop: for a long time more requests were due than were answered, while answers came at
// a steady rate. A stall is none: while it lasts answers do not come, and afterwards its backlog drains.

// The longest period of overload, without a limit.
std::optional<Overload> FindOverload(const Run &run, const LogFacts &facts);
// Finds who was at its limit, among the serving threads and the load threads.
void FindLimit(const std::vector<int> &serving, const Clients &clients, const CpuTimes &cpu,
	       Overload *overload);

// "400,000 requests/s were due, 85,423/s were answered: the backlog grew from the first second to the last,
// to 1,572,885 requests (overload). redis-server ran 99 % of a CPU (GET 40 %): it was at its limit."; "" if
// nothing was overloaded, or it is not known what was at its limit.
std::string OverloadText(const Explanation &e);
// A note for an overload whose limit is not known; "" without one.
std::string OverloadNote(const Explanation &e);

// Finds the serving threads of a run's requests.

// Fills serving and the timelines of a run with a request log: the first thread of each server, one thread of
// each server behind a proxy, further serving threads, then the threads that any of these waited for. Adds
// notes on unknown ones. Returns the serving threads of connections.
Serving FindServers(const LogFacts &facts, const Accounts &accounts, Reading *reading,
		    Explanation *explanation);

// What to do about the causes that the answer names.

struct Remedy {
	const RemedyInfo *info;
	Cause cause;
	std::string seen;    // why it fits: "appendfsync is always"; "" if the answer says it
	uint64_t without_ns; // the answer's percentile without the cause: at best it becomes this
};

// The remedies whose condition was seen to hold, for the answer's first cause first. Advice whose condition
// is not recorded is not among them.
std::vector<Remedy> RemediesOf(const Explanation &e);
// The ids of those whose condition remedies.cc looks for.
std::vector<std::string> RemediesWithCondition();

// Keys of slow requests, where they were recorded.

// The key of a request that the server's thread `id` read at t_ns, or that was sent then on the load
// generator's connection `id`; nullptr: none was noted.
const SlowKey *FindKey(const Run &run, uint64_t t_ns, uint32_t id, bool of_load);
// The same of a slow request: the recorder's note, or else the load generator's.
const SlowKey *KeyOf(const Run &run, const SlowRequest &r);
// "the key "cart"", "a key that begins with "user:"".
std::string KeyText(const SlowKey &key);
// Of a run whose server was not recorded: the key with most of the time that the load generator's slow
// requests took, and not merely waited; "" if none has most, or if it is that of most slow requests anyway.
std::string LeadingKeyText(const Explanation &e);

// Explains a run: from its path to an Explanation.

struct ExplainOptions {
	Threshold slow; // default: p99, or 1 ms for event-loop iterations
	// The percentile by which causes are ranked for the answer, one of kLatencies. Null: p99.9, or a
	// higher one if that is a usual latency.
	const NamedLatency *ranked_by = nullptr;
	size_t evidence = 4; // sentences per episode
	bool page = false;   // reserve memory for a report page
	// Count requests by this too; by command and client is always done for a kernel log.
	std::optional<GroupBy> groups = {};
	PartAsked part;
	uint64_t memory_bytes = 256 << 20;    // approximate total
	std::function<void(double)> progress; // called with the progress, 0..1
	// As in BlameLimits: called for every slow request.
	std::function<void(const Run &, const SlowRequest &, const Part *parts)> tell = {};
};

// Opens a run and explains it. `out` is of reading->run. False: *error is one sentence, *status the exit
// status (2 wrong usage, 3 unreadable input).
bool ExplainRun(const std::string &path, const ExplainOptions &options, Reading *reading, Explanation *out,
		std::string *error, int *status);

// Fills own_codes and own_code of an otherwise complete explanation of a run that is all in memory.
void FindOwnCode(Explanation *explanation);

} // namespace forktail::analysis
