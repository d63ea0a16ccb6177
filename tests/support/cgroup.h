// SPDX-License-Identifier: MIT
// A cgroup with the CPU controller for a test, of the version that this host has. Removed with its object.
#pragma once
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/process.h"

namespace forktail::test
{

class CpuCgroup
{
public:
	CpuCgroup()
	{
		v1_ = access("/sys/fs/cgroup/cpu/cpu.shares", F_OK) == 0 ||
		      access("/sys/fs/cgroup/cpu/cgroup.procs", F_OK) == 0;
		if (!v1_)
			write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
		path_ = std::string("/sys/fs/cgroup") + (v1_ ? "/cpu" : "") + name();
		mkdir(path_.c_str(), 0755);
	}
	~CpuCgroup()
	{
		eventually([&] { return rmdir(path_.c_str()) == 0 || access(path_.c_str(), F_OK) != 0; });
	}
	CpuCgroup(const CpuCgroup &) = delete;
	CpuCgroup &operator=(const CpuCgroup &) = delete;

	// False: cannot make such a cgroup here, and the test has to be skipped.
	bool usable() const
	{
		return access((path_ + (v1_ ? "/cpu.cfs_quota_us" : "/cpu.max")).c_str(), W_OK) == 0;
	}
	// Its name in the hierarchy: "/forktail-test-4711".
	std::string name() const { return "/forktail-test-" + std::to_string(getpid()); }
	bool add(pid_t pid) { return write(path_ + "/cgroup.procs", std::to_string(pid)); }
	bool set_quota(uint64_t quota_us, uint64_t period_us)
	{
		if (!v1_)
			return write(path_ + "/cpu.max",
				     std::to_string(quota_us) + " " + std::to_string(period_us));
		return write(path_ + "/cpu.cfs_period_us", std::to_string(period_us)) &&
		       write(path_ + "/cpu.cfs_quota_us", std::to_string(quota_us));
	}
	uint64_t throttles() const { return stat("nr_throttled"); }
	uint64_t throttled_ns() const { return v1_ ? stat("throttled_time") : stat("throttled_usec") * 1000; }

private:
	static bool write(const std::string &path, const std::string &text)
	{
		std::ofstream file(path);
		file << text << std::flush;
		return file.good();
	}
	uint64_t stat(const std::string &wanted) const
	{
		std::ifstream file(path_ + "/cpu.stat");
		std::string name;
		uint64_t value;
		while (file >> name >> value)
			if (name == wanted)
				return value;
		return 0;
	}

	std::string path_;
	bool v1_ = false;
};

} // namespace forktail::test
