// SPDX-License-Identifier: MIT
// Properties of every recording: the account adds up, faults pair, counts equal the kernel's own, children
// are followed and named, and written data survives every kind of end.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <linux/bpf.h>
#include <sched.h>
#include <sstream>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

// Minor and major faults of a process with all its threads, as the kernel counts them.
uint64_t faults_of(pid_t pid)
{
	std::ifstream f("/proc/" + std::to_string(pid) + "/stat");
	std::string line;
	std::getline(f, line);
	std::istringstream rest(line.substr(line.rfind(')') + 2));
	std::string field;
	uint64_t minor = 0, major = 0;
	for (int i = 3; i <= 12 && rest >> field; i++) {
		if (i == 10)
			minor = std::stoull(field);
		if (i == 12)
			major = std::stoull(field);
	}
	return minor + major;
}

void check_accounts(const Recorded &r)
{
	REQUIRE(!r.threads.empty());
	for (const auto &[key, t] : r.threads) {
		const double wall = static_cast<double>(t.end_ns - t.start_ns);
		const double accounted = static_cast<double>(r.accounted_ns(t.tid));
		INFO(t.comm.raw << " " << t.tid << " role " << t.role.raw << ": wall " << wall
				<< " ns, accounted " << accounted);
		CHECK(t.end_ns > t.start_ns);
		CHECK(std::abs(accounted - wall) <= 0.001 * wall);
	}
}

uint32_t last_program()
{
	bpf_attr attr = {};
	while (syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attr, sizeof attr) == 0)
		attr.start_id = attr.next_id;
	return attr.start_id;
}

// Skipped runs, counted by the kernel, of programs loaded after `last`.
uint64_t skipped_since(uint32_t last)
{
	uint64_t sum = 0;
	bpf_attr next = {};
	for (next.start_id = last; syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &next, sizeof next) == 0;
	     next.start_id = next.next_id) {
		bpf_attr open = {}, ask = {};
		open.prog_id = next.next_id;
		const long fd = syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &open, sizeof open);
		bpf_prog_info info = {};
		ask.info.bpf_fd = static_cast<uint32_t>(fd);
		ask.info.info_len = sizeof info;
		ask.info.info = reinterpret_cast<uint64_t>(&info);
		if (fd >= 0 && syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &ask, sizeof ask) == 0)
			sum += info.recursion_misses;
		close(static_cast<int>(fd));
	}
	return sum;
}

[[noreturn]] void change_map_for_ever()
{
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof cpus, &cpus);
	uint32_t key = 0, value = 0;
	bpf_attr map = {}, change = {};
	map.map_type = BPF_MAP_TYPE_HASH;
	map.key_size = map.value_size = sizeof key;
	map.max_entries = 1024;
	change.map_fd = static_cast<uint32_t>(syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map));
	change.key = reinterpret_cast<uint64_t>(&key);
	change.value = reinterpret_cast<uint64_t>(&value);
	for (const pid_t test = getppid(); getppid() == test; key = (key + 1) % 1024)
		syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &change, sizeof change);
	_exit(0);
}

} // namespace

