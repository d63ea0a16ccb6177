// SPDX-License-Identifier: MIT
// A run as read from disk: everything the recordings of one directory say, in plain arrays, nothing
// interpreted. timeline.h, blame.h and episodes.h work on this; they never open a file.
//
// All times are CLOCK_MONOTONIC ns of the host. Several recordings lie side by side: ids that are unique in
// a file only (details, series, connections, operations) are made unique in the run while reading.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "column.h"
#include "recording/recording.h"

namespace forktail::analysis
{

// What compares clocks says nothing of what a run was.
constexpr char kClockProgram[] = "forktail-clock";

// One .forktail file and what its manifest, summary and reader say.
struct RecordingFile {
	std::string path;
	std::string program; // "forktail-record", "forktail-load"
	std::string version;
	std::string host; // the directory's name in hosts/, else what the manifest says
	std::string kernel;
	std::string boot_id;
	std::string clock_id; // which clock its times were in; of old recordings the boot id
	std::vector<std::string> argv;
	std::string manifest; // JSON text as written, not for showing
	std::string summary;  // likewise; "" if the recording has none
	std::string end_reason;
	uint64_t start_ns = 0;
	uint64_t end_ns = 0; // the summary's; 0 if there is none
	ft_damage damage = {};
	uint32_t space = 0;    // of its numbers (hosts.h)
	uint32_t cpus = 0;     // of the host, as far as it says
	bool overlaid = true;  // false: another clock than the others, its times can't be used with theirs
	uint64_t bound_ns = 0; // how far its times may be off against those of the run's clock; 0: the same
};

struct Target {
	uint32_t pid = 0;
	std::string comm;
	std::string cmdline;
	std::vector<std::string> listens; // "tcp:6379", "unix:/path"; empty in old recordings
	std::string cgroup = "";	  // "/docker/1f2e..."; likewise
	std::string cgroup_of = "";	  // "container web (1f2e3d4c5b6a)"; "" if the path says nothing
	bool io_uring = false;		  // it had a ring when recording began
	std::vector<std::string> addresses = {}; // of its network namespace; empty in old recordings
	std::string host = "";			 // whose recorder traced it
};

// Something the recorder could not record, and why.
struct Missing {
	std::string what;
	std::string why;
};

// A traced thread's last record. Spans and tallies of it are spans[first_span, +span_count) of the run and
// likewise tallies: sorted by start, longer (outer) spans first.
struct Thread {
	uint32_t tid = 0;
	uint32_t tgid = 0;
	uint32_t parent_tgid = 0;
	uint32_t flags = 0; // enum ft_thread_flags
	uint64_t start_ns = 0;
	uint64_t end_ns = 0; // closed at the recording's end if the thread's account was left open
	std::string comm;
	std::string role;
	uint32_t file = 0;	// index into files, of one that a record announced
	bool announced = false; // by a record of its own
	size_t first_span = 0;
	size_t span_count = 0;
	size_t first_tally = 0;
	size_t tally_count = 0;
	size_t first_iteration = 0; // event-loop iterations, in `iterations`
	size_t iteration_count = 0;
	size_t first_cpu_sample = 0;
	size_t cpu_sample_count = 0;
	uint64_t usual_turn_ns = 0; // median of its iterations, where that was found out; else 0
};

// What a span's detail id points to: which file, which kernel stack (innermost first); of old recordings who
// held the CPU.
struct Detail {
	std::string name;
	std::vector<std::string> stack;
};

// A function and the file it is in; "" if not known.
struct StackFrame {
	std::string function;
	std::string module;
};

// Where CPU samples saw a thread, innermost function first; just that one if the callers are not known.
struct Stack {
	std::string program; // the module that is the process' own program
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

struct Connection {
	uint64_t opened_ns = 0;
	uint64_t closed_ns = 0; // 0 while open
	uint32_t thread = 0;	// of the load generator
	uint32_t local_port = 0;
	uint32_t server = 0; // index into servers
	uint64_t inode = 0;  // of the load generator's socket; 0: not known
	// Of one that was opened again: what it was with the sockets before this one, in order.
	std::vector<Connection> earlier = {};
};

// A window of the request log (log.h), or all of it, by column. Order is the file's: per connection the order
// of completion. The first `lead` are of the window before: those of this one are [lead, size()).
struct Requests {
	uint64_t first = 0; // number in the log of the window's first one
	size_t lead = 0;
	Column<uint64_t> due_ns, sent_ns, end_ns;
	Column<uint32_t> connection; // index into Run::connections
	Column<uint8_t> op, status;  // index into Run::ops, enum ft_status
	Column<uint8_t> behind;	     // 1 + index into Run::behind; 0: not known. Empty: of no request
	// When the client's host had the answer, in [sent_ns, end_ns]; 0: not known. Empty: of no request.
	Column<uint64_t> arrival_ns;

