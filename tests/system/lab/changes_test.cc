// SPDX-License-Identifier: MIT
// A server that exceeds its memory limit uses the lab's swap, and all changes of the lab to the machine are
// reverted, however it ends. A test that needs more than this host has is skipped.
#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/system/lab/servers_support.h"

using namespace forktail::test;
using namespace forktail::lab;

namespace
{

constexpr uint64_t kLimitBytes = 64 << 20, kSwapBytes = 256 << 20;
const std::string kReceiveQueue = "/sys/class/net/lo/queues/rx-0/rps_cpus";

// A redis-server that may use 64 MiB.
ServerPlan Limited()
{
	ServerPlan plan = Plan("redis", "redis");
	plan.memory_bytes = kLimitBytes;
	plan.config = {"--enable-debug-command", "yes"};
	return plan;
}

// Whether this host can do it. If not, prints why.
bool Can(bool good, const std::string &error)
{
	if (!good)
		WARN("SKIPPED: " << error);
	return good;
}

// "42" of "VmSwap: 42 kB".
long SwappedKib(pid_t pid)
{
	std::string text = StatusOf(pid, "VmSwap");
	return text.empty() ? -1 : std::stol(text);
}

std::string BlockOf(const std::string &device)
{
	return "/sys/block/" + device.substr(device.rfind('/') + 1);
}

} // namespace

TEST_CASE("A server that exceeds its limit swaps and continues to answer")
{
	std::string kind = GENERATE("zram", "file");
	Lab lab;
	Swap swap;
	if (!Can(MakeSwap(&lab.session, kind, kSwapBytes, lab.temp, &swap, &lab.error), lab.error))
		return;
	INFO(kind << " " << swap.device);
	CHECK(SwapColumn(swap.device, kSwapPriority) == 32767);
	if (!Can(lab.TryStart(Limited()), lab.error))
		return;
	Instance &redis = lab["redis"];
	lab.Command("redis", {"DEBUG", "POPULATE", "100000", "key", "1000"}); // about 110 MiB
	CHECK(SwappedKib(redis.child->pid) > 0);
	CHECK(SwapColumn(swap.device, kSwapUsedKib) > 0);
	// The limit has some reserve, which the session's next step removes (lab/host/memory.h).
	auto resident = [&] { return std::stoul(StatusOf(redis.child->pid, "RssAnon")) * 1024; };
	CHECK(resident() <= kLimitBytes + kBeyondBytes);
	CHECK(eventually([&] { return Step(&lab.session, 50, &lab.error) && resident() <= kLimitBytes; }));
	CHECK(lab.Command("redis", {"DBSIZE"}) == "100000");
	CHECK(lab.Command("redis", {"STRLEN", "key:1"}) == "1000"); // among the first pages to be swapped out

	std::string cgroup = redis.cgroup, device = swap.device;
	CHECK(std::filesystem::exists(cgroup));
	bool stopped = StopServers(&lab.session, &lab.topology, &lab.error);
	INFO(lab.error);
	CHECK(stopped);
	CHECK_FALSE(std::filesystem::exists(cgroup));
	CHECK(RemoveSwap(&lab.session, &swap, &lab.error));
	CHECK(SwapColumn(device, kSwapUsedKib) == -1);
	CHECK_FALSE(std::filesystem::exists(device));
	CHECK(lab.Left() == std::vector<std::string>{});
	CHECK(CloseSession(&lab.session, &lab.error));
}

