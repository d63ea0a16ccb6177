// SPDX-License-Identifier: MIT
// A run as read from disk: the content of all recordings of one directory, in plain arrays, without
// interpretation. timeline.h, blame.h and episodes.h use it; they never open a file.
//
// All times are CLOCK_MONOTONIC ns of the host. A run may have several recordings. Ids that are unique only
// in a file (details, series, connections, operations) become unique in the run while reading.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "column.h"
#include "common/format/raw.h"
#include "counted.h"
#include "recording/recording.h"

namespace forktail::analysis
{

// The program that compares clocks. Its recordings say nothing about the run.
constexpr char kClockProgram[] = "forktail-clock";

// One .forktail file with its manifest, its summary and the reader's results.
struct RecordingFile {
	std::string path;
	std::string program; // "forktail-record", "forktail-load"
	std::string version;
	std::string host; // the directory's name in hosts/, else from the manifest
	std::string kernel;
	std::string boot_id;
	std::string clock_id; // the clock of its times; in old recordings the boot id
	std::vector<std::string> argv;
	common::Raw manifest; // JSON text as written
	common::Raw summary;  // likewise; empty if the recording has none
	std::string end_reason;
	uint64_t start_ns = 0;
	uint64_t end_ns = 0; // from the summary; 0 without one
	ft_damage damage = {};
	uint32_t space = 0;    // of its ids (hosts.h)
	uint32_t cpus = 0;     // of the host, if known
	bool overlaid = true;  // false: its clock cannot be compared with the others'; its times are unused
	uint64_t bound_ns = 0; // uncertainty of its times in the run's clock; 0: the same clock
};

struct Target {
	uint32_t pid = 0;
	std::string comm;
	std::string cmdline;
	std::vector<std::string> listens;	  // "tcp:6379", "unix:/path"; empty in old recordings
	std::string cgroup = "";		  // "/docker/1f2e..."; likewise
	std::string cgroup_of = "";		  // "container web (1f2e3d4c5b6a)"; "" if the path has none
	bool io_uring = false;			  // it had an io_uring when recording began
	std::vector<std::string> addresses = {};  // of its network namespace; empty in old recordings
	std::string host = "";			  // the host of its recorder
	std::vector<std::string> peers = {};	  // where its outgoing TCP connections lead to
	std::vector<std::string> local_ends = {}; // "10.0.0.2:41234": this end of each
};

// What the recorder could not record, and why.
struct Missing {
	std::string what;
	std::string why;
};

// A recorded thread. Its spans and tallies are spans[first_span, +span_count) of the run and likewise
// tallies, sorted by start, longer (outer) spans first.
struct Thread {
	uint32_t tid = 0;
	uint32_t tgid = 0;
	uint32_t parent_tgid = 0;
	uint32_t flags = 0; // enum ft_thread_flags
	uint64_t start_ns = 0;
	uint64_t end_ns = 0; // the recording's end if the thread's account was left open
	std::string comm;
	std::string role;
	uint32_t file = 0;	// index into files, if it has a thread record
	bool announced = false; // it has a thread record
	size_t first_span = 0;
	size_t span_count = 0;
	size_t first_tally = 0;
	size_t tally_count = 0;
	size_t first_iteration = 0; // event-loop iterations, in `iterations`
	size_t iteration_count = 0;
	size_t first_cpu_sample = 0;
	size_t cpu_sample_count = 0;
	size_t first_counters = 0;
	size_t counters_count = 0;
	uint64_t usual_turn_ns = 0; // median of its iterations, if computed; else 0
	Counted counted;	    // over the whole recording, if computed
};

// What a span's detail id refers to: a file, or a kernel stack (innermost first); in old recordings the CPU
// holder.
struct Detail {
	std::string name;
	std::vector<std::string> stack;
};

// A function and its file; "" if unknown.
struct StackFrame {
	std::string function;
	std::string module;
};

// A stack of CPU samples, innermost function first; only that one if the callers are unknown.
struct Stack {
	std::string program; // the module that is the process's own program
	std::vector<StackFrame> frames;
	std::vector<std::string> kernel;
};

struct Sample {
	uint64_t t_ns;
	double value;
};

struct Series {
	std::string name; // "host.cpu.user"
	std::string unit; // "percent"
	std::map<std::string, std::string> labels;
	std::vector<Sample> samples; // in time order
};

// A client whose requests the server's kernel saw: an address or, on a Unix socket, a process.
struct RequestClient {
	std::string name; // "10.0.0.7", "python3 (4711)"
	std::string address;
	uint32_t pid = 0; // 0: TCP
	std::string comm;
	bool hashed = false; // `address` is invented, the same for all connections of the client
};

struct Connection {
	uint64_t opened_ns = 0;
	uint64_t closed_ns = 0; // 0 while open
	uint32_t thread = 0;	// a load generator's thread
	uint32_t local_port = 0;
	uint32_t server = 0; // index into servers
	uint64_t inode = 0;  // of the client's socket; 0: unknown
	uint32_t client = 0; // 1 + index into request_clients; 0: unknown
	// In a kernel log: the server's threads that read it, by the time since when. Empty: unknown, or it
	// changes all the time.
	struct Reader {
		uint64_t since_ns;
		uint32_t tid;
	};
	std::vector<Reader> readers = {};
	// For a connection that was opened again: its states with the earlier sockets, in order.
	std::vector<Connection> earlier = {};
};

// A window of the request log (log.h), or all of it, by column, in the order of the file: per connection the
// order of completion. The first `lead` requests are of the window before; those of this one are [lead,
// size()).
struct Requests {
	uint64_t first = 0; // number in the log of the window's first request
	size_t lead = 0;
	Column<uint64_t> due_ns, sent_ns, end_ns;
	Column<uint32_t> connection; // index into Run::connections
	Column<uint8_t> op, status;  // index into Run::ops, enum ft_status
	Column<uint8_t> behind;	     // 1 + index into Run::behind; 0: unknown. Empty: unknown for all
	// When the client's host got the answer, in [sent_ns, end_ns]; 0: unknown. Empty: unknown for all.
	Column<uint64_t> arrival_ns;
	// Only of a kernel log, else empty: when the serving thread's read of the request's last byte
	// returned, and its write of the answer; 0: unknown.
	Column<uint64_t> read_ns, written_ns;
	Column<uint32_t> request_bytes, answer_bytes;
	// Only of a load generator's log with a kernel log of the same requests, else empty; read_ns is then
	// known too. When a request arrived at the server's socket, and when its answer left, in [sent_ns,
	// end_ns]; 0: unknown.
	Column<uint64_t> server_arrival_ns, answered_ns;

