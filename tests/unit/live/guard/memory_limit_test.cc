// SPDX-License-Identifier: MIT
// The memory limit of a cgroup, in the files of both versions.
#include "live/guard/jobs.h"

#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using forktail::live::guard::MemoryLimit;

namespace
{

struct Host {
	forktail::test::TempDir dir;

	explicit Host(const std::string &groups) { put("/proc/self/cgroup", groups); }
	void put(const std::string &path, const std::string &text)
	{
		std::filesystem::create_directories(std::filesystem::path(dir.path() + path).parent_path());
		forktail::test::write_file(dir.path() + path, text + "\n");
	}
	uint64_t limit() const { return MemoryLimit(dir.path()); }
};

} // namespace

TEST_CASE("the memory limit is the lowest of the cgroup and the groups above it")
{
	Host host("0::/system.slice/forktail.service");
	CHECK(host.limit() == UINT64_MAX);
	host.put("/sys/fs/cgroup/system.slice/forktail.service/memory.max", "max");
	CHECK(host.limit() == UINT64_MAX);
	host.put("/sys/fs/cgroup/system.slice/memory.max", "5000");
	CHECK(host.limit() == 5000);
	host.put("/sys/fs/cgroup/system.slice/forktail.service/memory.max", "4000");
	CHECK(host.limit() == 4000);
}

TEST_CASE("the memory limit of cgroup version 1, and of a container that does not see the host's path")
{
	Host host("5:cpu,cpuacct:/a\n4:cpuset,memory:/a/b\n0::/unified");
	host.put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "3000");
	host.put("/sys/fs/cgroup/cpu/a/memory.limit_in_bytes", "1");
	CHECK(host.limit() == 3000);
	Host container("0::/kubepods/pod1/2f");
	container.put("/sys/fs/cgroup/memory.max", "2000");
	CHECK(container.limit() == 2000);
}
