// SPDX-License-Identifier: MIT
// Follows recordings as they grow: the present state of the recorded servers, for watch, metrics and
// triggers.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/timeline.h"
#include "common/statistics.h"
#include "recording/recording.h"

namespace forktail::live
{

// Who sent requests: the name that a client gave its connection, else the name of its process on this host,
// else its address without the port. Its size is fixed and small, because watch keeps many of them.

struct Client {
	enum class Kind : uint8_t {
		Other, // several clients beyond a limit
		Address,
		Hashed, // forktail record --hash-clients
		Process,
		Named,
	};
	Kind kind = Kind::Other;
	uint8_t bytes[32] = {};

	auto operator<=>(const Client &) const = default;
	// "10.0.0.7", "2001:db8::7", "client-00f1e2d3c4b5a697", "redis-benchmark", "billing", "other".
	// Sanitized.
	std::string Name() const;
};

Client ClientOf(const ft_connection &connection);

// Follows a ring of segments (forktail-record --keep) or one recording while it is written, and reports what
// happened since the last poll. Metrics, triggers and forktail watch are built on it.
//
// It only reads files, so a recorder never waits for it. It reads only new data, and its memory is bounded:
// sums of the past, and the parts of iterations of the last seconds.
//
// Time is accounted for in slots of 50 ms, with a delay of two seconds, when the recorder has written all
// data of the slot. The time by cause of a slot sums to the slot (for a thread that existed all the time) and
// never changes later, so counters never decrease. The recorder writes the open spans of threads once a
// second (FT_BLOCK_OPEN); a finished span counts only for slots that are not closed yet. Events (iterations,
// stalls, forks ...) are reported as they are read, about a second after they end.

using common::Durations;
using common::ServiceTimes;

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kSlotNs = 50'000'000;
constexpr uint64_t kLagNs = 2 * kSecondNs; // delay of the accounts

constexpr uint32_t kNone = UINT32_MAX;

// Number of intervals by cause, including short ones that were only counted (tallies).
using CauseCounts = std::array<uint64_t, analysis::kTimelineCauses>;

// A server, by a name that survives a restart: "redis-server:6379" with its lowest TCP port,
// "redis-server:/run/redis.sock", else "redis-server"; followed by " (container web)" or "#2" if the name is
// taken.
struct Server {
	std::string name;
	std::string comm;
	std::vector<std::string> listens; // "tcp:6379", "unix:/path"
	uint32_t pid = 0;		  // the current process
	bool alive = false;
	uint64_t began_ns = 0, ended_ns = 0; // as far as observed
};

// Totals of the threads that have the same role one after another ("redis-server", "bio_aof_fsync", "snapshot
// child", "mc-worker/2"). At most one thread has a name at a time.
struct ThreadTotals {
	uint32_t server = 0; // index into Follower::servers()
	std::string name;
	uint32_t tid = 0; // the current thread, or the last
	bool alive = false;
	bool child = false;    // of a process that the server forked
	bool main = false;     // the main thread of its process
	bool has_loop = false; // event-loop iterations were seen
	// Accounted time since this follower started: ns by cause, and their sum.
	analysis::CauseTimes by_cause = {};
	uint64_t accounted_ns = 0;
	CauseCounts counts = {};
};

// One thread's part of a whole second of the recording's clock.
struct ThreadSecond {
	uint32_t thread = 0; // index into Follower::threads()
	analysis::CauseTimes by_cause = {};
	CauseCounts counts = {};
};
struct Second {
	uint64_t start_ns = 0; // a multiple of kSecondNs
	std::vector<ThreadSecond> threads;
};

// Time of one cause; where intervals are counted, their number and the longest one that was recorded
// separately (0: none), with its name or stack.
struct CausePart {
	analysis::Cause cause = analysis::Cause::Unknown;
	uint64_t ns = 0, count = 0;
	uint64_t longest_ns = 0;
	std::string detail = {};
};

// An event-loop iteration of at least the recorder's min_span_ns: clients wait for it.
struct Iteration {
	uint64_t start_ns = 0, duration_ns = 0;
	uint32_t server = 0, thread = 0;
	uint32_t reads = 0, writes = 0; // system calls in it; both 0: not counted
	bool sampled = false; // only seen in CPU samples: at least that long, maybe several iterations
	// Its parts, largest first; they sum to duration_ns. Empty for iterations shorter than
	// Options::iteration_parts_ns. ServerBusy is its own code.
	std::vector<CausePart> parts;
	// Of the longest stall in it: the name (file, lock holder's function ...) or "", and its short kernel
	// stack. The thread that held the CPU longest while this one was ready to run.
	std::string detail, stack, holder;
};

// An interval of a stall cause (IsStall) of at least min_span_ns. The blocked and the runnable part of a wait
// are two stalls.
struct Stall {
	uint64_t start_ns = 0, duration_ns = 0;
	uint64_t own_ns = 0; // without nested stalls that are reported separately
	uint32_t server = 0, thread = 0;
	analysis::Cause cause = analysis::Cause::Unknown;
	bool open = false; // not finished: reported again once a second and at its end
	// The thread is a serving thread: it has an event loop or is the main thread, and is not a child's. A
	// background thread that waits for work does not stall the server.
	bool serves = false;
	std::string detail;  // the file ..., "" without one
	std::string stack;   // "submit_bio_wait < blkdev_issue_flush", "" without one
	std::string syscall; // "read", "" if none
};

struct Fork {
	uint64_t start_ns = 0, duration_ns = 0;
	uint32_t server = 0, thread = 0;
	int64_t result = 0; // the child's pid, or a negative errno
};

struct Fsync {
	uint64_t start_ns = 0, duration_ns = 0;
	uint32_t server = 0, thread = 0;
	std::string file;
};

// A process that a server forked.
struct Child {
	uint32_t server = 0;
	uint32_t pid = 0;
	std::string role; // "snapshot child", "AOF rewrite child", "child"
	uint64_t start_ns = 0;
	uint64_t end_ns = 0; // 0: it runs
};

// Time for which another thread held a CPU while a server's thread was ready to run on it.
struct Taken {
	uint64_t t_ns = 0, ns = 0;
	uint32_t server = 0, thread = 0;
	std::string comm;
};

struct Disk {
	uint64_t start_ns = 0, duration_ns = 0;
	uint32_t dev = 0; // Follower::DeviceName
	uint32_t bytes = 0;
	uint8_t write = 0; // as ft_io's
	std::string comm;
};

// A single event. Kinds: "trigger" (name: its source), "target-began", "target-ended", "recorder-began" and
// "recorder-ended" (from this follower), and all notes of the recorder (docs/reference/recording-format.md).
struct Note {
	uint64_t t_ns = 0;
	std::string kind;
	std::string name;	 // of a trigger
	uint32_t server = kNone; // if it concerns one server
	std::string text;	 // the whole object as JSON; sanitized
	bool on = false;	 // of requests-slice: they are recorded from now on
};

// Requests of a server that ended in one second, as far as they were read by one Poll(). Of a recording with
// forktail record --requests; a request lasts from its arrival at the server's socket until its answer left.
struct RequestSecond {
	uint64_t start_ns = 0; // a multiple of kSecondNs
	uint32_t server = 0;
	uint32_t sample = 1; // one in this many connections was recorded
	common::Histogram times;
	struct OfClient {
		Client client;
		uint64_t count = 0, sum_ns = 0, max_ns = 0;
	};
	// At most kMostClients; further ones together are Client::Kind::Other.
	std::vector<OfClient> clients;
};
constexpr size_t kMostClients = 1000;

enum class Outcome : uint8_t { Ok, Miss, Error };
constexpr size_t kOutcomes = 3;

// Service times of all requests of one command and outcome since this follower started. Each request counts
// as many times as the sample says, so sums are comparable between recorders with different samples.
struct RequestTotals {
	uint32_t server = kNone; // index into Follower::servers(); kNone: other
	std::string command;
	Outcome outcome = Outcome::Ok;
	ServiceTimes times;
};
// The same by client, of all commands and outcomes.
struct ClientTotals {
	uint32_t server = kNone; // as of RequestTotals
	std::string client;	 // Client::Name()
	uint64_t count = 0, sum_ns = 0;
};
constexpr size_t kMostClientTotals = 100; // further clients are "other" of server kNone

// Limits of RequestTotals. Further servers, and further commands of one server, are "other".
constexpr uint32_t kMostRequestServers = 64;
constexpr size_t kMostCommands = 64;

// The recorder's latest report of its own cost.
struct RecorderCost {
	bool known = false;
	uint64_t t_ns = 0; // when it was read
	uint64_t cpu_ns = 0, bpf_ns = 0, rss_bytes = 0;
	bool bpf_known = false; // bpf_ns is
	// Since the recorder began.
	std::map<std::string, uint64_t> helper_deaths; // by helper, such as "unwind"; not others' names
	uint64_t main_loop_stalls = 0;
};

// The result of one Poll().
struct Batch {
	std::vector<Second> seconds; // complete seconds, in order
	std::vector<Iteration> iterations;
	std::vector<Stall> stalls;
	std::vector<Fork> forks;
	std::vector<Fsync> fsyncs;
	std::vector<Child> children; // started or ended
	std::vector<Taken> taken;
	std::vector<Disk> disk;
	std::vector<RequestSecond> requests;
	std::vector<ft_drop> drops;
	std::vector<Note> notes;
	bool more = false; // there is more to read: call Poll() again at once
};

struct Options {
	// Start time. 0: the newest segment (or the start of a single recording). Else the segments from this
	// time on.
	uint64_t from_ns = 0;
	uint64_t iteration_parts_ns = 1'000'000;
	bool disk = true;	      // false: Batch::disk stays empty
	bool request_seconds = false; // false: Batch::requests stays empty
	size_t read_bytes = 8 << 20;  // most bytes of records per Poll()
	uint64_t now_ns = 0; // for tests: the time of Poll(), rather than the clock's; 0: the clock's
};

class Follower
{
public:
	// `path`: a ring's directory or a recording. Poll() checks that it exists.
	Follower(const std::string &path, const Options &options);
	~Follower();
	Follower(const Follower &) = delete;
	Follower &operator=(const Follower &) = delete;

