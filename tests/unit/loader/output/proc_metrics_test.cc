// SPDX-License-Identifier: MIT
// Metrics from a synthetic /proc, and from the real one.
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <sched.h>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/unit/loader/support.h"

#include "loader/output.h"

using namespace forktail::test;

namespace
{

constexpr pid_t kPid = 4711;

// The written values of the series whose JSON contains `part`, in order.
std::vector<ft_sample> samples_of(const Recorded &r, const std::string &part)
{
	std::vector<ft_sample> found;
	for (const auto &[id, json] : r.series)
		if (json.find(part) != std::string::npos)
			for (const ft_sample &s : r.samples)
				if (s.series == id)
					found.push_back(s);
	return found;
}

double only_value(const Recorded &r, const std::string &part)
{
	const std::vector<ft_sample> all = samples_of(r, part);
	INFO(part << ": " << all.size());
	REQUIRE(all.size() == 1);
	return all[0].value;
}

void write_first(const Proc &proc)
{
	proc.write("stat", "cpu  100 10 50 800 20 5 10 5 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nctxt 77\n");
	proc.write("meminfo",
		   "MemTotal:  8000 kB\nMemFree:   1000 kB\nMemAvailable:  2000 kB\nCached:  300 kB\n"
		   "Dirty:  7 kB\nSwapFree:  0 kB\n");
	proc.write("vmstat", "nr_free_pages 1\npgfault 1000\npgmajfault 10\ndrop_pagecache 1\noom_kill 2\n");
	proc.write("diskstats", "");
	proc.write("softirqs", "          CPU0  CPU1\n      HI:  1  2\n  NET_RX:  100  200\n");
	proc.write("net/dev",
		   "Inter-|   Receive\n face |bytes\n    lo: 5000 1 2 3 4 5 6 7 6000 1 2 3 4 5 6 7\n");
	// A comm may contain any characters.
	proc.write("4711/stat",
		   "4711 (redis) 1 (x) S 1 2 3 0 -1 4194560 500 0 5 0 30 20 0 0 20 0 4 0 99 1000000 "
		   "250 18446744073709551615 1 1\n");
}

} // namespace

TEST_CASE("levels are written directly, rates from the second reading")
{
	Proc proc;
	write_first(proc);
	Written written;
	proc_metrics *m = proc_metrics_open(written.writer(), proc.path().c_str());
	REQUIRE(m);
	proc_metrics_sample(m, &kPid, 1);
	proc.write("stat", "cpu  140 20 70 820 25 5 13 7 0 0\n"); // 100 jiffies later
	proc.write("vmstat", "nr_free_pages 1\npgfault 1500\npgmajfault 10\ndrop_pagecache 1\noom_kill 3\n");
	proc.write("softirqs", "          CPU0  CPU1\n      HI:  1  2\n  NET_RX:  100  260\n");
	proc.write("net/dev", "Inter-|\n face |\n    lo: 7000 1 2 3 4 5 6 7 9000 1 2 3 4 5 6 7\n");
	proc_metrics_sample(m, &kPid, 1);
	proc_metrics_close(m);
	const Recorded r = written.finish();

	const auto kills = samples_of(r, "host.oom_kills");
	REQUIRE(kills.size() == 2); // a level: the analysis compares readings
	CHECK(kills[1].value == 3);
	CHECK(only_value(r, "host.page_cache_drops") == 1);
	CHECK(samples_of(r, "host.slab_drops").empty());
	const auto available = samples_of(r, "host.memory.available");
	REQUIRE(available.size() == 1); // unchanged
	CHECK(available[0].value == 2000 * 1024);
	CHECK(only_value(r, "host.memory.free") == 1000 * 1024);
	CHECK(only_value(r, "host.memory.swap_free") == 0);
	CHECK(samples_of(r, "host.memory.writeback").empty()); // the kernel does not report it
	CHECK(only_value(r, "host.cpu.user") == Approx(50));   // including nice
	CHECK(only_value(r, "host.cpu.system") == Approx(20));
	CHECK(only_value(r, "host.cpu.idle") == Approx(20));
	CHECK(only_value(r, "host.cpu.iowait") == Approx(5));
	CHECK(only_value(r, "host.cpu.irq") == 0);
	CHECK(only_value(r, "host.cpu.softirq") == Approx(3));
	CHECK(only_value(r, "host.cpu.steal") == Approx(2));

	const auto faults = samples_of(r, "host.page_faults");
	REQUIRE(faults.size() == 1);
	const double seconds = static_cast<double>(faults[0].t_ns - available[0].t_ns) * 1e-9;
	CHECK(faults[0].value * seconds == Approx(500));
	CHECK(only_value(r, "host.major_faults") == 0);
	CHECK(only_value(r, R"("cpu":"1","vector":"NET_RX")") * seconds == Approx(60));
	CHECK(only_value(r, R"("cpu":"0","vector":"NET_RX")") == 0);
	CHECK(only_value(r, "host.network.receive") * seconds == Approx(2000));
	CHECK(only_value(r, "host.network.transmit") * seconds == Approx(3000));
}