TEST_CASE("spans, tallies and own code are each thread's wall time, through a snapshot and an AOF rewrite")
{
	REQUIRE(root());
	Redis redis({.tcp = false,
		     .config = {"--appendonly", "yes", "--appendfsync", "everysec", "--enable-debug-command",
				"yes"}});
	redis.command({"DEBUG", "POPULATE", "1000000", "key", "500"});
	Recorder recorder(redis.pid());
	Process load({"redis-benchmark", "-s", redis.socket(), "-n", "150000", "-r", "1000000", "-d", "500",
		      "-t", "set,get", "-q"});
	sleep_for(Seconds(0.5));
	redis.command({"BGSAVE"});
	REQUIRE(eventually([&] { return redis.info("rdb_bgsave_in_progress") == "0"; }, Seconds(60)));
	const double snapshot_fork_usec = std::stod(redis.info("latest_fork_usec"));
	redis.command({"BGREWRITEAOF"});
	REQUIRE(eventually([&] { return redis.info("aof_rewrite_in_progress") == "0"; }, Seconds(60)));
	REQUIRE(load.wait(Seconds(60)) == 0);
	const Recorded r = recorder.stop();

	CHECK(r.error.empty());
	CHECK(!r.damage.no_trailer);
	CHECK(r.dropped() == 0);
	check_accounts(r);

	const uint32_t main = static_cast<uint32_t>(redis.pid());
	// the fork's time equals Redis' figure
	{
		const ft_thread *child = r.role("snapshot child");
		REQUIRE(child);
		CHECK(child->parent_tgid == main);
		const ft_span *fork = r.longest([&](const ft_span &s) {
			return s.owner == FT_FORK && !s.off_cpu && s.arg[0] == child->tid;
		});
		REQUIRE(fork);
		CHECK(fork->tid == main);
		// Redis times the call from outside: a few microseconds more than the call itself, and more
		// than that if another task, such as the child, gets the CPU at its end.
		const uint64_t forked_ns = fork->start_ns + fork->duration_ns;
		double call_usec = static_cast<double>(fork->duration_ns) / 1e3, waited_usec = 0;
		for (const ft_span &s : r.spans)
			if (s.tid == main && s.off_cpu && s.start_ns >= forked_ns &&
			    s.start_ns < forked_ns + 1'000'000)
				waited_usec += static_cast<double>(s.duration_ns) / 1e3;
		CHECK(call_usec <= 1.1 * snapshot_fork_usec + 50);
		CHECK(call_usec + waited_usec >= 0.9 * snapshot_fork_usec - 50);
	}
	// both children and the background threads are followed and named
	{
		for (const char *role : {"snapshot child", "AOF rewrite child"}) {
			const ft_thread *t = r.role(role);
			REQUIRE(t);
			CHECK((t->flags & FT_THREAD_CHILD) != 0);
			CHECK((t->flags & FT_THREAD_ENDED) != 0);
		}
		CHECK(r.role("bio_aof_fsync"));
		CHECK(r.role("redis-server"));
	}
	// copies, their number and their time are on the main thread
	{
		CHECK(r.count(main, FT_COW_COPY) > 100);
		CHECK(r.owned_ns(main, FT_COW_COPY) > 0);
	}
	// fsyncs of the background thread are frames
	{
		CHECK(r.count(r.role("bio_aof_fsync")->tid, FT_FSYNC) >= 1);
	}
	// event-loop iterations, block I/O and metrics are there
	{
		CHECK(r.longest([&](const ft_span &s) { return s.owner == FT_ITERATION && s.tid == main; }));
		CHECK((!r.io.empty() || !on_a_disk(redis.directory())));
		CHECK(!r.samples.empty());
		bool cpu = false, rss = false;
		for (const auto &[id, json] : r.series) {
			cpu |= json.find("host.cpu.user") != std::string::npos;
			rss |= json.find("target.rss") != std::string::npos;
		}
		CHECK((cpu && rss));
	}
	// its own cost is in the recording
	{
		CHECK(json_number(r.cost, "bpf_ns") > 0);
		CHECK(json_number(r.cost, "recorder_cpu_ns") > 0);
		CHECK(json_number(r.cost, "recorder_rss_bytes") > 0);
		CHECK(r.cost.find("\"sched_switch\"") != std::string::npos);
		CHECK(r.cost.find("\"fault_end_minor\"") != std::string::npos);
	}
}

