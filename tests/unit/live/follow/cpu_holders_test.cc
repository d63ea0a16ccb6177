// SPDX-License-Identifier: MIT
// Who had a CPU while somebody waited for it.
#include "live/follow/cpu_holders.h"

#include <cstring>

#include "tests/support/catch.h"

using forktail::live::Held;
using forktail::live::IsDeferred;

namespace
{

ft_cpu_slice turn(uint16_t cpu, const char *comm, uint64_t start_ns, uint64_t end_ns)
{
	ft_cpu_slice t = {};
	t.start_ns = start_ns;
	t.end_ns = end_ns;
	t.cpu = cpu;
	t.tid = 7;
	strncpy(t.comm, comm, sizeof t.comm - 1);
	return t;
}

std::string said(const std::vector<forktail::live::Held::Holder> &holders)
{
	std::string text;
	for (const forktail::live::Held::Holder &h : holders)
		text += h.comm + " " + std::to_string(h.ns) + ";";
	return text;
}

} // namespace

TEST_CASE("who had a CPU, longest first, in whatever order the turns came")
{
	forktail::live::Held held;
	held.Add(turn(0, "last", 500, 600));
	held.Add(turn(0, "hog", 100, 400));
	held.Add(turn(0, "next", 400, 480));
	held.Add(turn(1, "elsewhere", 100, 600));
	held.Add(turn(0, "hog", 600, 900));
	CHECK(said(held.In(0, 300, 550)) == "hog 100;next 80;last 50;");
	CHECK(said(held.In(0, 0, 1000)) == "hog 600;last 100;next 80;");
	CHECK(said(held.In(0, 200, 210)) == "hog 10;");
	CHECK(held.In(0, 900, 1000).empty());
	CHECK(held.In(2, 0, 1000).empty());
}

TEST_CASE("a turn that went on is told again, and is one")
{
	forktail::live::Held held;
	held.Add(turn(0, "hog", 100, 200));
	held.Add(turn(0, "hog", 100, 700));
	held.Add(turn(0, "hog", 100, 300));
	CHECK(said(held.In(0, 0, 1000)) == "hog 600;");
}

TEST_CASE("nobody had a CPU that was idle")
{
	Held held;
	ft_cpu_slice idle = turn(0, "swapper/0", 100, 200);
	idle.tid = 0;
	held.Add(idle);
	CHECK(held.In(0, 0, 1000).empty());
}

TEST_CASE("what is long over is forgotten, and turns without end are not kept")
{
	forktail::live::Held held;
	for (uint64_t i = 0; i < 100000; i++)
		held.Add(turn(0, "busy", 10 * i, 10 * i + 10));
	CHECK(held.In(0, 0, 100).empty());
	CHECK(said(held.In(0, 999000, 1000000)) == "busy 1000;");
	held.Forget(999500);
	CHECK(said(held.In(0, 999000, 1000000)) == "busy 510;");
}

TEST_CASE("a wait is deferred work's when its thread had most of it")
{
	CHECK(forktail::live::IsDeferred({{"ksoftirqd/0", 60}}, 100));
	CHECK_FALSE(forktail::live::IsDeferred({{"ksoftirqd/0", 50}}, 100));
	CHECK_FALSE(forktail::live::IsDeferred({{"redis-server", 60}, {"ksoftirqd/0", 40}}, 100));
	CHECK_FALSE(forktail::live::IsDeferred({}, 100));
}