	size_t size() const { return end_ns.size(); }
	// The number of request i in the log.
	uint64_t Number(size_t i) const { return first + i - lead; }
	uint64_t Latency(size_t i) const { return end_ns[i] - due_ns[i]; }
	uint32_t Behind(size_t i) const { return behind.empty() ? 0 : behind[i]; }
	// The answer's arrival, or the end if the arrival is unknown.
	uint64_t Arrived(size_t i) const
	{
		return arrival_ns.empty() || arrival_ns[i] == 0 ? end_ns[i] : arrival_ns[i];
	}
	// Whether it is known when the server's kernel had the request.
	bool Joined(size_t i) const { return !server_arrival_ns.empty() && server_arrival_ns[i]; }
	// How long the answer then waited unread.
	uint64_t Unread(size_t i) const { return end_ns[i] - Arrived(i); }
};
// FT_STATUS_OK and _MISS are answers. The others are errors.
constexpr bool IsError(uint8_t status)
{
	return status > FT_STATUS_MISS;
}

// A server behind the proxy that a load generator used.
struct Behind {
	std::string name; // the proxy's name for it
	std::string address;
	std::string host = {}; // of an address that each host has, in a run with several; else ""
	bool operator==(const Behind &other) const { return address == other.address && host == other.host; }
};

// The settings of a load generator, or of a recorder that saw requests in the server's kernel.
struct Load {
	uint32_t file = 0;
	std::string arrival; // "constant", "poisson", "closed"
	double rate = 0;     // requests per second; 0 in a closed loop
	uint32_t pipeline = 1;
	uint32_t first_connection = 0; // of its connections in Run::connections
	uint32_t connection_count = 0;
	bool behind = false;	// it used a proxy and logged the server behind
	bool only_slow = false; // its log has only slow and failed requests
	bool kernel = false;	// a kernel log: `arrival` is "closed", and start is when a request arrived
	bool slices = false;	// a kernel log of only a part of the time
	uint32_t sample = 1;	// of a kernel log: requests are of 1 in this many connections
};

// When a load generator began a test, and its threads on the host. Connection::thread is an index into them.
struct LoadStart {
	uint32_t load = 0; // index into Run::loads
	uint64_t t_ns = 0;
	std::vector<uint32_t> tids;
};

struct ProgramCost {
	std::string name;
	uint64_t runs = 0;
	double ns_per_run = 0;
	uint64_t total_ns = 0;
};

// The recorder's own cost over the recording.
struct Cost {
	bool known = false;
	uint64_t bpf_ns = 0;
	bool bpf_ns_is_estimate = false;
	uint64_t recorder_cpu_ns = 0; // while it recorded
	uint64_t load_cpu_ns = 0;     // before that; 0: included in the above (old recordings)
	uint64_t recorder_rss_bytes = 0;
	std::vector<ProgramCost> programs;
};

// What the server reported about itself, from the recorder's notes or from run.json.
struct ServerReport {
	uint64_t t_ns = 0;
	std::string kind;	       // "bgsave", "bgrewriteaof", "info", "server-word" ...
	uint64_t latest_fork_usec = 0; // 0: not reported
	std::string text;	       // the whole object as JSON
};

// The CPU quota (CFS bandwidth) of a cgroup on the path of a target's, from an instant on.
struct Quota {
	uint64_t t_ns = 0;
	uint32_t pid = 0;
	std::string cgroup;    // "/a/b", from the hierarchy's root
	uint64_t quota_us = 0; // CPU time per period; 0: no quota any more
	uint64_t period_us = 0;
};

// A cgroup in which a process was seen frozen, and the first time of that.
struct FrozenGroup {
	uint64_t t_ns = 0;
	uint32_t pid = 0;
	std::string cgroup; // "/docker/1f2e..."
	std::string name;   // "container web (1f2e3d4c5b6a)"; "" if the path has none
};

// A target, or a target's child that was killed, that ended before the recording did.
struct ProcessEnd {
	uint64_t t_ns = 0;
	uint32_t pid = 0;
	std::string comm;   // of a child its role
	bool child = false; // of a target
	// How it ended: by a signal, or with an exit status; -1: not known, or not so.
	int signal = -1, status = -1;
	bool core_dumped = false, oom_killer = false;
};

// run.json, which is optional.
struct RunInfo {
	bool present = false;
	std::string host;
	std::string kernel;
	std::map<std::string, std::string> versions;
	std::vector<std::string> commands;
	std::map<std::string, std::string> redis_config;
	uint64_t rss_bytes = 0; // 0: not reported
	std::string text;	// the file's text, not sanitized
};

// A clock of recordings, compared with the run's.
struct HostClock {
	std::string host, clock_id;
	int64_t offset_ns = 0; // run's clock minus this one when the recordings begin
	double drift_ppm = 0;  // by how many millionths the run's clock runs faster
	uint64_t bound_ns = 0; // uncertainty of times, maximum over the recordings
	size_t samples = 0;    // round trips
};

// What a user noted about an instant: "deploy 42" (source/marks.h).
struct Mark {
	uint64_t t_ns = 0;
	std::string text;
};

struct Run {
	std::string path;
	std::vector<RecordingFile> files;
	std::vector<HostClock> host_clocks; // empty: all times are of one clock; the first entry is the run's
	// Uncertainty of the times of requests against those of what threads did; 0: one clock.
	uint64_t clocks_bound_ns = 0;
	RunInfo info;
	std::vector<std::string> hosts; // names, of the recordings with comparable clocks, in their order
	// With one host, ids of threads, processes, CPUs and devices are its own; else see hosts.h.
	uint32_t spaces = 1, cpus_of_space = UINT16_MAX;
	std::vector<std::pair<uint32_t, uint32_t>> foreign_devices; // (space, number there)

