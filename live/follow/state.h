// SPDX-License-Identifier: MIT
// The CPU slices of the last seconds. analysis/timeline.h finds in them who held a
// CPU while a server's thread was ready to run.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/timeline.h"
#include "common/json.h"
#include "live/follow.h"
#include "recording/recording.h"

namespace forktail::live
{

class CpuSlices
{
public:
	void Add(const ft_cpu_slice &slice);
	// Drops slices that ended before that time.
	void Forget(uint64_t before_ns);

	// Who held the CPU in [from_ns, to_ns), as far as recorded. Valid until the next Add() or Forget().
	std::vector<analysis::CpuHolder> In(uint16_t cpu, uint64_t from_ns, uint64_t to_ns) const;

private:
	std::unordered_map<uint16_t, std::vector<ft_cpu_slice>> by_cpu_; // by start
};

// Names servers by the address they listen on, so a restarted server keeps its name and its counters.

class Servers
{
public:
	// Adds a target from a manifest or a "target-began" note: pid, comm, listens, cgroup_of.
	void Add(const common::Json &target, uint64_t t_ns);
	// The process ended.
	void End(uint32_t pid, uint64_t t_ns);
	// Ends all servers when another recorder starts, which reports those that run.
	void EndAll(uint64_t t_ns);
	// The server of a process. For an unannounced process: an ended server of that name, else a new one.
	uint32_t Of(uint32_t pid, const std::string &comm, uint64_t t_ns);
	// kNone if unknown.
	uint32_t Known(uint32_t pid) const;

	const std::vector<Server> &all() const { return all_; }

private:
	void Name(uint32_t pid, const std::string &base, const std::string &place, const std::string &comm,
		  uint64_t t_ns);
	bool Take(const std::string &name, uint32_t pid, const std::string &comm, uint64_t t_ns);

	std::vector<Server> all_;
	std::map<uint32_t, uint32_t> of_pid_;
	std::map<std::string, uint32_t> by_name_;
};

// Threads' time by cause, in slots of kSlotNs that are closed in order and then summed.
//
// Own times of spans and tallies are those of analysis/timeline's accounts. A slot gets the part of each that
// overlaps it. When a slot is closed, its sum is made equal to the time that the thread existed in it: a
// surplus (a frame's own time is only known as a sum) goes to the next slot; missing time gets the cause of
// the thread's open span, if the recorder wrote one, else unknown. Records that arrive for a closed slot are
// ignored, so that counters never decrease.

constexpr size_t kOpenSlots = 128; // most slots that are open at a time

class Accounts
{
public:
	explicit Accounts(Servers *servers) : servers_(servers) {}

	// State of a thread. `labelled` is its index into all(), or kNone before it has one.
	struct Known {
		uint32_t tid = 0, tgid = 0, parent_tgid = 0, flags = 0;
		uint64_t start_ns = 0, end_ns = 0; // 0: it runs
		std::string comm, role;
		uint32_t labelled = kNone;
		bool has_loop = false;
		bool announced = false;

	private:
		friend class Accounts;
		struct Part {
			analysis::Cause cause;
			uint32_t ns, count;
		};
		struct Open { // its open span
			analysis::Cause cause = analysis::Cause::Unknown;
			uint64_t start_ns = 0, seen_ns = 0, until_ns = 0;
			unsigned depth = 0;
		};
		std::vector<std::vector<Part>> slots;
		Open open;
		bool renamed = false;
		void Add(uint64_t slot, analysis::Cause cause, uint64_t ns, uint32_t count);
	};

	// Starts the accounts at t_ns, or resumes them after another recorder.
	void Begin(uint64_t t_ns, uint32_t min_span_ns);
	void Thread(const ft_thread &t);
	// The thread; nullptr if it is not accounted for.
	Known *Find(uint32_t tid);
	// The index of an announced thread in all(); else kNone.
	uint32_t Label(Known *t);
	bool Serves(const Known &t) const;

