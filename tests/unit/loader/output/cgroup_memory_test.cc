// SPDX-License-Identifier: MIT
// Counters of memory limits, from synthetic cgroup files of both versions.
#include "tests/support/catch.h"
#include "tests/unit/loader/support.h"

#include "loader/output.h"

using namespace forktail::test;

namespace
{

constexpr pid_t kPids[] = {4711, 4712};
constexpr uint64_t kHour = 3'600'000'000'000;

// A host with one hierarchy and two targets, and a recorder that reads its counters.
struct Host {
	Proc proc, cgroups;
	Written written;
	proc_metrics *m = proc_metrics_open(written.writer(), proc.path().c_str());
	cgroup_memory *c = nullptr;
	uint64_t now_ns = kHour;

	explicit Host(const std::string &type)
	{
		proc.write("self/mountinfo",
			   "31 23 0:28 / " + cgroups.path() + " rw,relatime shared:9 - " + type + "\n");
		c = cgroup_memory_open(m, proc.path().c_str());
	}
	~Host()
	{
		cgroup_memory_close(c);
		proc_metrics_close(m);
	}
	void look()
	{
		now_ns += kHour;
		proc_metrics_sample(m, nullptr, 0);
		cgroup_memory_look(c, kPids, 2, now_ns);
	}
};

// "name cgroup value, ..." in the order of samples.
std::string text_of(const Recorded &r)
{
	std::string text;
	for (const ft_sample &s : r.samples) {
		const std::string series = r.series.at(s.series);
		const size_t name = series.find("cgroup.memory."), label = series.find("{\"cgroup\":\"");
		if (name == std::string::npos || label == std::string::npos)
			continue;
		const auto word = [&](size_t from) {
			return series.substr(from, series.find('"', from) - from);
		};
		text += (text.empty() ? "" : ", ") + word(name + 14) + " " + word(label + 11) + " " +
			std::to_string(static_cast<int>(s.value));
	}
	return text;
}

} // namespace

TEST_CASE("version 2: events of a cgroup and its ancestors, each once for all targets")
{
	Host host("cgroup2 cgroup2 rw");
	REQUIRE(host.c);
	host.proc.write("4711/cgroup", "0::/pods/x\n");
	host.proc.write("4712/cgroup", "0::/pods/x\n");
	host.cgroups.write("pods/memory.events", "low 0\nhigh 0\nmax 7\noom 0\noom_kill 0\n");
	host.cgroups.write("pods/x/memory.events", "low 9\nhigh 2\nmax 7\noom 0\noom_kill 0\n");
	host.look();
	host.cgroups.write("pods/x/memory.events", "low 9\nhigh 2\nmax 8\noom 4\noom_kill 1\n");
	host.look();
	CHECK(text_of(host.written.finish()) ==
	      "limit_hits /pods/x 7, high_hits /pods/x 2, oom_kills /pods/x 0, limit_hits /pods 7, "
	      "high_hits /pods 0, oom_kills /pods 0, limit_hits /pods/x 8, oom_kills /pods/x 1");
}

TEST_CASE("version 1: failures of charges, and OOM kills where the kernel counts them")
{
	Host host("cgroup cgroup rw,memory");
	REQUIRE(host.c);
	host.proc.write("4711/cgroup", "4:memory:/a\n3:cpu:/b\n");
	host.proc.write("4712/cgroup", "4:memory:/\n");
	host.cgroups.write("a/memory.failcnt", "12\n");
	host.cgroups.write("a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	host.look();
	host.proc.write("4711/cgroup", "4:memory:/c\n3:cpu:/b\n"); // moved
	host.cgroups.write("a/memory.failcnt", "13\n");
	host.cgroups.write("c/memory.failcnt", "1\n");
	host.look();
	CHECK(text_of(host.written.finish()) == "limit_hits /a 12, oom_kills /a 3, limit_hits /c 1");
}

TEST_CASE("a host without the memory controller has no such counters")
{
	Host host("cgroup cgroup rw,cpu");
	CHECK_FALSE(host.c);
	host.look();
}
