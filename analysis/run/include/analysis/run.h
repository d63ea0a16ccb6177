// SPDX-License-Identifier: MIT
// The run as plain data: what was recorded of requests, threads, connections and hosts, with the indexes that
// find it. Every other module of the analysis reads it; module source fills it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <sys/mman.h>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/format.h"
#include "recording/recording.h"

namespace forktail::analysis
{

// An append-only array for tens of millions of plain values. std::vector copies when it grows, so that a log
// of 10 million requests briefly needs twice its memory. realloc of a large block moves pages instead of
// bytes, and its unused tail takes no memory. This class also does not fill values with zeros.

template <typename T> struct Column {
	static_assert(std::is_trivially_copyable_v<T>);

	Column() = default;
	Column(const Column &other) { Append(other.data_, other.size_); }
	Column(Column &&other) noexcept { Swap(other); }
	Column &operator=(Column other) noexcept
	{
		Swap(other);
		return *this;
	}
	~Column() { free(data_); }

	size_t size() const { return size_; }
	bool empty() const { return size_ == 0; }
	T *data() { return data_; }
	const T *data() const { return data_; }
	T *begin() { return data_; }
	T *end() { return data_ + size_; }
	const T *begin() const { return data_; }
	const T *end() const { return data_ + size_; }
	T &back() { return data_[size_ - 1]; }
	const T &back() const { return data_[size_ - 1]; }
	T &operator[](size_t i) { return data_[i]; }
	const T &operator[](size_t i) const { return data_[i]; }

	void push_back(const T &value)
	{
		T copy = value;
		*Extend(1) = copy;
	}
	void Append(const T *values, size_t count)
	{
		if (count)
			memcpy(Extend(count), values, count * sizeof(T));
	}
	// Appends `count` uninitialised values and returns the first.
	T *Extend(size_t count)
	{
		if (size_ + count > capacity_) {
			size_t want = capacity_ + capacity_ / 2;
			if (want < size_ + count)
				want = size_ + count;
			if (want < 1024)
				want = 1024;
			void *moved = realloc(static_cast<void *>(data_), want * sizeof(T));
			if (!moved)
				throw std::bad_alloc();
			data_ = static_cast<T *>(moved);
			capacity_ = want;
			AdviseHugePages();
		}
		size_ += count;
		return data_ + size_ - count;
	}
	// Drops values from the end.
	void Truncate(size_t count) { size_ = count < size_ ? count : size_; }

private:
	// With 4 kB pages, page faults of a log of gigabytes would take longer than reading it.
	void AdviseHugePages()
	{
		constexpr uintptr_t huge = 2 << 20;
		uintptr_t first = (reinterpret_cast<uintptr_t>(data_) + huge - 1) & ~(huge - 1);
		uintptr_t end = reinterpret_cast<uintptr_t>(data_ + capacity_) & ~(huge - 1);
		if (end > first + 4 * huge)
			madvise(reinterpret_cast<void *>(first), end - first, MADV_HUGEPAGE);
	}
	void Swap(Column &other)
	{
		std::swap(data_, other.data_);
		std::swap(size_, other.size_);
		std::swap(capacity_, other.capacity_);
	}

	T *data_ = nullptr;
	size_t size_ = 0;
	size_t capacity_ = 0;
};

// How fast a thread's code ran, by the CPU's counters: sums over stretches in which it kept its CPU. Code
// that waits for memory, or shares its core or cache with a neighbour, executes fewer instructions per cycle;
// a CPU with a lower frequency has fewer cycles per second.

struct Counted {
	uint64_t readings = 0; // stretches
	uint64_t ns = 0, cycles = 0, instructions = 0;
	bool software = false;		      // events of the kernel in the place of the hardware's
	uint64_t misses = 0, with_misses = 0; // of the last-level cache; instructions while they were counted