	// All of [start_ns, end_ns) had this cause.
	void AddInterval(Known *t, analysis::Cause cause, uint64_t start_ns, uint64_t end_ns, uint32_t count);
	// `ns` of [start_ns, end_ns) had this cause, at unknown positions.
	void AddWithin(Known *t, analysis::Cause cause, uint64_t ns, uint64_t start_ns, uint64_t end_ns,
		       uint32_t count);
	// The thread has an open span since start_ns, as read at seen_ns.
	void SetOpen(Known *t, analysis::Cause cause, uint64_t start_ns, uint64_t seen_ns, unsigned depth);
	// A span of the thread ended at end_ns.
	void Moved(Known *t, uint64_t end_ns)
	{
		if (end_ns > t->open.seen_ns && end_ns < t->open.until_ns)
			t->open.until_ns = end_ns;
	}

	// Closes the slots that end at or before t_ns and adds complete seconds to *seconds.
	void CloseTo(uint64_t t_ns, std::vector<Second> *seconds);
	// Ends all threads, when another recorder starts.
	void EndAll(uint64_t t_ns);

	uint64_t closed_to_ns() const { return closed_to_ns_; }
	const std::vector<ThreadTotals> &all() const { return all_; }

private:
	void CloseSlot(Known *t, uint64_t slot_ns);
	void FillGap(Known *t, uint64_t slot_ns, uint64_t from_ns, uint64_t to_ns, uint64_t gap_ns);
	void TakeParts(Known *t, uint64_t slot_ns, uint64_t length_ns);
	void EndSecond(std::vector<Second> *seconds);
	void GiveBack(Known *t);
	bool IsOpen(uint64_t slot) const;

	Servers *servers_;
	uint64_t closed_to_ns_ = 0;
	uint32_t min_span_ns_ = 20'000;
	std::unordered_map<uint32_t, Known> threads_; // by tid
	std::vector<ThreadTotals> all_;
	std::map<std::pair<uint32_t, std::string>, uint32_t> labels_;
	std::map<uint32_t, size_t> labels_of_; // how many a server has
	// Of the current second.
	std::map<uint32_t, ThreadSecond> second_;
	analysis::CauseTimes sums_ = {};
};

// The parts of event-loop iterations. The record of an iteration follows the spans in it, but its tallies may
// come later. So an iteration is reported one reading of the recording later.

// The needed fields of a detail block.
struct DetailText {
	std::string name, stack;
	analysis::Cause stack_cause = analysis::Cause::Unknown; // by its stack
};

class Iterations
{
public:
	explicit Iterations(uint64_t iteration_parts_ns) : iteration_parts_ns_(iteration_parts_ns) {}

	// A part of a span of a serving thread: `ns` of [start_ns, end_ns) had this cause. queue_cpu: 1 + the
	// CPU that it waited for.
	struct Part {
		uint64_t start_ns, end_ns, ns;
		analysis::Cause cause;
		uint16_t queue_cpu;
		uint32_t detail;
	};
	void AddPart(uint32_t tid, const Part &part);
	void AddTally(uint32_t tid, analysis::Cause cause, const ft_tally &tally);
	// The thread waited for events: earlier parts are not part of its next iteration.
	void Waited(uint32_t tid);
	void AddIteration(uint32_t tid, const Iteration &iteration,
			  const std::unordered_map<uint32_t, DetailText> &details);

	// Reports the iterations that were added before the previous call.
	void Report(const CpuSlices &slices, std::vector<Iteration> *iterations);
	// The thread ended: its state is dropped after its last iteration is reported.
	void Ended(uint32_t tid);
	void ForgetAll() { threads_.clear(); }
	size_t threads() const { return threads_.size(); } // threads with state

private:
	struct Short { // a tally of a cause other than own code
		uint64_t start_ns, end_ns;
		uint32_t ns;
		analysis::Cause cause;
	};
	struct Pending {
		Iteration iteration;
		std::vector<Part> parts;
		bool looked = false;
	};
	struct OfThread {
		std::vector<Part> parts;
		std::vector<Short> shorts;
		std::vector<Pending> pending;
		bool ended = false;
	};
	static void Thin(std::vector<Short> *shorts);
	void Finish(const OfThread &thread, const CpuSlices &slices, Pending *pending);

	uint64_t iteration_parts_ns_;
	std::unordered_map<uint32_t, OfThread> threads_;
};

// Counts the requests that forktail record --requests wrote, by server, command and outcome, and by client.
//
// A request block only has connections' numbers. The records of connections are buffered for longer than
// requests, so a block may precede them: such requests wait, in a list of limited size.

class Requests
{
public:
	explicit Requests(const Servers *servers) : servers_(servers) {}

