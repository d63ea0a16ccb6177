// SPDX-License-Identifier: MIT
// Numbers of several machines in one run: equal numbers of two machines are distinguished, and displayed
// unchanged.
#include "analysis/run.h"
#include "recording/owners.h"
#include "tests/support/catch.h"

using namespace forktail::analysis;

TEST_CASE("ids of the first kernel stay, ids of others are moved to another range", "[hosts]")
{
	Run run;
	run.spaces = 3;
	run.cpus_of_space = UINT16_MAX / 3;
	const IdSpace first = {0, 0, run.cpus_of_space},
		      third = {2, 2 * run.cpus_of_space, run.cpus_of_space};
	CHECK(first.Id(4711) == 4711);
	CHECK(third.Id(4711) != 4711);
	CHECK(third.Id(0) == 0);
	CHECK(SpaceOfId(run, first.Id(4711)) == 0);
	CHECK(SpaceOfId(run, third.Id(4711)) == 2);
	CHECK(OwnId(run, third.Id(4711)) == 4711);
	CHECK(OwnId(run, third.Id(kIdsOfSpace - 1)) == kIdsOfSpace - 1);
	CHECK(first.Cpu(7) == 7);
	CHECK(third.Cpu(7) != 7);
	CHECK(OwnCpu(run, third.Cpu(7)) == 7);
	CHECK(first.Inode(123456) != third.Inode(123456));
}

TEST_CASE("a run of one kernel keeps its numbers, whatever they are", "[hosts]")
{
	const Run run;
	const IdSpace only;
	CHECK(only.Id(INT32_MAX) == INT32_MAX);
	CHECK(OwnId(run, INT32_MAX) == INT32_MAX);
	CHECK(only.Cpu(UINT16_MAX) == UINT16_MAX);
	CHECK(OwnCpu(run, UINT16_MAX - 1) == UINT16_MAX - 1);
}

TEST_CASE("a task outside the recorder's pid namespace is no thread with the same number", "[hosts]")
{
	Run run;
	for (uint32_t space = 0; space < 2; space++) {
		run.spaces = space + 1;
		const uint32_t outside = IdSpace{space}.Id(4711) | FT_TASK_OUTSIDE;
		CHECK(OwnId(run, outside) == 4711);
		CHECK(SpaceOfId(run, outside) == space);
	}
}

TEST_CASE("devices of two machines are distinct, however they are numbered", "[hosts]")
{
	Run run;
	run.spaces = 2;
	const IdSpace first, second = {1, 1000, 1000};
	const uint32_t vda = 254u << 20;
	CHECK(DeviceOf(first, vda, &run) == vda);
	uint32_t other = DeviceOf(second, vda, &run);
	CHECK(other != vda);
	CHECK(DeviceOf(second, vda, &run) == other);
	CHECK(DeviceOf(second, vda + 1, &run) != other);
	CHECK(SpaceOfDevice(run, other) == 1);
	CHECK(SpaceOfDevice(run, vda) == 0);
	CHECK(OwnDevice(run, other) == vda);
}

TEST_CASE("addresses that mean a different server on each host", "[hosts]")
{
	CHECK(IsLocalAddress("unix:/run/redis.sock"));
	CHECK(IsLocalAddress("127.0.0.1:6379"));
	CHECK_FALSE(IsLocalAddress("10.77.0.1:6379"));
}

TEST_CASE("ids and CPUs are displayed as on their machine, with its name", "[hosts]")
{
	Run run;
	run.spaces = 2;
	run.cpus_of_space = UINT16_MAX / 2;
	run.hosts = {"redis-a", "redis-b"};
	for (uint32_t space = 0; space < 2; space++) {
		RecordingFile file;
		file.host = run.hosts[space];
		file.program = "forktail-record";
		file.space = space;
		run.files.push_back(file);
		Thread thread;
		thread.tgid = IdSpace{space}.Id(4711);
		thread.tid = IdSpace{space}.Id(4712);
		thread.file = space;
		thread.announced = true;
		run.threads.push_back(thread);
	}
	CHECK(run.threads[0].tid != run.threads[1].tid);
	CHECK(ShownTid(run, run.threads[0]) == "4712 on redis-a");
	CHECK(ShownTid(run, run.threads[1]) == "4712 on redis-b");
	CHECK(ShownTgid(run, run.threads[1]) == "4711 on redis-b");
	CHECK(ShownId(run, run.threads[1].tid) == "4712 on redis-b");
	CHECK(ShownId(run, IdSpace{1}.Id(99)) == "99 on redis-b"); // without any record
	CHECK(CpuOfHost(run, "redis-a", 3) == 3);
	CHECK(CpuOfHost(run, "redis-b", 3) == IdSpace{1, run.cpus_of_space, run.cpus_of_space}.Cpu(3));
	CHECK(ShownCpu(run, CpuOfHost(run, "redis-b", 3)) == "3 on redis-b");
	CHECK(ShownCpu(run, 3) == "3 on redis-a");

	Run one;
	one.threads.push_back(run.threads[0]);
	CHECK(ShownTid(one, one.threads[0]) == "4712");
	CHECK(ShownCpu(one, 3) == "3");
}