TEST_CASE("A process can be put into a group, and a group with processes cannot be removed")
{
	Lab lab;
	std::string path;
	if (!Can(LimitMemory(&lab.session, "group", kLimitBytes, &path, &lab.error), lab.error))
		return;
	Process sleeper({"sleep", "1000"});
	REQUIRE(EnterGroup(path, sleeper.pid(), &lab.error));
	CHECK(read_file(path + "/cgroup.procs") == std::to_string(sleeper.pid()) + "\n");
	sleeper.signal(SIGKILL);
	sleeper.wait(Seconds(10));
	CHECK_FALSE(EnterGroup(path, sleeper.pid(), &lab.error));
	CHECK(lab.error == "cannot move process " + std::to_string(sleeper.pid()) + " into the cgroup " +
			       path + ": No such process");
	CHECK(RemoveGroup(&lab.session, path, &lab.error));
	CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("Soft interrupts are spread over all CPUs, and restored")
{
	const std::string before = read_file(kReceiveQueue);
	{
		Lab lab;
		if (!Can(SpreadSoftirqs(&lab.session, "lo", true, &lab.error), lab.error))
			return;
		long cpus = sysconf(_SC_NPROCESSORS_ONLN);
		if (cpus < 32)
			CHECK(std::stol(read_file(kReceiveQueue), nullptr, 16) == (1 << cpus) - 1);
		CHECK(SpreadSoftirqs(&lab.session, "lo", false, &lab.error));
		CHECK(std::stol(read_file(kReceiveQueue), nullptr, 16) == 0);
		CHECK(SpreadSoftirqs(&lab.session, "lo", true, &lab.error));
		CHECK(read_file(kReceiveQueue) != before);
		CHECK(CloseSession(&lab.session, &lab.error));
	}
	CHECK(read_file(kReceiveQueue) == before);
}

TEST_CASE("kill -9 of the lab reverts swap, cgroups and settings, and ends servers")
{
	TempDir dir;
	const std::string receive_queue = read_file(kReceiveQueue), told = dir.file("told");
	pid_t lab = fork();
	REQUIRE(lab >= 0);
	if (lab == 0) {
		// In a separate process, because it gets killed. It prints one line for each thing it made.
		setenv("TMPDIR", dir.path().c_str(), 1);
		Session session;
		Topology topology;
		std::string error;
		Swap zram, file;
		bool good = OpenSession(&session, &error) &&
			    MakeSwap(&session, "file", kSwapBytes, dir.path(), &file, &error) &&
			    MakeSwap(&session, "zram", kSwapBytes, dir.path(), &zram, &error) &&
			    SpreadSoftirqs(&session, "lo", true, &error) &&
			    StartServers(&session, Limited(), dir.file("logs"), &topology, &error);
		std::vector<std::string> reply;
		good = good && Ask(&session, topology.instances[0]->redis.get(),
				   {"DEBUG", "POPULATE", "100000", "key", "1000"}, &reply, &error);
		std::ofstream out(told + ".part");
		if (good)
			out << "made\n"
			    << zram.device << '\n'
			    << file.device << '\n'
			    << topology.instances[0]->cgroup << '\n'
			    << topology.directory << '\n'
			    << topology.instances[0]->child->pid << '\n'
			    << session.keeper.pid << '\n';
		else
			out << error << '\n';
		out.close();
		rename((told + ".part").c_str(), told.c_str());
		while (good && Step(&session, 100, &error)) {
		}
		CloseSession(&session, &error);
		_exit(1);
	}
	bool has_told = eventually([&] { return !read_file(told).empty(); }, Seconds(30));
	if (!has_told)
		kill(lab, SIGKILL);
	REQUIRE(has_told);
	std::ifstream in(told);
	std::string first, zram, file, cgroup, directory;
	pid_t redis = 0, keeper = 0;
	std::getline(in, first);
	if (!Can(first == "made", first)) {
		waitpid(lab, nullptr, 0);
		return;
	}
	in >> zram >> file >> cgroup >> directory >> redis >> keeper;
	CHECK(SwapColumn(zram, kSwapUsedKib) > 0);
	CHECK(SwapColumn(file, kSwapUsedKib) >= 0);
	CHECK(std::filesystem::exists(BlockOf(zram)));
	CHECK(std::filesystem::exists(cgroup));
	CHECK(std::filesystem::exists(directory));
	CHECK_FALSE(is_gone(redis));

	kill(lab, SIGKILL);
	waitpid(lab, nullptr, 0);
	CHECK(eventually([&] { return is_gone(keeper); }, Seconds(30)));
	CHECK(is_gone(redis));
	CHECK(SwapColumn(zram, kSwapUsedKib) == -1);
	CHECK(SwapColumn(file, kSwapUsedKib) == -1);
	CHECK_FALSE(std::filesystem::exists(BlockOf(zram)));
	CHECK_FALSE(std::filesystem::exists(file));
	CHECK_FALSE(std::filesystem::exists(cgroup));
	CHECK_FALSE(std::filesystem::exists(directory));
	CHECK(read_file(kReceiveQueue) == receive_queue);
}