TEST_CASE("runs of its programs that the kernel skipped are drops, as many as the kernel counts")
{
	REQUIRE(root());
	Redis redis;
	run({"taskset", "-a", "-cp", "0", std::to_string(redis.pid())});
	const uint32_t others = last_program();
	Recorder recorder(redis.pid());
	// A process that changes a BPF map prevents programs of system calls from running on its CPU. On a
	// preemptible kernel this also applies while other tasks run there. So this process does nothing
	// else, on the server's CPU.
	const pid_t meddler = fork();
	REQUIRE(meddler >= 0);
	if (meddler == 0)
		change_map_for_ever();
	run({"taskset", "-c", "1", "redis-benchmark", "-s", redis.socket(), "-n", "100000", "-t", "set,get",
	     "-q"});
	kill(meddler, SIGKILL);
	waitpid(meddler, nullptr, 0);
	REQUIRE(last_program() > others);
	const uint64_t skipped = skipped_since(others);
	const std::string path = recorder.path();
	const Recorded r = recorder.stop();
	INFO("the kernel says " << skipped << ", the recording " << r.missed());
	CHECK(r.missed() >= skipped);
	CHECK(json_number(r.summary, "dropped") == r.missed() + r.dropped());
	CHECK(r.manifest.find("\"sched_switch\"") != std::string::npos);
	check_accounts(r);
	const Result explained = run({program("forktail"), "explain", path, "--all"});
	INFO(explained.out << explained.err);
	CHECK((explained.out.find("(skipped by the kernel) between") != std::string::npos) ==
	      (r.missed() > 0));
}

TEST_CASE("fault begins and ends pair, and their number is the kernel's")
{
	REQUIRE(root());
	// The kernel runs no tracepoint program on a CPU that is using a BPF map. A recorder that is
	// preempted there may leave it so, so on a busy machine events are missed. One of three recordings
	// has to have them all; in each of them, faults pair.
	double off = 1;
	for (int attempt = 0; attempt < 3 && off > 0.01; attempt++) {
		Redis redis({.tcp = false, .config = {"--enable-debug-command", "yes"}});
		Recorder recorder(redis.pid());
		const uint64_t before = faults_of(redis.pid());
		redis.command({"DEBUG", "POPULATE", "200000", "key", "500"});
		const uint64_t faults = faults_of(redis.pid()) - before;
		const Recorded r = recorder.stop();
		const double begins = static_cast<double>(json_number(r.cost, "fault_begins"));
		const double ends = static_cast<double>(json_number(r.cost, "fault_ends"));
		INFO("faults by /proc " << faults << ", begins " << begins << ", ends " << ends);
		REQUIRE(faults > 10000);
		CHECK(ends >= 0.999 * begins);
		CHECK(json_number(r.cost, "fault_ends_unpaired") <= 0.001 * begins);
		CHECK(ends <= 1.01 * static_cast<double>(faults));
		off = 1 - ends / static_cast<double>(faults);

		uint64_t kinds = 0;
		for (const ft_owner kind :
		     {FT_COW_COPY, FT_COW_REUSE, FT_PAGE_ZERO, FT_PAGE_FILE, FT_PAGE_IN, FT_FAULT_OTHER})
			for (const auto &[key, t] : r.threads)
				kinds += r.count(t.tid, kind);
		CHECK(kinds == json_number(r.cost, "fault_ends"));
		CHECK(r.count(static_cast<uint32_t>(redis.pid()), FT_PAGE_ZERO) > 10000);
	}
	CHECK(off <= 0.01);
}

TEST_CASE("a child that lives for milliseconds is identified correctly")
{
	REQUIRE(root());
	Redis redis;
	redis.command({"SET", "a", "b"});
	Recorder recorder(redis.pid());
	for (int i = 0; i < 5; i++) {
		eventually([&] { return redis.info("rdb_bgsave_in_progress") == "0"; }, Seconds(10));
		redis.command({"BGSAVE"});
	}
	eventually([&] { return redis.info("rdb_bgsave_in_progress") == "0"; }, Seconds(10));
	const Recorded r = recorder.stop();
	size_t children = 0, named = 0;
	for (const auto &[id, t] : r.threads) {
		children +=
		    (t.flags & (FT_THREAD_MAIN | FT_THREAD_CHILD)) == (FT_THREAD_MAIN | FT_THREAD_CHILD);
		named += strcmp(t.role.raw, "snapshot child") == 0;
	}
	CHECK(children == 5);
	CHECK(named >= 3); // on a machine so busy that the recorder does not get to run, some are not
}

