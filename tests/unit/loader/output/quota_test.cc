// SPDX-License-Identifier: MIT
// CPU quotas, from synthetic cgroup files of both versions.
#include "tests/support/catch.h"
#include "tests/support/text.h"
#include "tests/unit/loader/support.h"

#include "loader/output.h"

using namespace forktail::test;

namespace
{

constexpr pid_t kPid = 4711;
constexpr uint64_t kHour = 3'600'000'000'000;

// A host with one hierarchy, and a recorder that reads its quotas.
struct Host {
	Proc proc, cgroups;
	Written written;
	proc_metrics *m = proc_metrics_open(written.writer(), proc.path().c_str());
	quotas *q = nullptr;
	uint64_t now_ns = kHour;

	// `type` as in "cgroup2 cgroup2 rw". `of`: the mounted part of the hierarchy.
	explicit Host(const std::string &type, const std::string &of = "/")
	{
		proc.write("self/mountinfo", "22 1 0:21 / /proc rw shared:5 - proc proc rw\n"
					     "31 23 0:28 " +
						 of + " " + cgroups.path() + " rw,relatime shared:9 - " +
						 type + "\n");
		q = quotas_open(written.writer(), m, proc.path().c_str());
	}
	~Host()
	{
		quotas_close(q);
		proc_metrics_close(m);
	}
	// Looks again after a time for which any cost is small.
	bool look(uint64_t after_ns = kHour)
	{
		now_ns += after_ns;
		proc_metrics_sample(m, nullptr, 0);
		return quotas_look(q, &kPid, 1, now_ns);
	}
};

} // namespace

TEST_CASE("a quota of a thread's own cgroup is noted too, once")
{
	Host host("cgroup cgroup rw,cpu,cpuacct");
	REQUIRE(host.q);
	host.proc.write("4711/cgroup", "3:cpu,cpuacct:/pod\n");
	host.proc.write("4711/task/4711/cgroup", "3:cpu,cpuacct:/pod\n");
	host.proc.write("4711/task/4712/cgroup", "3:cpu,cpuacct:/pod/helpers\n");
	host.proc.write("4711/task/4713/cgroup", "3:cpu,cpuacct:/pod/helpers\n");
	host.cgroups.write("pod/cpu.cfs_quota_us", "-1\n");
	host.cgroups.write("pod/helpers/cpu.cfs_quota_us", "30000\n");
	host.cgroups.write("pod/helpers/cpu.cfs_period_us", "100000\n");
	host.cgroups.write("pod/helpers/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_time 2500\n");
	CHECK(host.look());
	host.proc.write("4711/task/4712/cgroup", "3:cpu,cpuacct:/pod\n");
	CHECK(host.look());
	host.proc.write("4711/task/4713/cgroup", "3:cpu,cpuacct:/pod\n");
	CHECK_FALSE(host.look());

	const Recorded r = host.written.finish();
	REQUIRE(r.notes.size() == 2);
	holds(r.notes[0], R"("cgroup":"/pod/helpers","quota_us":30000,"period_us":100000)");
	holds(r.notes[1], R"("cgroup":"/pod/helpers","quota_us":0)");
}

TEST_CASE(
    "quotas are read again only when their cost is a small part of the time, and at once for another process")
{
	Host host("cgroup cgroup rw,cpu,cpuacct");
	REQUIRE(host.q);
	auto quota = [&](const std::string &us) { host.cgroups.write("pod/helpers/cpu.cfs_quota_us", us); };
	auto helper_in = [&](const std::string &cgroup) {
		host.proc.write("4711/task/4712/cgroup", "3:cpu,cpuacct:" + cgroup + "\n");
	};
	host.proc.write("4711/cgroup", "3:cpu,cpuacct:/pod\n");
	host.cgroups.write("pod/helpers/cpu.cfs_period_us", "100000\n");
	quota("30000\n");
	helper_in("/pod/helpers");
	CHECK(host.look());
	quota("20000\n");
	helper_in("/pod");
	CHECK(host.look(1)); // 1 ns later
	quotas_begin_segment(host.q);
	CHECK(host.look(1)); // the quota is read for the new file, the cgroups of threads are not
	helper_in("/pod/helpers");
	quota("10000\n");
	const pid_t other[] = {kPid, 1};
	CHECK(quotas_look(host.q, other, 2, host.now_ns));
	helper_in("/pod");
	CHECK_FALSE(host.look());

	const Recorded r = host.written.finish();
	REQUIRE(r.notes.size() == 4);
	for (size_t i = 0; i < 4; i++)
		holds(r.notes[i], R"("quota_us":)" + std::to_string((3 - i) * 10000) + ",");
}

TEST_CASE("in version 2 threads are read only where they may be in another cgroup")
{
	Host host("cgroup2 cgroup2 rw");
	REQUIRE(host.q);
	host.proc.write("4711/cgroup", "0::/pod\n");
	host.proc.write("4711/task/4712/cgroup", "0::/pod/helpers\n");
	host.cgroups.write("pod/helpers/cpu.max", "30000 100000\n");
	for (const std::string type : {"domain threaded", "threaded"}) {
		host.cgroups.write("pod/cgroup.type", type + "\n");
		CHECK(host.look());
	}
	host.cgroups.write("pod/cgroup.type", "domain\n");
	CHECK_FALSE(host.look());
	host.proc.write("4711/cgroup", "0::/\n"); // the root
	CHECK(host.look());
}