TEST_CASE("a target is read from its own line, whatever its name")
{
	Proc proc;
	write_first(proc);
	Written written;
	proc_metrics *m = proc_metrics_open(written.writer(), proc.path().c_str());
	REQUIRE(m);
	const clock_t begun = clock();
	proc_metrics_sample(m, &kPid, 1);
	const clock_t took = clock() - begun;
	proc_metrics_sample(m, &kPid, 0); // rates are since its own last reading
	proc.write("4711/stat",
		   "4711 (redis) 1 (x) S 1 2 3 0 -1 4194560 900 0 6 0 60 40 0 0 20 0 4 0 99 1000000 "
		   "300 18446744073709551615 1 1\n");
	// A reading that took long, as in an emulator, is repeated only after 500 times as long.
	std::this_thread::sleep_for(std::chrono::microseconds(500 * took * 1000000 / CLOCKS_PER_SEC));
	proc_metrics_sample(m, &kPid, 1);
	const pid_t gone = 4712;
	proc_metrics_sample(m, &gone, 1);
	proc_metrics_close(m);
	const Recorded r = written.finish();
	const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
	const auto rss = samples_of(r, "target.rss");
	REQUIRE(rss.size() == 2);
	CHECK(rss[0].value == 250 * page);
	CHECK(rss[1].value == 300 * page);
	const double seconds = static_cast<double>(rss[1].t_ns - rss[0].t_ns) * 1e-9;
	CHECK(only_value(r, "target.minor_faults") * seconds == Approx(400));
	CHECK(only_value(r, "target.major_faults") * seconds == Approx(1));
	CHECK(only_value(r, "target.cpu") * seconds ==
	      Approx(100 * 50.0 / static_cast<double>(sysconf(_SC_CLK_TCK))));
	CHECK(samples_of(r, R"("pid":"4712")").empty());
}

TEST_CASE(
    "an unchanged file counts as read: its rates become 0, and a later rate is over the time since then")
{
	Proc proc;
	write_first(proc);
	Written written;
	proc_metrics *m = proc_metrics_open(written.writer(), proc.path().c_str());
	REQUIRE(m);
	auto read = [&](int received) {
		proc.write("net/dev", "face |\n    lo: " + std::to_string(received) +
					  " 1 2 3 4 5 6 7 6000 1 2 3 4 5 6 7\n");
		proc_metrics_sample(m, nullptr, 0);
		sleep_for(Seconds(0.01));
	};
	for (const int received : {1000, 2000, 2000, 2000, 2000, 3000})
		read(received);
	proc_metrics_begin_segment(m);
	read(3000);
	proc_metrics_close(m);
	const Recorded r = written.finish();
	const auto received = samples_of(r, "host.network.receive");
	REQUIRE(received.size() == 5);
	CHECK(received[0].value > 0);
	CHECK(received[1].value == 0); // the first and the last of equal readings
	CHECK(received[2].value == 0);
	CHECK(received[2].t_ns > received[1].t_ns);
	const double seconds = static_cast<double>(received[3].t_ns - received[2].t_ns) * 1e-9;
	CHECK(received[3].value * seconds == Approx(1000));
	CHECK(received[4].value == 0); // of the new segment
}

