// SPDX-License-Identifier: MIT
// Counts the requests that forktail record --requests wrote, by server, command and outcome, and by client.
//
// A request block only has connections' numbers. The records of connections are buffered for longer than
// requests, so a block may precede them: such requests wait, in a list of limited size.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/json/json_read.h"
#include "live.h"
#include "recording/recording.h"
#include "server_names.h"

namespace forktail::live
{

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
	std::vector<Row> rows_;		      // by server, the last one for other; of the current file
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

} // namespace forktail::live
