// SPDX-License-Identifier: MIT
// A recording for tests: every record in a vector, read by the library's own reader. Tests of the recorder
// check records, not their analysis.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "recording/recording.h"

namespace forktail::test
{

struct Recorded {
	std::string manifest, summary, cost;			    // JSON, the last of each
	std::map<std::pair<uint32_t, uint64_t>, ft_thread> threads; // last record by (tid, start_ns)
	std::vector<ft_span> spans;
	std::vector<ft_tally> tallies;
	std::vector<ft_io> io;
	std::vector<ft_writes> writes;
	std::vector<ft_cpu_slice> slices;
	std::vector<ft_loop> loops;
	std::vector<ft_socket> sockets;
	std::vector<ft_drop> drops;
	std::vector<ft_sample> samples;
	std::vector<ft_cpu_sample> cpu_samples;
	std::vector<ft_counters> counters;
	std::map<uint32_t, std::string> stacks; // JSON by id
	std::vector<std::string> notes;
	std::map<uint32_t, std::string> details; // JSON by id
	std::map<uint32_t, std::string> series;	 // JSON by id
	ft_damage damage = {};
	std::string error; // why it cannot be read, or ""

	uint64_t dropped() const; // lost events, without those of skipped programs
	uint64_t missed() const;  // those of skipped programs
	// Switches that the kernel did not report: until the next one, a thread's faults are not seen.
	uint64_t unseen_switches() const;
	// Own time of one owner on one thread: spans and tallies.
	uint64_t owned_ns(uint32_t tid, ft_owner owner) const;
	// Number of intervals of one owner on one thread.
	uint64_t count(uint32_t tid, ft_owner owner) const;
	// Sum of all own times of one thread.
	uint64_t accounted_ns(uint32_t tid) const;
	// The longest span that satisfies `wanted`, or nullptr.
	const ft_span *longest(const std::function<bool(const ft_span &)> &wanted) const;
	// How long a task held the CPU during a wait for it, by its CPU slices; under the name `comm`, if
	// given.
	uint64_t held_ns(const ft_span &wait, uint32_t tid, const std::string &comm = "") const;
	// The detail text of a span, "" if it has none.
	std::string detail(const ft_span &span) const;
	// The thread whose role is `role`, or nullptr.
	const ft_thread *role(const std::string &role) const;
};

Recorded read_recording(const std::string &path);

// The number at a key of a JSON object without objects in it; 0 if it has no such key.
uint64_t json_number(const std::string &json, const std::string &key);

} // namespace forktail::test