TEST_CASE("a higher --min-span writes fewer spans and the same account")
{
	REQUIRE(root());
	Redis redis;
	Recorder recorder(redis.pid(), {"--min-span", "5ms"});
	REQUIRE(run({"redis-benchmark", "-s", redis.socket(), "-n", "50000", "-t", "set", "-q"}).status == 0);
	const Recorded r = recorder.stop();
	for (const ft_span &s : r.spans)
		CHECK((s.duration_ns >= 5000000 || (s.flags & FT_SPAN_UNFINISHED)));
	check_accounts(r);
}

TEST_CASE("--duration ends the recording by itself")
{
	REQUIRE(root());
	Redis redis;
	Recorder recorder(redis.pid(), {"--duration", "500ms"});
	const Recorded r = recorder.finished();
	CHECK(r.summary.find("\"duration\"") != std::string::npos);
	check_accounts(r);
}

TEST_CASE("the end of a killed server ends the recording with everything up to there")
{
	REQUIRE(root());
	Redis redis;
	Recorder recorder(redis.pid());
	Process load({"redis-benchmark", "-s", redis.socket(), "-n", "10000000", "-t", "set", "-q"});
	sleep_for(Seconds(0.7));
	redis.process().signal(SIGKILL);
	const Recorded r = recorder.finished();
	CHECK(r.summary.find("targets ended") != std::string::npos);
	CHECK(!r.damage.no_trailer);
	check_accounts(r);
	const ft_thread *main = r.role("redis-server");
	REQUIRE(main);
	CHECK((main->flags & FT_THREAD_ENDED) != 0);
}

TEST_CASE("a killed recorder leaves all but its last moments")
{
	REQUIRE(root());
	Redis redis;
	Recorder recorder(redis.pid());
	Process load({"redis-benchmark", "-s", redis.socket(), "-n", "10000000", "-t", "set", "-q"});
	sleep_for(Seconds(2.5));
	const uint64_t killed_ns = ft_now_ns();
	recorder.process().signal(SIGKILL);
	recorder.process().wait(Seconds(30));
	const Recorded r = read_recording(recorder.path());
	CHECK(r.error.empty());
	CHECK(r.damage.no_trailer);
	CHECK(r.damage.gaps <= 1);
	uint64_t last_ns = 0;
	for (const ft_tally &t : r.tallies)
		last_ns = std::max(last_ns, t.end_ns);
	CHECK(last_ns + 1000000000ull > killed_ns);
	// The server is not affected.
	CHECK(redis.command({"PING"}) == "PONG");
}

TEST_CASE("several servers at once, found by name and by port")
{
	REQUIRE(root());
	Redis one({.tcp = true, .config = {}}), two;
	TempDir dir;
	const std::string path = dir.file("made/for/it.forktail");
	const Result bad = run({program("forktail-record"), "--pid", std::to_string(one.pid()), "-o", path});
	CHECK(bad.status == 3); // only the last directory is made

	const std::string file = dir.file("run/server.forktail");
	const Result r = run({program("forktail-record"), "--port", std::to_string(one.port()), "--unix",
			      two.socket(), "-o", file, "--duration", "300ms"});
	INFO(r.err);
	CHECK(r.status == 0);
	const Recorded recorded = read_recording(file);
	for (const Redis *redis : {&one, &two})
		CHECK(recorded.manifest.find("\"pid\":" + std::to_string(redis->pid())) != std::string::npos);

	const std::string named = dir.file("named.forktail");
	CHECK(run({program("forktail-record"), "--name", "redis-server", "-o", named, "--duration", "300ms"})
		  .status == 0);
	for (const Redis *redis : {&one, &two})
		CHECK(read_recording(named).manifest.find("\"pid\":" + std::to_string(redis->pid())) !=
		      std::string::npos);
}