	// A file begins. `another`: it is another recorder's, so numbers of connections are new, and the one
	// before recorded no requests since newest_ns.
	void Manifest(const common::Json &manifest, bool another, uint64_t newest_ns);
	// The recorder's notes: from t_ns on requests are recorded or not, and of one connection in `sample`.
	void Slice(uint64_t t_ns, bool on);
	void Sample(uint64_t t_ns, uint32_t sample);
	// Replaces the list of servers that connections refer to: a manifest's, or a note's.
	void UseServers(const common::Json &lists);
	void Connection(const ft_connection &c);
	// Decodes a block. False: there is nothing to count. Otherwise Count() is called with the same block.
	bool Decode(const ft_block &block);
	uint64_t latest_ns() const { return latest_ns_; } // end of any request of the block
	// `batch`: for Batch::requests, or nullptr. Ends long before newest_ns are only in the totals.
	void Count(uint64_t newest_ns, Batch *batch);
	// Counts requests whose connection was recorded meanwhile, or is not recorded at all.
	void Settle(uint64_t newest_ns, Batch *batch);
	// The next call has another batch.
	void EndPoll();

	const std::vector<RequestTotals> &totals() const { return totals_; }
	const std::vector<ClientTotals> &clients() const { return client_totals_; }
	uint32_t sample() const { return sample_; }
	// How long requests were recorded until newest_ns.
	uint64_t recorded_ns(uint64_t newest_ns) const;

private:
	struct Known { // a connection
		uint32_t id = 0;
		uint32_t listed = 0; // index into the recording's list of servers
		uint32_t server = kNone;
		live::Client client;
		// Position of the client in the batch: of the poll `poll`.
		uint64_t poll = 0;
		uint32_t second = 0, of_client = 0;
		uint32_t totals = kNone; // index into client_totals_
	};
	struct One {
		uint64_t end_ns, ns;
		uint32_t connection;
		uint8_t op;
		Outcome outcome;
	};
	uint32_t SampleAt(uint64_t t_ns) const { return t_ns < since_ns_ ? first_sample_ : sample_; }
	using Indexes = std::array<uint32_t, kOutcomes>; // by outcome: index into totals_, or kNone
	using Row = std::array<Indexes, 256>;		 // by op

	Known *Find(uint32_t id);
	uint32_t ServerOf(Known *c) const;
	uint32_t TotalsOf(uint32_t server, uint8_t op, Outcome outcome);
	ClientTotals &ClientTotalsOf(uint32_t server, Known *c);
	void Add(const One &one, Known *c, uint64_t newest_ns, Batch *batch);
	void AddToSecond(const One &one, Known *c, Batch *batch);
	uint32_t SecondAt(uint64_t start_ns, uint32_t server, Batch *batch);
	uint32_t ClientAt(uint32_t second, const live::Client &client, Batch *batch);
	void GiveUp();

	const Servers *servers_;
	uint32_t sample_ = 0, first_sample_ = 0; // in force since since_ns_, and before
	uint64_t since_ns_ = 0;
	uint64_t recorded_ns_ = 0, on_since_ns_ = 0; // 0: not recorded now
	std::vector<std::string> ops_;
	std::vector<uint32_t> server_pids_;
	std::vector<Known> connections_; // by the low bits of the id
	std::vector<RequestTotals> totals_;
	std::map<std::pair<uint32_t, std::string>, Indexes> by_name_;
	std::map<uint32_t, size_t> commands_; // their number by server
	std::vector<ClientTotals> client_totals_;
	std::map<std::pair<uint32_t, std::string>, uint32_t> by_client_; // index into client_totals_
	std::vector<Row> rows_; // by server, the last one for other; of the current file
	std::vector<One> waiting_;

	// Of the current poll, by index into Batch::requests.
	std::vector<std::map<live::Client, uint32_t>> clients_;
	uint64_t poll_ = 1;

	// Of the current block.
	uint32_t count_ = 0;
	uint64_t latest_ns_ = 0;
	std::vector<uint64_t> start_ns_, end_ns_;
	std::vector<uint32_t> connection_;
	std::vector<uint8_t> op_, status_;
};

// The followed files as one sequence of blocks: the segments of a ring, or one recording. Segments are
// created, sealed and evicted meanwhile, and a new recorder may continue in the ring.

class Tail
{
public:
	Tail(const std::string &path, uint64_t from_ns) : path_(path), from_ns_(from_ns) {}
	~Tail() { ft_reader_close(reader_); }
	Tail(const Tail &) = delete;
	Tail &operator=(const Tail &) = delete;