	size_t size() const { return end_ns.size(); }
	// The number in the log of [i].
	uint64_t Number(size_t i) const { return first + i - lead; }
	uint64_t Latency(size_t i) const { return end_ns[i] - due_ns[i]; }
	uint32_t Behind(size_t i) const { return behind.empty() ? 0 : behind[i]; }
	// As far as is known.
	uint64_t Arrived(size_t i) const
	{
		return arrival_ns.empty() || arrival_ns[i] == 0 ? end_ns[i] : arrival_ns[i];
	}
	// How long the answer then lay unread.
	uint64_t Unread(size_t i) const { return end_ns[i] - Arrived(i); }
};
// FT_STATUS_OK and _MISS are answers; the rest are errors.
constexpr bool IsError(uint8_t status)
{
	return status > FT_STATUS_MISS;
}

// A server behind the proxy that a load generator talked to.
struct Behind {
	std::string name; // what the proxy calls it
	std::string address;
};

// What a load generator was told to do.
struct Load {
	uint32_t file = 0;
	std::string arrival; // "constant", "poisson", "closed"
	double rate = 0;     // requests per second, 0 in a closed loop
	uint32_t pipeline = 1;
	uint32_t first_connection = 0; // of its connections in Run::connections
	uint32_t connection_count = 0;
	bool behind = false; // it talked to a proxy, and says what lies behind
};

// When a load generator began a test, and by which of the host's threads: Connection::thread is an index.
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
	uint64_t load_cpu_ns = 0;     // before that; 0: in the above, as once
	uint64_t recorder_rss_bytes = 0;
	std::vector<ProgramCost> programs;
};

// What the server said about itself, from the recorder's notes or from run.json.
struct ServerReport {
	uint64_t t_ns = 0;
	std::string kind;	       // "bgsave", "bgrewriteaof", "info", "server-word" ...
	uint64_t latest_fork_usec = 0; // 0: not said
	std::string text;	       // the whole object as JSON
};

// A CPU quota (CFS bandwidth) of a cgroup on the path of a target's, from then on.
struct Quota {
	uint64_t t_ns = 0;
	uint32_t pid = 0;
	std::string cgroup;    // "/a/b", from the hierarchy's root
	uint64_t quota_us = 0; // of CPU time in every period; 0: none any more
	uint64_t period_us = 0;
};

// A cgroup that a process was seen frozen with, first at that time.
struct FrozenGroup {
	uint64_t t_ns = 0;
	uint32_t pid = 0;
	std::string cgroup; // "/docker/1f2e..."
	std::string name;   // "container web (1f2e3d4c5b6a)"; "" if the path says nothing
};

// A target that was gone before the recording ended.
struct EndedTarget {
	uint64_t t_ns = 0;
	uint32_t pid = 0;
	std::string comm;
};

// run.json, which is optional.
struct RunInfo {
	bool present = false;
	std::string host;
	std::string kernel;
	std::map<std::string, std::string> versions;
	std::vector<std::string> commands;
	std::map<std::string, std::string> redis_config;
	uint64_t rss_bytes = 0; // 0: not said
	std::string text;	// the whole file as it is, not for showing
};

// A clock that times of recordings were in, as it compares with the run's.
struct HostClock {
	std::string host, clock_id;
	int64_t offset_ns = 0; // what the run's clock is ahead by when the recordings begin
	double drift_ppm = 0;  // by how many millionths it runs faster
	uint64_t bound_ns = 0; // how far times may be off, over the recordings
	size_t samples = 0;    // round trips
};

struct Run {
	std::string path;
	std::vector<RecordingFile> files;
	std::vector<HostClock> host_clocks; // empty: all times are of one clock; the first is the run's
	// How far times of requests and of what threads did may be off against each other; 0: one clock.
	uint64_t clocks_bound_ns = 0;
	RunInfo info;
	std::vector<std::string> hosts; // names, of the files that are laid over each other, in their order
	// Thread and process ids, CPUs and devices are the machine's own where there is one; else see
	// hosts.h.
	uint32_t spaces = 1, cpus_of_space = UINT16_MAX;
	std::vector<std::pair<uint32_t, uint32_t>> foreign_devices; // (space, number there)