TEST_CASE("a quota of any cgroup up to the root is noted when it appears, changes and disappears")
{
	Host host("cgroup2 cgroup2 rw");
	REQUIRE(host.q);
	host.proc.write("4711/cgroup", "0::/pod/redis\n");
	host.cgroups.write("pod/redis/cpu.max", "max 100000\n");
	host.cgroups.write("cpu.max", "1 1\n"); // the root has none
	CHECK_FALSE(host.look());

	host.cgroups.write("pod/cpu.max", "50000 100000\n");
	host.cgroups.write("pod/cpu.stat",
			   "usage_usec 5\nnr_periods 9\nnr_throttled 3\nthrottled_usec 2500\n");
	CHECK(host.look());
	CHECK(host.look()); // nothing new
	host.cgroups.write("pod/cpu.max", "20000 100000\n");
	CHECK(host.look());
	host.cgroups.write("pod/cpu.max", "max 100000\n");
	CHECK_FALSE(host.look());

	const Recorded r = host.written.finish();
	REQUIRE(r.notes.size() == 3);
	for (const std::string &note : r.notes) {
		holds(note, R"("kind":"cpu-quota")");
		holds(note, R"("pid":4711)");
		holds(note, R"("cgroup":"/pod")");
	}
	holds(r.notes[0], R"("quota_us":50000,"period_us":100000)");
	holds(r.notes[1], R"("quota_us":20000)");
	holds(r.notes[2], R"("quota_us":0)");
	REQUIRE(r.samples.size() == 2);
	CHECK(r.samples[0].value == 3);
	CHECK(r.samples[1].value == 2'500'000); // ns
}

TEST_CASE("every target's quotas are read, however many there are")
{
	constexpr pid_t targets = 150;
	Host host("cgroup2 cgroup2 rw");
	REQUIRE(host.q);
	std::vector<pid_t> pids;
	for (pid_t i = 1; i <= targets; i++) {
		const std::string name = std::to_string(i);
		pids.push_back(i);
		host.proc.write(name + "/cgroup", "0::/pod/" + name + "\n");
		host.cgroups.write("pod/" + name + "/cpu.max", name + "000 100000\n");
	}
	host.cgroups.write("pod/cpu.max", "50000 100000\n"); // two for each
	proc_metrics_sample(host.m, nullptr, 0);
	CHECK(quotas_look(host.q, pids.data(), pids.size(), kHour));
	CHECK(quotas_look(host.q, pids.data(), pids.size(), 2 * kHour)); // nothing new
	CHECK_FALSE(quotas_look(host.q, nullptr, 0, 3 * kHour));	 // all have disappeared
	const Recorded r = host.written.finish();
	size_t begun = 0, ended = 0;
	for (const std::string &note : r.notes)
		(note.find(R"("quota_us":0,)") == std::string::npos ? begun : ended) += 1;
	CHECK(begun == 2 * targets);
	CHECK(ended == 2 * targets);
	holds(r.notes.at(2 * targets - 2), R"("cgroup":"/pod/150")");
}

TEST_CASE("version 1 has separate files and names its controllers")
{
	Host host("cgroup cgroup rw,cpu,cpuacct");
	REQUIRE(host.q);
	host.proc.write("4711/cgroup", "5:cpuset:/other\n4:cpu,cpuacct:/redis\n0::/unified\n");
	host.cgroups.write("redis/cpu.cfs_quota_us", "-1\n");
	CHECK_FALSE(host.look());
	host.cgroups.write("redis/cpu.cfs_quota_us", "30000\n");
	host.cgroups.write("redis/cpu.cfs_period_us", "60000\n");
	host.cgroups.write("redis/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 77\n");
	CHECK(host.look());
	const Recorded r = host.written.finish();
	REQUIRE(r.notes.size() == 1);
	holds(r.notes[0], R"("cgroup":"/redis")");
	holds(r.notes[0], R"("quota_us":30000,"period_us":60000)");
	REQUIRE(r.samples.size() == 2);
	CHECK(r.samples[0].value == 4);
	CHECK(r.samples[1].value == 77); // ns already
}

TEST_CASE("in a container the hierarchy begins at its mount")
{
	Host host("cgroup2 cgroup2 rw", "/docker/abc");
	REQUIRE(host.q);
	host.proc.write("4711/cgroup", "0::/docker/abc/redis\n");
	host.cgroups.write("redis/cpu.max", "10000 100000\n");
	CHECK(host.look());
	const Recorded r = host.written.finish();
	REQUIRE(r.notes.size() == 1);
	holds(r.notes[0], R"("cgroup":"/redis")");
}

TEST_CASE("without a hierarchy that has the CPU controller there are no quotas")
{
	Host host("cgroup cgroup rw,cpuset,cpuacct");
	CHECK(host.q == nullptr);
	CHECK_FALSE(host.look());
}

TEST_CASE("an ended process has no quota")
{
	Host host("cgroup2 cgroup2 rw");
	CHECK_FALSE(host.look());
	CHECK(host.written.finish().notes.empty());
}
