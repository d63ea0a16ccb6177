// SPDX-License-Identifier: MIT
// Reads /proc, /sys and the kernel at each call, because an experiment changes the free resources.
#include "machine.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <linux/magic.h>
#include <sstream>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/format.h"
#include "common/process.h"

namespace forktail::lab
{
namespace
{

// The data set, the same amount for copied pages while a child writes it, and the page cache for the files.
constexpr uint64_t kMemoryPerSize = 3;
// On disk: the AOF of the fill, a snapshot, the rewritten AOF in addition to the old one, and a reserve.
constexpr uint64_t kDiskPerSize = 4;
constexpr uint64_t kSmallestMb = 64; // with less data a fork is too short to see

} // namespace

std::string FirstLine(const std::string &path)
{
	std::ifstream in(path);
	std::string line;
	std::getline(in, line);
	return line;
}

std::string FindProgram(const std::string &name)
{
	const char *path = getenv("PATH");
	return common::FindProgram(name, std::string(path ? path : "") + ":/usr/local/sbin:/usr/sbin:/sbin");
}

std::string HostName()
{
	struct utsname name;
	return uname(&name) == 0 ? name.nodename : "";
}

std::string KernelRelease()
{
	struct utsname name;
	return uname(&name) == 0 ? name.release : "";
}

std::string CpuName()
{
	std::ifstream in("/proc/cpuinfo");
	std::string name = "unknown CPU";
	for (std::string line; std::getline(in, line);)
		if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos) {
			name = line.substr(line.find(": ") + 2);
			break;
		}
	return name + ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " CPUs";
}

uint64_t AvailableMemoryBytes()
{
	std::ifstream in("/proc/meminfo");
	std::string key, unit;
	for (uint64_t kib; in >> key >> kib; std::getline(in, unit))
		if (key == "MemAvailable:")
			return kib * 1024;
	return 0;
}

DiskRoom RoomIn(const std::string &directory)
{
	struct statfs fs;
	if (statfs(directory.c_str(), &fs) != 0)
		return {};
	return {static_cast<uint64_t>(fs.f_bavail) * static_cast<uint64_t>(fs.f_bsize),
		fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC};
}

uint64_t ChooseSizeMb(uint64_t wanted_mb, uint64_t available_bytes, const DiskRoom &room, std::string *why)
{
	uint64_t per_size = kMemoryPerSize + (room.in_memory ? kDiskPerSize : 0);
	uint64_t by_memory = available_bytes / per_size >> 20, by_disk = room.free_bytes / kDiskPerSize >> 20;
	uint64_t size = std::min({wanted_mb, by_memory, by_disk});
	why->clear();
	if (size < wanted_mb && by_memory <= by_disk)
		*why = "only " + common::FormatBytes(available_bytes) + " of memory are available, but " +
		       std::to_string(per_size) + " times the size of the data set is needed";
	else if (size < wanted_mb)
		*why = "only " + common::FormatBytes(room.free_bytes) +
		       " of temporary disk space are free, but " + std::to_string(kDiskPerSize) +
		       " times the size of the data set is needed";
	return size < std::min(kSmallestMb, wanted_mb) ? 0 : size;
}

} // namespace forktail::lab
