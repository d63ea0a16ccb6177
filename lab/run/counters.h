// SPDX-License-Identifier: MIT
// The cost of a step: the kernel's counters of the host and of each server before and after it, and the
// servers' own counters (INFO, memcached's stats). Differences become figures;
// docs/reference/lab-and-scenarios.md lists them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lab/servers/servers.h"
#include "results.h"

namespace forktail::lab
{

struct ProcessCounters {
	double user_s = 0, system_s = 0; // in clock ticks
	double cpu_s = 0;		 // both, to the nanosecond
	uint64_t minor_faults = 0, major_faults = 0;
	uint64_t read_bytes = 0, write_bytes = 0; // that reached a block device, including swap
	uint64_t voluntary_switches = 0, involuntary_switches = 0;
	uint64_t rss_bytes = 0, swap_bytes = 0;
};

struct CpuCounters {
	double busy_s = 0, softirq_s = 0, steal_s = 0, idle_s = 0;
	uint64_t network_softirqs = 0; // NET_RX and NET_TX
};

struct HostCounters {
	uint64_t t_ns = 0;
	std::vector<CpuCounters> cpus;
	uint64_t read_kb = 0, written_kb = 0; // by block devices, including zram
	uint64_t swapped_in_kb = 0, swapped_out_kb = 0;
	uint64_t memory_bytes = 0, available_bytes = 0;
};

struct Counters {
	HostCounters host;
	std::map<std::string, ProcessCounters> processes; // by instance
	std::map<std::string, RedisInfo> info;		  // by instance: INFO's or stats' fields
};

// A server without an answer has no info; an ended one has no counters.
bool ReadCounters(Session *session, const Topology &topology, Counters *counters, std::string *error);

// Figures of one moment: `name`.redis.used_memory, .rss ... A server of several instances also has the sum.
void AddMoment(const std::string &name, const Topology &topology, const Counters &now, Point *point);

// Figures of the time between: `name`.redis.cpu_percent, .host.softirq0_percent, .redis.d_keyspace_hits ...
// `requests` is the number of requests in it.
void AddDifference(const std::string &name, const Topology &topology, const Counters &before,
		   const Counters &after, double requests, Point *point);

} // namespace forktail::lab