	void Add(const ft_counters &c)
	{
		readings++;
		ns += c.duration_ns;
		cycles += c.cycles;
		instructions += c.instructions;
		software |= (c.flags & FT_COUNTED_SOFTWARE) != 0;
		if (c.flags & FT_COUNTED_MISSES) {
			misses += c.cache_misses;
			with_misses += c.instructions;
		}
	}
	// Without a part of it.
	Counted Without(const Counted &part) const
	{
		Counted rest = *this;
		rest.readings -= part.readings;
		rest.ns -= part.ns;
		rest.cycles -= part.cycles;
		rest.instructions -= part.instructions;
		rest.misses -= part.misses;
		rest.with_misses -= part.with_misses;
		return rest;
	}
	double PerCycle() const { return Ratio(instructions, cycles); }
	double Gigahertz() const { return Ratio(cycles, ns); }
	// Cache misses per 1,000 instructions.
	double Misses() const { return 1000 * Ratio(misses, with_misses); }

private:
	static double Ratio(uint64_t a, uint64_t b)
	{
		return b ? static_cast<double>(a) / static_cast<double>(b) : 0;
	}
};

// A run as read from disk: the content of all recordings of one directory, in plain arrays, without
// interpretation. timeline.h, blame.h and evidence.h use it; they never open a file.
//
// All times are CLOCK_MONOTONIC ns of the host. A run may have several recordings. Ids that are unique only
// in a file (details, series, connections, operations) become unique in the run while reading.

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
	uint32_t space = 0;    // of its ids (IdSpace)
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
	std::string Text() const { return why.empty() ? what : what + ": " + why; }
};

// From then on a recorder sampled soft interrupts, or timed each of them again.
struct SoftirqSampling {
	uint64_t t_ns = 0;
	std::string host;
	bool on = false;
	bool asked = false;	 // by an option
	uint64_t per_second = 0; // soft interrupts of its host, if that is why
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

// A client whose requests the server's kernel saw: a process of this host, else an address, with what it
// calls itself.
struct RequestClient {
	std::string name;	  // "10.0.0.7", "python3 (4711)", "billing, python3 (4711), redis-py"
	std::string address = {}; // "": a Unix socket
	uint32_t pid = 0;	  // 0: not known
	std::string comm = {};
	std::string own_name = {}, library = {}; // CLIENT SETNAME, CLIENT SETINFO LIB-NAME; "": none
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

// A window of the request log, or all of it, by column, in the order of the file: per connection the
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
	// The end of the requests from i on, before `end`, that equal request i, as those of a pipeline do
	// that were sent together and whose answers were read together. Those that a kernel saw are all
	// different.
	size_t EndOfEqual(size_t i, size_t end) const
	{
		size_t to = i + 1;
		if (to == end || connection[to] != connection[i] || !read_ns.empty())
			return to;
		const bool more = !behind.empty() || !arrival_ns.empty();
		while (to < end && end_ns[to] == end_ns[i] && connection[to] == connection[i] &&
		       sent_ns[to] == sent_ns[i] && due_ns[to] == due_ns[i] && op[to] == op[i] &&
		       status[to] == status[i] &&
		       (!more || (Behind(to) == Behind(i) && Arrived(to) == Arrived(i))))
			to++;
		return to;
	}
	// Whether the answer fits into a socket's buffer, as far as its size is known. Else the server may
	// have waited for the client to read the begin.
	bool AnswerFits(size_t i) const { return answer_bytes.empty() || Fits(answer_bytes[i]); }
	static bool Fits(uint32_t bytes) { return bytes <= 16 << 10; } // TCP's send buffer at first: tcp_wmem
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
	double ns_per_run = 0; // 0: not known
	uint64_t total_ns = 0;
};

// The recorder's own cost over the recording.
struct Cost {
	bool known = false;
	uint64_t bpf_ns = 0;
	bool bpf_ns_is_estimate = false;
	bool bpf_known = false;		 // bpf_ns is; the runs of programs are known in any case
	std::optional<uint64_t> windows; // in which the kernel timed programs; none: runs are estimates too
	uint64_t recorder_cpu_ns = 0;	 // while it recorded
	uint64_t load_cpu_ns = 0;	 // before that; 0: included in the above (old recordings)
	uint64_t recorder_rss_bytes = 0;
	std::vector<ProgramCost> programs;
	// Since the recorder began.
	std::map<std::string, uint64_t> helper_deaths; // helper processes that were started again, by name
	uint64_t main_loop_stalls = 0;		       // rounds of its main loop that took over a second
};

// What the server reported about itself, from the recorder's notes or from run.json.
struct ServerReport {
	uint64_t t_ns = 0;
	std::string kind;	       // "bgsave", "bgrewriteaof", "info", "server-word" ...
	uint64_t latest_fork_usec = 0; // 0: not reported
	std::string text;	       // the whole object as JSON
};

// The first bytes of a slow request's key, as the recorder or the load generator noted it.
struct SlowKey {
	uint64_t t_ns = 0; // when the server's thread `id` read it; of a load generator when it was sent
	bool of_load = false;
	uint32_t id = 0; // the thread, as its host numbers it; of a load generator an index into connections
	uint64_t took_ns = 0;	// of a load generator: from being sent to its answer
	std::string text;	// printable
	bool begin = false;	// the key may be longer
	uint8_t op = UINT8_MAX; // of a load generator: index into Run::ops