TEST_CASE("a device that appears or vanishes does not change what belongs to the others")
{
	Proc proc;
	write_first(proc);
	Written written;
	proc_metrics *m = proc_metrics_open(written.writer(), proc.path().c_str());
	REQUIRE(m);
	const auto line = [](const std::string &name, int received) {
		return name + ": " + std::to_string(received) + " 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7\n";
	};
	for (const std::string &text : {line("a", 100) + line("b", 2000), line("b", 2001) + line("c", 7),
					line("a", 100) + line("b", 2002)}) {
		proc.write("net/dev", text);
		proc_metrics_sample(m, nullptr, 0);
	}
	proc_metrics_close(m);
	const Recorded r = written.finish();
	for (const ft_sample &s :
	     samples_of(r, R"("name":"host.network.receive","unit":"bytes/s","labels":{"interface":"a"})"))
		CHECK(s.value == 0);
	const auto b =
	    samples_of(r, R"("name":"host.network.receive","unit":"bytes/s","labels":{"interface":"b"})");
	REQUIRE(b.size() == 2);
	const double seconds = static_cast<double>(b[1].t_ns - b[0].t_ns) * 1e-9;
	CHECK(b[1].value * seconds == Approx(1));
}

TEST_CASE("all of many devices are recorded, except those that were never active")
{
	constexpr int devices = 300; // of 90 bytes each: several pages
	Proc proc;
	write_first(proc);
	auto write = [&](int looks) {
		std::string text;
		for (int i = 0; i < devices; i++) {
			const int done = i % 3 ? (i + 1) * looks : 0;
			text += " 254 " + std::to_string(i) + " vd" + std::to_string(i) +
				" 1000000 1000000 " + std::to_string(done) + " 1000000 1000000 1000000 " +
				std::to_string(2 * done) + " 1000000 0 1000000 1000000\n";
		}
		REQUIRE(text.size() > 4 * 4096);
		proc.write("diskstats", text);
	};
	Written written;
	proc_metrics *m = proc_metrics_open(written.writer(), proc.path().c_str());
	REQUIRE(m);
	write(1);
	proc_metrics_sample(m, nullptr, 0);
	write(2);
	proc_metrics_sample(m, nullptr, 0);
	proc_metrics_close(m);
	const Recorded r = written.finish();
	size_t series = 0;
	for (const auto &[id, json] : r.series)
		series += json.find("host.disk.read") != std::string::npos;
	CHECK(series == devices - devices / 3);
	CHECK(samples_of(r, R"("device":"vd0")").empty());
	const auto faults = samples_of(r, "host.page_faults"), first = samples_of(r, "host.memory.available");
	REQUIRE(faults.size() == 1);
	const double seconds = static_cast<double>(faults[0].t_ns - first.at(0).t_ns) * 1e-9;
	const auto last = samples_of(r, R"("device":"vd299")"); // read, then write
	REQUIRE(last.size() == 2);
	CHECK(last[0].value * seconds == Approx(300 * 512));
	CHECK(last[1].value * seconds == Approx(600 * 512));
}

