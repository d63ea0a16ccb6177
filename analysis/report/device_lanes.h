// SPDX-License-Identifier: MIT
// Lanes of CPUs, from interrupts of recorded threads, and of disks, from block requests. Both take a run by
// stretches, in order; a record belongs to the stretch in which it begins.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run/run.h"
#include "clock.h"
#include "lane.h"
#include "reduce.h"

namespace forktail::analysis::report
{

// Interrupts of recorded threads on their CPU, drawn over the CPU's rate of all interrupts.
class InterruptLanes
{
public:
	InterruptLanes(const Run &run, const ReportClock &clock, LaneReducer *reducer)
	    : run_(run), clock_(clock), reducer_(*reducer)
	{
	}
	void Add(uint64_t from_ns, uint64_t to_ns);
	void Finish(std::vector<Lane> *lanes);

private:
	struct Cpu {
		Lane lane = {};
		size_t spans = 0;
		uint64_t last_end_ns = 0;
	};
	Cpu &CpuOf(uint64_t number);

	const Run &run_;
	const ReportClock &clock_;
	LaneReducer &reducer_;
	std::map<uint64_t, Cpu> cpus_;
};

class DiskLanes
{
public:
	DiskLanes(const Run &run, const ReportClock &clock, LaneReducer *reducer);
	void Add(uint64_t from_ns, uint64_t to_ns);
	void Finish(std::vector<Lane> *lanes);

private:
	// A time in which a disk had requests of one kind in progress.
	struct Busy {
		LaneSpan span;
		uint64_t requests = 0;
		uint64_t bytes = 0;
		uint64_t longest_ns = 0;
		std::map<std::string, uint64_t> issuers = {}; // comm -> bytes
	};
	struct Disk {
		Lane lane = {};
		std::optional<Busy> busy = {}; // the last one, which may continue
	};
	Disk &DiskOf(uint32_t dev, int kind);
	void AddRequest(const ft_io &io);
	void AddBusy(Disk *disk);
	static std::string Describe(const Busy &busy);

	const Run &run_;
	const ReportClock &clock_;
	LaneReducer &reducer_;
	const uint64_t step_ns_; // step of the rate
	std::map<std::pair<uint32_t, int>, Disk> disks_;
};

} // namespace forktail::analysis::report