	std::tuple<uint64_t, bool, uint32_t> place() const { return {t_ns, of_load, id}; }
};

// A request of another client than the load generator, which the server had for long: the load generator's
// requests may have waited for it.
struct OthersRequest {
	uint64_t read_ns = 0, answered_ns = 0, bytes = 0; // of the request and its answer
	std::string command, client;			  // "KEYS", "127.0.0.1:5123"; "": unknown
	uint32_t reader = 0;				  // the thread that read it; 0: unknown

	auto operator<=>(const OthersRequest &) const = default;
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

// A process at the other end of a pipe for which a thread waited.
struct PipeEnd {
	uint32_t pid = 0; // as its own kernel numbers it
	std::string comm;
	std::string state; // as in /proc/PID/stat; "" if unknown
};

// The processes at the other end of a pipe, looked up at t_ns because a thread waited for them.
struct PipeEnds {
	uint64_t t_ns = 0;
	uint32_t pid = 0; // the thread's process
	uint64_t fd = 0;  // its descriptor of the pipe
	uint64_t inode = 0;
	std::vector<PipeEnd> ends;
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
	// Of the load's first server: from run.json, or from the load generator's observer.
	std::map<std::string, std::string> redis_config;
	std::set<std::string> changed_settings; // of which two readings differ
	uint64_t rss_bytes = 0;			// 0: not reported
	std::string text;			// the file's text, not sanitized
};

// A clock of recordings, compared with the run's.
struct HostClock {
	std::string host, clock_id;
	int64_t offset_ns = 0; // run's clock minus this one when the recordings begin
	double drift_ppm = 0;  // by how many millionths the run's clock runs faster
	uint64_t bound_ns = 0; // uncertainty of times, maximum over the recordings
	size_t samples = 0;    // round trips
};

// What a user noted about an instant: "deploy 42" (analysis/source.h), or a hit of a probe.
struct Mark {
	uint64_t t_ns = 0;
	std::string text;
	bool probe = false;
};

struct Run {
	std::string path;
	std::vector<RecordingFile> files;
	std::vector<HostClock> host_clocks; // empty: all times are of one clock; the first entry is the run's
	// Uncertainty of the times of requests against those of what threads did; 0: one clock.
	uint64_t clocks_bound_ns = 0;
	RunInfo info;
	std::vector<std::string> hosts; // names, of the recordings with comparable clocks, in their order
	// With one host, ids of threads, processes, CPUs and devices are its own; else see IdSpace.
	uint32_t spaces = 1, cpus_of_space = UINT16_MAX;
	std::vector<std::pair<uint32_t, uint32_t>> foreign_devices; // (space, number there)

