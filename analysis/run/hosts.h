// SPDX-License-Identifier: MIT
// Several machines in one run. The ids of threads, CPUs, devices and sockets are unique only on one machine.
// So each kernel (boot id) gets its own id space while a run is read. The host's name is a different matter:
// recorders in two network namespaces of one kernel are two hosts with the same ids. With only one kernel all
// ids stay unchanged.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/run/run.h"

namespace forktail::analysis
{

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

// An address that is a different server on each host: "unix:/path", "127.0.0.1:6379", "localhost:6379".
bool IsLocalAddress(const std::string &address);

} // namespace forktail::analysis
