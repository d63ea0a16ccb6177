// SPDX-License-Identifier: MIT
// A cgroup with a memory limit for a test, of the version that this host has. Removed with its object. A
// process that needs more is killed, because there is no swap beyond the limit.
#pragma once
#include <cstdint>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "tests/support/process.h"

namespace forktail::test
{

class MemoryCgroup
{
public:
	explicit MemoryCgroup(uint64_t bytes)
	{
		const bool v1 = access("/sys/fs/cgroup/memory/memory.limit_in_bytes", F_OK) == 0;
		const std::string root = v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
		if (!v1)
			write(root + "/cgroup.subtree_control", "+memory");
		path_ = root + "/forktail-test-" + std::to_string(getpid());
		made_ = mkdir(path_.c_str(), 0755) == 0;
		const std::string limit = std::to_string(bytes);
		usable_ = made_ && write(path_ + (v1 ? "/memory.limit_in_bytes" : "/memory.max"), limit);
		// These files do not exist where swap is not accounted.
		if (usable_)
			write(path_ + (v1 ? "/memory.memsw.limit_in_bytes" : "/memory.swap.max"),
			      v1 ? limit : "0");
	}
	~MemoryCgroup()
	{
		if (made_)
			eventually([&] { return rmdir(path_.c_str()) == 0; });
	}
	MemoryCgroup(const MemoryCgroup &) = delete;
	MemoryCgroup &operator=(const MemoryCgroup &) = delete;

	// False: cannot make such a cgroup here, and the test has to be skipped.
	bool usable() const { return usable_; }
	// This command, but within the limit from its first page on.
	std::vector<std::string> within(const std::vector<std::string> &argv) const
	{
		std::vector<std::string> all = {"sh", "-c", "echo $$ >\"$0\" && exec \"$@\"",
						path_ + "/cgroup.procs"};
		all.insert(all.end(), argv.begin(), argv.end());
		return all;
	}

private:
	static bool write(const std::string &path, const std::string &text)
	{
		std::ofstream file(path);
		file << text << std::flush;
		return file.good();
	}

	std::string path_;
	bool made_ = false, usable_ = false;
};

} // namespace forktail::test