	// Reads new data and replaces *batch by it. False: the recording cannot be read (missing, no
	// permission, not a recording); *error is one sentence, and a later call may succeed. An empty ring
	// is not an error.
	bool Poll(Batch *batch, std::string *error);

	// For tests: the current time for the next Poll().
	void SetNow(uint64_t now_ns);

	// These only grow, so indices stay valid. A new server or thread with the name of an ended one reuses
	// its entry.
	const std::vector<Server> &servers() const;
	const std::vector<ThreadTotals> &threads() const;
	const std::vector<RequestTotals> &requests() const;
	const std::vector<ClientTotals> &request_clients() const;

	// End of the accounts; 0: none yet.
	uint64_t accounted_to_ns() const;
	// The latest time of any record.
	uint64_t newest_ns() const;
	// True if a record arrived within the last three seconds.
	bool recording() const;
	uint64_t min_span_ns() const;
	// Requests are recorded of one in this many connections; 0: of none.
	uint32_t request_sample() const;
	// How long requests have been recorded.
	uint64_t requests_recorded_ns() const;
	RecorderCost cost() const;
	uint64_t dropped() const; // records, since this follower started
	uint64_t damaged() const; // blocks that were lost or damaged, since then

	// The ring (or recording) on disk: its time span, bytes and segments.
	struct Buffer {
		uint64_t oldest_ns = 0, newest_ns = 0, bytes = 0;
		uint32_t segments = 0;
	};
	Buffer buffer() const;

	// Converts to ns since 1970 with the recorder's readings of both clocks; 0 without one.
	uint64_t RealtimeNs(uint64_t t_ns) const;
	// Converts back.
	uint64_t MonotonicNs(uint64_t realtime_ns) const;
	std::string DeviceName(uint32_t dev) const; // "vda", else "254:0"

private:
	struct State;
	std::unique_ptr<State> state_;
};

} // namespace forktail::live
