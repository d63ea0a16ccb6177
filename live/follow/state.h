// SPDX-License-Identifier: MIT
// State of a follower and how it processes each block. Private to live/follow.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "accounts.h"
#include "cpu_holders.h"
#include "iterations.h"
#include "live.h"
#include "requests.h"
#include "server_names.h"
#include "tail.h"

namespace forktail::live
{

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