	// Data of recorders. Of what threads did only a stretch may be in memory: all spans, tallies,
	// samples, CPU slices, block requests and writes that overlap it (source.h).
	uint64_t loaded_from_ns = 0, loaded_to_ns = UINT64_MAX;
	uint64_t min_span_ns = 0;
	uint64_t metrics_ns = 0; // longest time between two readings of the host; 0: each 100 ms
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
	std::vector<ft_load_tcp> load_tcp;	 // by time; `connection` is an index into connections
	std::vector<ft_socket> sockets;		 // by inode and time
	std::vector<ft_tcp_event> tcp_events;	 // by time
	std::vector<ft_tcp_state> tcp_states;	 // likewise
	std::map<uint32_t, std::string> devices; // ft_io's dev -> "vda", if the recorder knew it
	std::vector<Series> series;
	std::vector<std::string>
	    programs; // a drop of source FT_DROP_MISSED has an index into this list as detail
	std::vector<ft_drop> drops;
	std::vector<ft_clock> clocks;			// readings of all recordings
	std::vector<ServerReport> reports;		// by time
	std::vector<SlowKey> keys;			// by place()
	std::vector<OthersRequest> others;		// of a kernel log that is joined; its readers fill it
	std::vector<Quota> quotas;			// by time
	std::vector<ProcessEnd> ended;			// likewise
	std::vector<FrozenGroup> frozen;		// likewise
	std::vector<PipeEnds> pipes;			// likewise
	std::vector<SoftirqSampling> softirq_samplings; // in the order of the files
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
// Helper processes of the recorder that were started again.
uint64_t HelperDeaths(const Run &run);

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
// Says for how long soft interrupts were sampled, until the end that FindExtent has found.
void WarnOfSampledSoftirqs(Run *run);

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

// The request log, read by windows, so that memory is bounded for a log of hours. Whatever needs all requests
// goes through all windows in order, as often as necessary.

class Log
{
public:
	virtual ~Log() = default;
	// The number of requests. In a damaged log some of them may be impossible and dropped.
	virtual uint64_t Count() const = 0;
	// Goes back to the beginning.
	virtual void Rewind() = 0;
	// Puts the next window into Run::requests. False: all were read.
	virtual bool Next() = 0;
	// The content of Run::requests was replaced by another log's window.
	virtual void Forget() {}
	// From the next window on, each one begins with up to this many requests of the window before
	// (Requests::lead).
	virtual void KeepLead(size_t) {}
};

// Calls see() with each window of the log in Run::requests. The last one stays there.
template <typename See> void ForWindows(Log *log, See see)
{
	for (log->Rewind(); log->Next();)
		see();
}

// The log of a run whose requests are all in memory.
class WholeLog : public Log
{
public:
	explicit WholeLog(const Run &run) : run_(run) {}
	uint64_t Count() const override { return run_.requests.size(); }
	void Rewind() override { given_ = false; }
	bool Next() override { return !std::exchange(given_, true) && run_.requests.size() > 0; }

private:
	const Run &run_;
	bool given_ = false;
};

// A part of a run, as users give it: --since, --until, --around.

// A time as a user writes it.
struct Instant {
	enum Kind : uint8_t {
		FromBegin, // "+12.5s": after the due time of the run's first request
		BeforeEnd, // "-5m": before the run's end
		Realtime,  // "2026-11-22T20:15:03.5", "1795378503.5": ns since 1970, UTC
		TimeOfDay, // "20:15:03": ns since midnight, UTC, of the day the run began (or the next)
	};
	Kind kind = FromBegin;
	uint64_t ns = 0;
};
// False: it has none of these forms.
bool ParseInstant(const std::string &text, Instant *instant);

// The requested part of a run: requests due in [since, until).
struct PartAsked {
	std::optional<Instant> since, until;
	uint64_t before_ns = 0, after_ns = 0; // extends the part in both directions
	bool any() const { return since || until; }
};
// Parses the options' texts; "": not given. `around` is "T" or "T,WIDTH". False: *error is one sentence.
bool ParsePart(const std::string &since, const std::string &until, const std::string &around, PartAsked *part,
	       std::string *error);

// [since_ns, until_ns) by the run's clock.
struct TimeSpan {
	uint64_t since_ns = 0, until_ns = UINT64_MAX;
};
// Finds the requested part of a run that lasts from begin_ns to end_ns. Returns 0, or an exit status with
// *error as one sentence. 2: since is not before until; 3: the time is unknown, or the run has nothing in the
// part.
int FindPart(const PartAsked &asked, const Run &run, uint64_t begin_ns, uint64_t end_ns, TimeSpan *part,
	     std::string *error);
// "the run lasts from +0.000 s to +60.0 s (2026-11-22T20:15:03 to 2026-11-22T20:16:03 UTC)"
std::string SpanText(const Run &run, uint64_t begin_ns, uint64_t end_ns);

// Several machines in one run. The ids of threads, CPUs, devices and sockets are unique only on one machine.
// So each kernel (boot id) gets its own id space while a run is read. The host's name is a different matter:
// recorders in two network namespaces of one kernel are two hosts with the same ids. With only one kernel all
// ids stay unchanged.

// No Linux has a process id that high (PID_MAX_LIMIT).
constexpr uint32_t kIdsOfSpace = 1 << 22;

// Maps a file's ids to the run's.
struct IdSpace {
	uint32_t number = 0;
	uint32_t first_cpu = 0, cpus = UINT16_MAX; // of this space