	// Data of recorders. Of what threads did only a stretch may be in memory: all spans, tallies,
	// samples, CPU slices, block requests and writes that overlap it (source.h).
	uint64_t loaded_from_ns = 0, loaded_to_ns = UINT64_MAX;
	uint64_t min_span_ns = 0;
	uint32_t cpus = 0;
	std::vector<Target> targets;
	std::vector<Missing> missing;
	std::map<int, std::string> syscalls; // names by number, from the recorder; see SyscallName
	std::vector<Thread> threads;	     // by start, tid
	Column<ft_span> spans;		     // grouped by thread; `detail` is an index into details
	Column<ft_tally> tallies;
	Column<ft_span> iterations;	   // overlays, stored separately: they are not part of the account
	std::vector<Detail> details;	   // [0] is empty
	Column<ft_cpu_sample> cpu_samples; // grouped by thread; `stack` is an index into stacks
	Column<ft_counters> counters;	   // grouped by thread; empty without hardware counters
	std::vector<Stack> stacks;	   // [0] is empty
	std::vector<ft_io> ios;		   // by start
	std::vector<ft_writes> writes;	   // likewise
	std::vector<ft_cpu_slice>
	    cpu_slices;		    // by CPU and start, each once; only slices during which a thread waited
	std::vector<ft_loop> loops; // by time
	std::vector<ft_socket> sockets;		 // by inode and time
	std::map<uint32_t, std::string> devices; // ft_io's dev -> "vda", if the recorder knew it
	std::vector<Series> series;
	std::vector<std::string>
	    programs; // a drop of source FT_DROP_MISSED has an index into this list as detail
	std::vector<ft_drop> drops;
	std::vector<ft_clock> clocks;	   // readings of all recordings
	std::vector<ServerReport> reports; // by time
	std::vector<Quota> quotas;	   // by time
	std::vector<ProcessEnd> ended;	   // likewise
	std::vector<FrozenGroup> frozen;   // likewise
	std::map<uint32_t, std::string>
	    tracers; // processes that stopped threads by ptrace: names by process id
	Cost cost;