	enum class Got { Block, Nothing, Failed };
	// Returns the next complete block. The first block of each file is its manifest. Failed: *error is
	// one sentence.
	Got Next(ft_block *block, std::string *error);

	// All data is read, the last file is sealed, and there is no next one.
	bool ended() const { return reader_ && ft_reader_sealed(reader_) && at_end_; }
	uint64_t damaged() const { return damaged_; }

	// Segments and bytes of the last listing of the directory; lists again after some time.
	struct OnDisk {
		uint64_t bytes = 0, oldest_ns = 0;
		uint32_t segments = 0;
	};
	OnDisk Look();

private:
	bool Begin(std::string *error);
	bool BeginRing(std::string *error);
	bool Open(const std::string &path, std::string *error);
	bool OpenNext();
	bool OpenLater();
	std::vector<uint64_t> List();
	std::string SegmentPath(uint64_t number) const;

	std::string path_;
	uint64_t from_ns_;
	bool ring_ = false, at_end_ = false;
	uint64_t number_ = 0; // of the current segment
	ft_reader *reader_ = nullptr;
	uint64_t damaged_ = 0;
	uint64_t looked_ns_ = 0, listed_ns_ = 0, pause_ns_ = 0;
	uint64_t oldest_number_ = 0;
	OnDisk on_disk_;
};

// State of a follower and how it processes each block. Private to live/follow.

struct Follower::State {
	State(const std::string &path, const Options &asked)
	    : options(asked), tail(path, asked.from_ns), accounts(&servers),
	      iterations(asked.iteration_parts_ns), requests(&servers)
	{
	}

	Options options;
	Tail tail;
	Servers servers;
	Accounts accounts;
	Iterations iterations;
	Requests requests;
	CpuSlices slices;
	Batch *batch = nullptr; // during Poll()

	// Of the current file.
	std::unordered_map<uint32_t, DetailText> details;
	std::vector<std::string> syscalls;
	std::string clock_id;
	uint64_t recorder_start_ns = 0; // distinguishes recorders
	bool begun = false, ended = false;

	uint64_t newest_ns = 0, read_at_ns = 0, min_span_ns = 20'000;
	uint64_t dropped = 0;
	RecorderCost cost;
	ft_clock clock = {};
	std::map<uint32_t, std::string> devices;
	std::map<uint32_t, Child> children; // by process

	// Waits for a CPU whose slices may not be recorded yet.
	struct Wait {
		uint32_t tid;
		uint16_t cpu;
		uint64_t start_ns, end_ns;
		analysis::Cause cause;
		bool looked;
	};
	std::deque<Wait> waits;

	uint64_t Now() const { return options.now_ns ? options.now_ns : ft_now_ns(); }
	void Read(const ft_block &block);
	void Manifest(const ft_block &block);
	void Detail(const ft_block &block);
	void CostBlock(const ft_block &block);
	void NoteBlock(const ft_block &block);
	void RequestBlock(const ft_block &block);
	void Thread(const ft_thread &t);
	void Span(const ft_span &s);
	void OffCpu(Accounts::Known *t, const ft_span &s, analysis::Cause blocked);
	void IterationSpan(Accounts::Known *t, const ft_span &s);
	void FrameEvents(Accounts::Known *t, const ft_span &s, analysis::Cause cause);
	void Tally(const ft_tally &t);
	void OpenSpan(const ft_span &s);
	void Io(const ft_io &io);
	void AddStall(Accounts::Known *t, analysis::Cause cause, const ft_span &s, uint64_t start_ns,
		      uint64_t ns, uint64_t own_ns, bool open);
	void LookAtWaits();
	void EndRecorder(uint64_t t_ns);
	void CloseUp();
	// A record has this time: closes accounts that are too far behind.
	void Seen(uint64_t t_ns);
	Batch *RequestBatch() const { return options.request_seconds ? batch : nullptr; }
	void AddNote(uint64_t t_ns, const std::string &kind, uint32_t server);
	const DetailText *DetailOf(uint32_t id) const
	{
		auto found = id ? details.find(id) : details.end();
		return found == details.end() ? nullptr : &found->second;
	}
};

} // namespace forktail::live