	// 0 stays 0: no thread.
	uint32_t Id(uint32_t id) const { return id && number ? id % kIdsOfSpace + number * kIdsOfSpace : id; }
	uint16_t Cpu(uint32_t cpu) const
	{
		return static_cast<uint16_t>(number ? first_cpu + cpu % cpus : cpu);
	}
	// Inodes of sockets are 32 bits wide.
	uint64_t Inode(uint64_t inode) const
	{
		return inode && number ? (inode & UINT32_MAX) | uint64_t{number} << 32 : inode;
	}
};

// The space of a run's thread or process id, or device.
uint32_t SpaceOfId(const Run &run, uint32_t id);
uint32_t SpaceOfDevice(const Run &run, uint32_t dev);
// The run's id of a device. Devices of spaces after the first get an invented number.
uint32_t DeviceOf(const IdSpace &space, uint32_t dev, Run *run);
// The machine's own id, for printing.
uint32_t OwnId(const Run &run, uint32_t id);
uint32_t OwnCpu(const Run &run, uint32_t cpu);
uint32_t OwnDevice(const Run &run, uint32_t dev);

inline bool SeveralHosts(const Run &run)
{
	return run.hosts.size() > 1;
}
// The host of a thread; "" if the run has only one host.
std::string HostOf(const Run &run, const Thread &thread);
// The host of a process or thread by its id; "" if no recording has it and its kernel has several names.
std::string HostOfId(const Run &run, uint32_t id);
// The run's id of a CPU, by its number in that host's recording.
uint64_t CpuOfHost(const Run &run, const std::string &host, uint64_t own);
// "7", or with several kernels "7 on redis-a".
std::string ShownCpu(const Run &run, uint64_t cpu);
// The printed id of a thread or process: "4711", or with several hosts "4711 on redis-a".
std::string ShownId(const Run &run, uint32_t id);
std::string ShownTid(const Run &run, const Thread &thread);
std::string ShownTgid(const Run &run, const Thread &thread);
// " on redis-a"; "" for "".
std::string OnHost(const std::string &host);

// Whether a series is about that process, or about the thread's host.
bool IsOfProcess(const Run &run, const Series &series, const Thread &thread);
bool IsOfHost(const Run &run, const Series &series, const Thread &thread);

// The longest time that a reading of the recorder's series covers.
uint64_t LongestReading(const Run &run);
// Since when the i-th sample of such a series tells what happened: the reading before it.
uint64_t ReadingBegin(const Run &run, const Series &series, size_t i);

// An address that is a different server on each host: "unix:/path", "127.0.0.1:6379", "localhost:6379".
bool IsLocalAddress(const std::string &address);

// Maps the ids of connections in a file to the run's connections. All segments of a ring that one recorder
// wrote share the ids of a kernel log, so they share one table: the same connection is not a second one in
// the next segment.

constexpr uint32_t kNoConnection = UINT32_MAX;

class ConnectionIds
{
public:
	// The index in Run::connections, or kNoConnection. Ids are usually small and every request needs one:
	// a table is faster than a map.
	uint32_t Index(uint32_t id) const
	{
		if (id < table_.size())
			return table_[id];
		auto found = all_.find(id);
		return found == all_.end() ? kNoConnection : found->second;
	}
	// The same; the connection is added if it is new.
	uint32_t Make(uint32_t id, Run *run);
	// The index of the connection that was added first, or kNoConnection.
	uint32_t First() const { return first_; }

private:
	std::unordered_map<uint32_t, uint32_t> all_;
	std::vector<uint32_t> table_; // of `all_`, by id
	uint32_t first_ = kNoConnection;
};

// Finds the same sockets in a load generator's log and in a kernel log. Both logs have the client's port, or
// the inode of its Unix socket. Ports are used again, so their times must overlap as well.

// A connection of the load generator's log, from an instant on.
struct SameSocket {
	uint64_t opened_ns;
	uint32_t connection; // index into Run::connections
};

// By connection of a kernel log: those of the load generator's log that are the same socket, by time. Sockets
// that cannot be distinguished from others have none.
using SocketPairs = std::vector<std::vector<SameSocket>>;

// Times of the two logs may differ by bound_ns.
SocketPairs PairSockets(const Run &kernel, const Run &run, uint64_t bound_ns);

// Copies the threads that read a connection, which only a kernel log has, to the same connection of `run`.
// One that was opened again had several sockets, and has none.
void TakeReaders(const Run &kernel, const SocketPairs &pairs, Run *run);

// The clients that a kernel log names: one entry per process of the host, else per address, and for each name
// and library that it gave its connections.

class RequestClients
{
public:
	// 1 + the index in Run::request_clients of a connection's client; 0: unknown, or there are too many.
	// `pid` is the process id in the run, `own_pid` on its host. `on_host`: follows a process in its
	// name.
	uint32_t Of(const ft_connection &c, uint32_t pid, uint32_t own_pid, const std::string &on_host,
		    Run *run);

private:
	std::unordered_map<std::string, uint32_t> by_name_;
};

// Finds the thread of a thread id in a record.

// Finds the thread that a record belongs to. A tid can be reused after its thread has ended: the record
// belongs to the last account that began no later than it.
struct ThreadFinder {
	std::unordered_map<uint32_t, std::vector<uint32_t>> by_tid; // indices into threads, by start

