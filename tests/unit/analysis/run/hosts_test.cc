// SPDX-License-Identifier: MIT
// Numbers of several machines in one run: what collides on two is told apart, and shown as it was.
#include "analysis/run/hosts.h"
#include "tests/support/catch.h"

using namespace forktail;

TEST_CASE("ids of the first kernel stay, those of others get a space", "[hosts]")
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

TEST_CASE("a run of one kernel has its own numbers, whatever they are", "[hosts]")
{
	const Run run;
	const IdSpace only;
	CHECK(only.Id(UINT32_MAX) == UINT32_MAX);
	CHECK(OwnId(run, UINT32_MAX) == UINT32_MAX);
	CHECK(only.Cpu(UINT16_MAX) == UINT16_MAX);
	CHECK(OwnCpu(run, UINT16_MAX - 1) == UINT16_MAX - 1);
}

TEST_CASE("devices of two machines are two, however they are numbered", "[hosts]")
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

TEST_CASE("addresses that mean another server on each host", "[hosts]")
{
	CHECK(IsLocalAddress("unix:/run/redis.sock"));
	CHECK(IsLocalAddress("127.0.0.1:6379"));
	CHECK_FALSE(IsLocalAddress("10.77.0.1:6379"));
}
