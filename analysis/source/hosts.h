// SPDX-License-Identifier: MIT
// Several machines in one run. A thread's number, a CPU's, a device's and a socket's means something on one
// machine only, and two machines use the same: each kernel (boot id) gets a space of its own while a run is
// read. The name of a host is another matter: recorders in two network namespaces of one kernel are two hosts
// that share their numbers. Of one kernel all numbers stay what they are.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/run/run.h"

namespace forktail::analysis
{

// No Linux has a process id that high (PID_MAX_LIMIT).
constexpr uint32_t kIdsOfSpace = 1 << 22;

// What makes a file's numbers the run's.
struct IdSpace {
	uint32_t number = 0;
	uint32_t first_cpu = 0, cpus = UINT16_MAX; // of this space

	// 0 is nobody.
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

// Which of them a run's thread or process id, or device, is of.
uint32_t SpaceOfId(const Run &run, uint32_t id);
uint32_t SpaceOfDevice(const Run &run, uint32_t dev);
// The run's number of a device; makes one up for a space but the first.
uint32_t DeviceOf(const IdSpace &space, uint32_t dev, Run *run);
// The machine's own number, as it is shown.
uint32_t OwnId(const Run &run, uint32_t id);
uint32_t OwnCpu(const Run &run, uint32_t cpu);
uint32_t OwnDevice(const Run &run, uint32_t dev);

inline bool SeveralHosts(const Run &run)
{
	return run.hosts.size() > 1;
}
// The host that a thread was recorded on; "" of a run with one host.
std::string HostOf(const Run &run, const Thread &thread);
// The same of a process or thread by its id; "" if no recording has it and its kernel has several names.
std::string HostOfId(const Run &run, uint32_t id);
// The run's number of a CPU that a recorder of that host calls so.
uint64_t CpuOfHost(const Run &run, const std::string &host, uint64_t own);
// "7", of several kernels "7 on redis-a".
std::string ShownCpu(const Run &run, uint64_t cpu);
// A thread's or process' id as it is shown: "4711", of several hosts "4711 on redis-a".
std::string ShownId(const Run &run, uint32_t id);
std::string ShownTid(const Run &run, const Thread &thread);
std::string ShownTgid(const Run &run, const Thread &thread);
// " on redis-a"; "" for "".
std::string OnHost(const std::string &host);

// Whether a series tells of that process, or of the thread's host.
bool IsOfProcess(const Run &run, const Series &series, const Thread &thread);
bool IsOfHost(const Run &run, const Series &series, const Thread &thread);

// An address that means another server on each host: "unix:/path", "127.0.0.1:6379", "localhost:6379".
bool IsLocalAddress(const std::string &address);

} // namespace forktail::analysis