	// Data of load generators, or of the kernel logs of recorders.
	std::vector<Load> loads;
	std::vector<LoadStart> load_starts; // by time
	std::vector<std::string> servers;   // "unix:/run/redis.sock", "127.0.0.1:6379"
	std::vector<uint32_t> server_pids;  // the process id that each server reported; 0: none
	std::vector<uint8_t>
	    server_proxies; // of a kernel log: whether it passes requests on to other servers
	std::vector<std::string>
	    server_hosts;	      // the host of a local address, if there are several hosts; else ""
	std::vector<Behind> behind;   // at most 254
	std::vector<std::string> ops; // "GET", "SET"
	// Likewise, the command of each: "LRANGE" of "LRANGE_100"; "": several.
	std::vector<std::string> op_commands;
	std::vector<Connection> connections;
	std::vector<RequestClient> request_clients;
	Requests requests;

	std::vector<Mark> marks; // by time

	// The load generator's log is joined with a kernel log, of which other requests are left out.
	bool kernel_log_joined = false;
	// The earliest and latest instant of any record.
	uint64_t start_ns = 0;
	uint64_t end_ns = 0;
	uint32_t shared_mode = 0666; // who may read and write all of its recordings: output is for no others
	std::vector<std::string> warnings; // damage and similar, one sentence each
};

// The container or unit of a thread's process, or of its parent, when recording began: "container web
// (1f2e3d4c5b6a)"; "" if unknown.
std::string PlaceOf(const Run &run, const Thread &thread);

// The TCP port of a server in the log ("127.0.0.1:6379"); 0: a Unix socket, or unknown.
uint32_t PortOf(const std::string &server);

// 1 + the index in Run::behind of a server behind a proxy, which is added if it is new; 0: there are too
// many.
uint8_t AddBehind(const Behind &server, Run *run);

// Whether the run's requests were seen in the kernel of their servers. What passed before a request arrived
// there and after its answer left is then unknown.
bool SeenInKernel(const Run &run);

// The recording of servers, the first if there are several; else the first of all; else an empty one.
const RecordingFile &ServerFile(const Run &run);

const Detail &DetailOf(const Run &run, const ft_span &span);

// The number of dropped events.
uint64_t DropCount(const Run &run);

// The name of a block device: "vda", else "254:0".
std::string DeviceName(const Run &run, uint32_t dev);

// The name of a system call ("read") by its number on the recorded host; "" if unknown.
std::string SyscallName(const Run &run, int number);

// The time of day at an instant, in ns since 1970 UTC, by the nearest reading of both clocks; 0: unknown.
uint64_t RealtimeNs(const Run &run, uint64_t t_ns);

// The inverse: the instant of a time of day; 0: unknown, or before the clock began.
uint64_t MonotonicNs(const Run &run, uint64_t realtime_ns);

// Extends the run's extent to other known parts of it, such as its requests.
void ExtendRun(uint64_t from_ns, uint64_t to_ns, Run *run);

// Sorts a stretch of what threads did by thread. The run's threads and small data must be sorted.
void IndexStretch(Run *run);
// Sorts the small data except threads. Returns the number of impossible records, which are dropped.
uint64_t IndexFacts(Run *run);
// Drops impossible records of what threads did. Returns their number.
uint64_t DropNonsense(Run *run);
// Moves event-loop iterations out of the spans.
void SeparateIterations(Run *run);
// Sorts by start, and by id.
void SortThreads(Run *run);
void WarnOfNonsense(uint64_t dropped, Run *run);
void WarnOfMadeThreads(uint64_t made, Run *run);
// Finds the earliest and latest instant of any record except requests.
void FindExtent(Run *run);

// LoadRun calls this after reading: it closes open threads, sorts, and assigns spans and tallies to threads.
// Tests that build a Run call it too, with spans and tallies in any order.
void IndexRun(Run *run);

// Whether an entry of Run::iterations may be several iterations of a loop that never waited: it read more
// than once, and only samples show where it began or ended.
inline bool MayBeMany(const ft_span &iteration)
{
	constexpr uint64_t reads = 0xffff;
	return iteration.flags & FT_SPAN_SAMPLED && (iteration.arg[1] & reads) > 1;
}

} // namespace forktail::analysis