	explicit ThreadFinder(const std::vector<Thread> &threads)
	{
		for (uint32_t i = 0; i < threads.size(); i++)
			by_tid[threads[i].tid].push_back(i);
	}
	// -1: no such thread.
	int64_t Find(const std::vector<Thread> &threads, uint32_t tid, uint64_t start_ns) const
	{
		auto found = by_tid.find(tid);
		if (found == by_tid.end())
			return -1;
		const std::vector<uint32_t> &list = found->second;
		uint32_t best = list.front();
		for (uint32_t i : list)
			if (threads[i].start_ns <= start_ns)
				best = i;
		return best;
	}
};

// The recordings whose clock is the run's. A recording of another boot in the same directory is listed too,
// but its host and load are not those of the run.

inline std::vector<const RecordingFile *> OverlaidFiles(const Run &run)
{
	std::vector<const RecordingFile *> files;
	for (const RecordingFile &f : run.files)
		if (f.overlaid)
			files.push_back(&f);
	return files;
}

// The progress of an explanation, as one number that grows from 0 to 1 over many passes, whose number is not
// known in advance. Each pass has its place in a plan; each one beyond the plan gets half of the rest.

class Progress
{
public:
	Progress() = default;
	// Calls `see` with 0..1, occasionally.
	explicit Progress(std::function<void(double)> see) : see_(std::move(see)) {}
	// Plans the next passes: the total progress at the end of each, ascending. Passes planned earlier
	// count as done.
	void Plan(std::vector<double> ends)
	{
		ends_ = std::move(ends);
		next_ = 0;
		from_ = to_ = std::max(from_, to_);
	}
	// Begins a pass, which ends the one before.
	void Begin()
	{
		from_ = to_;
		double planned = next_ < ends_.size() ? ends_[next_++] : 0;
		to_ = planned > from_ ? planned : from_ + (1 - from_) / 2;
		At(0);
	}
	// Sets the progress of the pass, 0..1.
	void At(double part)
	{
		if (see_)
			see_(from_ + (to_ - from_) * std::clamp(part, 0.0, 1.0));
	}
	void At(uint64_t done, uint64_t all) { At(static_cast<double>(done) / static_cast<double>(all)); }

private:
	std::function<void(double)> see_;
	std::vector<double> ends_;
	size_t next_ = 0;
	double from_ = 0, to_ = 0;
};

// Sorts almost sorted sequences, as recorded data is.

// Insertion among the last few values. If that is not enough for many values, everything is sorted.
template <typename T, typename Before> void SortNearly(T *begin, T *end, Before before)
{
	size_t room = 8 * static_cast<size_t>(end - begin);
	for (T *at = begin; at != end; at++) {
		if (at == begin || !before(*at, at[-1]))
			continue;
		T moved = *at, *to = at;
		for (; to != begin && before(moved, to[-1]); to--) {
			*to = to[-1];
			if (room-- == 0) {
				to[-1] = moved;
				std::sort(begin, end, before);
				return;
			}
		}
		*to = moved;
	}
}

} // namespace forktail::analysis