TEST_CASE("the number of series is limited")
{
	Proc proc;
	write_first(proc);
	std::string text = "          CPU0\n";
	for (unsigned i = 0; i < 50'000; i++)
		text += "  V" + std::to_string(i) + ":  1\n";
	proc.write("softirqs", text);
	Written written;
	proc_metrics *m = proc_metrics_open(written.writer(), proc.path().c_str());
	REQUIRE(m);
	proc_metrics_sample(m, nullptr, 0);
	proc_metrics_sample(m, nullptr, 0);
	proc_metrics_close(m);
	CHECK(written.finish().series.size() == 40'000);
}

TEST_CASE("a file is read to its end, and every target is read, however many there are")
{
	constexpr pid_t targets = 200;
	Proc proc;
	write_first(proc);
	// Larger than one read.
	std::string text = "          CPU0\n";
	while (text.size() < 300'000)
		text += "  V" + std::to_string(text.size()) + ":  1\n";
	proc.write("softirqs", text + "  LAST:  100\n");
	std::vector<pid_t> pids;
	for (pid_t i = 1; i <= targets; i++) {
		pids.push_back(i);
		proc.write(std::to_string(i) + "/stat",
			   std::to_string(i) +
			       " (redis) S 1 2 3 0 -1 4194560 500 0 5 0 30 20 0 0 20 0 4 0 99 1000000 " +
			       std::to_string(i) + " 18446744073709551615 1 1\n");
	}
	Written written;
	proc_metrics *m = proc_metrics_open(written.writer(), proc.path().c_str());
	REQUIRE(m);
	proc_metrics_sample(m, pids.data(), pids.size());
	proc_metrics_sample(m, pids.data(), pids.size());
	proc_metrics_close(m);
	const Recorded r = written.finish();
	CHECK(only_value(r, R"("vector":"LAST")") == 0);
	const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
	size_t sizes = 0;
	for (const auto &[id, json] : r.series)
		sizes += json.find("target.rss") != std::string::npos;
	CHECK(sizes == targets);
	CHECK(samples_of(r, R"("target.rss","unit":"bytes","labels":{"pid":"200"})").at(0).value ==
	      200 * page);
}

TEST_CASE("missing or invalid files omit their series")
{
	Proc proc;
	proc.write("stat", "cpu 1 2 three\n");
	proc.write("meminfo", "MemFree 12\nMemAvailableX: 1 kB\nCached: many kB\n");
	proc.write("softirqs", "nothing");
	proc.write("4711/stat", "4711 (cut");
	Written written;
	proc_metrics *m = proc_metrics_open(written.writer(), proc.path().c_str());
	REQUIRE(m);
	proc_metrics_sample(m, &kPid, 1);
	proc_metrics_sample(m, &kPid, 1);
	proc_metrics_close(m);
	const Recorded r = written.finish();
	CHECK(r.series.size() == 1);
	CHECK(only_value(r, "host.memory.free") == 12 * 1024);
	proc_metrics_close(nullptr);
}

TEST_CASE("the real /proc has values for this process")
{
	Written written;
	proc_metrics *m = proc_metrics_open(written.writer(), "/proc");
	REQUIRE(m);
	const pid_t self = getpid();
	proc_metrics_sample(m, &self, 1);
	sleep_for(Seconds(0.03));
	proc_metrics_sample(m, &self, 1);
	proc_metrics_close(m);
	const Recorded r = written.finish();
	const auto rss = samples_of(r, "target.rss");
	REQUIRE(!rss.empty());
	CHECK(rss[0].value > 1e6);
	CHECK(rss[0].value < 10e9);
	CHECK(samples_of(r, "host.memory.available").at(0).value > 1e6);
	CHECK(!samples_of(r, "host.cpu.idle").empty());
	CHECK(!samples_of(r, "host.softirq").empty());
	CHECK(!samples_of(r, R"("interface":"lo")").empty());
}

TEST_CASE("a file of the real /proc longer than a page is read completely")
{
	const int before = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) {
		WARN("SKIPPED: only root can make interfaces");
		return;
	}
	constexpr int pairs = 40; // 100 bytes per interface
	bool made = true;
	for (int i = 0; i < pairs && made; i++) {
		const std::string n = std::to_string(i);
		made =
		    run({"ip", "link", "add", "a" + n, "type", "veth", "peer", "name", "b" + n}).status == 0;
	}
	Written written;
	proc_metrics *m = proc_metrics_open(written.writer(), "/proc");
	REQUIRE(m);
	proc_metrics_sample(m, nullptr, 0);
	proc_metrics_close(m);
	REQUIRE(setns(before, CLONE_NEWNET) == 0);
	close(before);
	if (!made) {
		WARN("SKIPPED: cannot make pairs of interfaces here");
		return;
	}
	const Recorded r = written.finish();
	size_t interfaces = 0;
	for (const auto &[id, json] : r.series)
		interfaces += json.find("host.network.receive") != std::string::npos;
	CHECK(interfaces >= 2 * pairs);
}