	// Recorder. Of what threads did only a stretch may be there: all spans, tallies, samples, turns,
	// block requests and writes that reach into it (source.h).
	uint64_t loaded_from_ns = 0, loaded_to_ns = UINT64_MAX;
	uint64_t min_span_ns = 0;
	uint32_t cpus = 0;
	std::vector<Target> targets;
	std::vector<Missing> missing;
	std::map<int, std::string> syscalls; // names by number, as the recorder knew them; see SyscallName
	std::vector<Thread> threads;	     // by start, tid
	Column<ft_span> spans;		     // grouped by thread; `detail` is an index into details
	Column<ft_tally> tallies;
	Column<ft_span> iterations;	   // overlays, kept apart: they take no part in the account
	std::vector<Detail> details;	   // [0] is empty
	Column<ft_cpu_sample> cpu_samples; // grouped by thread; `stack` is an index into stacks
	std::vector<Stack> stacks;	   // [0] is empty
	std::vector<ft_io> ios;		   // by start
	std::vector<ft_writes> writes;	   // likewise
	std::vector<ft_cpu_slice> turns;   // by CPU and start, each once; those that somebody waited through
	std::vector<ft_loop> loops;	   // by time
	std::vector<ft_socket> sockets;	   // by inode and time
	std::map<uint32_t, std::string> devices; // ft_io's dev -> "vda", as far as the recorder knew
	std::vector<Series> series;
	std::vector<std::string> programs; // a drop of source FT_DROP_MISSED has an index into it as detail
	std::vector<ft_drop> drops;
	std::vector<ft_clock> clocks;		 // readings of all recordings
	std::vector<ServerReport> reports;	 // by time
	std::vector<Quota> quotas;		 // by time
	std::vector<EndedTarget> ended;		 // likewise
	std::vector<FrozenGroup> frozen;	 // likewise
	std::map<uint32_t, std::string> tracers; // who stopped threads by ptrace: names by process id
	Cost cost;

	// Load generator.
	std::vector<Load> loads;
	std::vector<LoadStart> load_starts;    // by time
	std::vector<std::string> servers;      // "unix:/run/redis.sock", "127.0.0.1:6379"
	std::vector<uint32_t> server_pids;     // what each said its process id is; 0: not said
	std::vector<std::string> server_hosts; // whose local address it is, of several hosts; else ""
	std::vector<Behind> behind;	       // 254 at most
	std::vector<std::string> ops;	       // "GET", "SET"
	std::vector<Connection> connections;
	Requests requests;

	// The earliest and latest instant any recording speaks of.
	uint64_t start_ns = 0;
	uint64_t end_ns = 0;
	std::vector<std::string> warnings; // damage and the like, one sentence each
};

// The container or unit that a thread's process was in when recording began, or that its parent was in:
// "container web (1f2e3d4c5b6a)"; "" if that isn't known.
std::string PlaceOf(const Run &run, const Thread &thread);

// The recording of what servers did, the first one if there are several; else the first of all; else an empty
// one.
const RecordingFile &ServerFile(const Run &run);

const Detail &DetailOf(const Run &run, const ft_span &span);

// How many records were lost.
uint64_t DropCount(const Run &run);

// What a block device is called: "vda", else "254:0".
std::string DeviceName(const Run &run, uint32_t dev);

// The name of a system call by its number where the run was recorded, "read"; "" if it has none. Recordings
// without names are from x86-64.
std::string SyscallName(const Run &run, int number);

// The time of day at an instant, in ns since 1970 UTC, by the nearest reading of both clocks; 0 if there is
// none.
uint64_t RealtimeNs(const Run &run, uint64_t t_ns);

// Makes the run's extent reach over what else is known to be of it, as its requests are.
void ExtendRun(uint64_t from_ns, uint64_t to_ns, Run *run);

// Puts a stretch of what threads did in order: each record to its thread. The run's threads are all known and
// sorted, and so is what there is little of.
void IndexStretch(Run *run);
// Sorts what there is little of, but threads. How many records make no sense, and are left out.
uint64_t IndexFacts(Run *run);
// Leaves out records of what threads did that make no sense. How many.
uint64_t DropNonsense(Run *run);
// Event-loop iterations among spans come apart from them.
void SeparateIterations(Run *run);
// By start, and by id.
void SortThreads(Run *run);
void WarnOfNonsense(uint64_t dropped, Run *run);
void WarnOfMadeThreads(uint64_t made, Run *run);
// The earliest and latest instant that anything but requests speaks of.
void FindExtent(Run *run);

// What LoadRun does once all records are in: closes open threads, sorts, gives spans and tallies to
// their threads. For tests that build a Run by hand, with spans and
// tallies in any order.
void IndexRun(Run *run);

// Whether an entry of Run::iterations may be many turns of a loop that never waited: it read more than once,
// and only samples tell where it began or ended.
inline bool MayBeMany(const ft_span &iteration)
{
	constexpr uint64_t reads = 0xffff;
	return iteration.flags & FT_SPAN_SAMPLED && (iteration.arg[1] & reads) > 1;
}

} // namespace forktail::analysis
