// SPDX-License-Identifier: MIT
// A Perfetto trace, packet by packet: tracks, slices, counters and samples. Only a buffer of packets and the
// names are in memory. A name is written once and then referenced by number, up to a maximum.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fields.h"
#include "recording/format.h"

namespace forktail::analysis::exports
{

// An argument of a slice, besides its name.
struct Argument {
	const char *name;
	uint64_t number = 0;
	std::string text = {}; // if not empty, the value
};

struct Slice {
	uint64_t track = 0;
	uint64_t start_ns = 0;
	std::string name = {};
	const char *category = "";
	std::vector<Argument> arguments = {};
	std::vector<uint64_t> flows = {};
};

class TraceFile
{
public:
	TraceFile() = default;
	~TraceFile();
	TraceFile(const TraceFile &) = delete;
	TraceFile &operator=(const TraceFile &) = delete;
	// Zero, or an errno, which stays set.
	int Open(const std::string &path);
	int Close();
	int error() const { return error_; }

	// `readings` of one host's clocks. All times after this call are of CLOCK_MONOTONIC.
	void Clocks(std::vector<ft_clock> readings);
	// Creates a track below an existing one (0: none) and returns its number.
	uint64_t Track(const std::string &name, uint64_t parent);
	uint64_t Process(uint32_t pid, const std::string &name);
	uint64_t Thread(uint32_t pid, uint32_t tid, const std::string &name);
	uint64_t Counter(const std::string &name, const std::string &unit, uint64_t parent);

	void Begin(const Slice &slice) { Event(kBegin, slice); }
	void Instant(const Slice &slice) { Event(kInstant, slice); }
	void End(uint64_t track, uint64_t t_ns);
	void Count(uint64_t track, uint64_t t_ns, double value);
	void Count(uint64_t track, uint64_t t_ns, uint64_t value);

	// Functions, each with its file, innermost first. Returns the number of the stack.
	uint64_t Stack(const std::vector<std::pair<std::string, std::string>> &frames);
	void Sample(uint64_t t_ns, uint32_t cpu, uint32_t pid, uint32_t tid, bool kernel, uint64_t stack);

private:
	// 0: the maximum of that kind is reached.
	uint64_t Intern(InternedData kind, const std::string &text);
	uint64_t FrameOf(const std::string &function, const std::string &module);
	uint64_t Define(const std::string &packet_of_descriptor);
	void Event(EventType type, const Slice &slice);
	template <class AddMore>
	void PutEvent(EventType type, uint64_t track, uint64_t t_ns, const AddMore &add_more);
	void Put(const std::string &packet);
	void Flush();

	FILE *file_ = nullptr;
	int error_ = 0;
	std::string out_;      // packets to be written
	std::string interned_; // to be written with the next packet
	uint64_t tracks_ = 0, stacks_ = 0;
	std::map<std::pair<uint32_t, std::string>, uint64_t> names_;
	std::map<uint32_t, uint64_t> counts_; // number of names, by kind
	std::map<std::pair<uint64_t, uint64_t>, uint64_t> frames_;
};

} // namespace forktail::analysis::exports
