// SPDX-License-Identifier: MIT
// Targets in namespaces and containers: process ids are those of the caller's namespace, a container's
// processes are found by its cgroup, and the end of one of several targets is reported.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "recording/owners.h"
#include "tests/support/catch.h"
#include "tests/support/freezer.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

std::string text_of(const std::string &path)
{
	std::ifstream in(path);
	std::ostringstream text;
	text << in.rdbuf();
	return text.str();
}

bool has_namespaces()
{
	return run({"unshare", "--pid", "--fork", "--mount-proc", "true"}).status == 0;
}

// The snapshot child, and its fork.
void check_snapshot(const Recorded &r, uint32_t server)
{
	const ft_thread *child = r.role("snapshot child");
	REQUIRE(child);
	CHECK(child->parent_tgid == server);
	const ft_span *fork = r.longest([&](const ft_span &s) {
		return s.owner == FT_FORK && !s.off_cpu && s.tid == server && s.arg[0] == child->tid;
	});
	CHECK(fork);
}

// A recording of the processes in the container, selected in one of several ways.
void check_named(const Freezer &group, const Redis &redis, const std::vector<std::string> &target)
{
	INFO(target[0] << " " << target[1]);
	Recorder recorder(target);
	const Recorded r = recorder.stop();
	const Json manifest = parse_json(r.manifest);
	REQUIRE(manifest["targets"].size() == 1);
	CHECK(manifest["targets"][0]["pid"] == redis.pid());
	CHECK(manifest["targets"][0]["cgroup"] == group.name());
	CHECK(manifest["targets"][0]["cgroup_of"] == "container ffffffffffff");
}

// Starts a copy of the shell with this comm.
std::string shell(const TempDir &dir, const std::string &comm)
{
	std::filesystem::copy_file(std::filesystem::canonical("/bin/sh"), dir.file(comm));
	return dir.file(comm);
}

constexpr const char *kBusy = "while :; do :; done";

} // namespace

TEST_CASE("in a pid namespace, tasks outside it are not taken for its own")
{
	REQUIRE(root());
	TempDir dir;
	const std::string server = shell(dir, "inside"), hog = shell(dir, "inside-hog");
	const std::string recording = dir.file("r.forktail"), file = dir.file("file");
	const std::string dd = "dd if=/dev/zero of=" + file + " bs=1M count=16 conv=fsync 2>/dev/null";
	Process outside(
	    {"taskset", "-c", "0", shell(dir, "outside-hog"), "-c",
	     std::string("while :; do dd if=/dev/zero of=") + file +
		 "2 bs=1M count=4 conv=fsync 2>/dev/null; for i in $(seq 300000); do :; done; done"});
	// The server is the third process there, or a later one.
	const Result r = run({"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "taskset", "-c",
			      "0", "sh", "-c",
			      server + " -c '" + kBusy + "' & server=$!; " + hog + " -c '" + kBusy +
				  "' & while :; do " + dd + "; done & " + program("forktail-record") +
				  " --pid $server --duration 4s -o " + recording + "; exit $?"});
	INFO(r.err);
	REQUIRE(r.status == 0);
	size_t in = 0, out = 0;
	const auto check = [&](uint32_t id, const std::string &comm) {
		INFO(comm << " has the id " << id);
		const bool is_inside = comm == "inside-hog";
		if (is_inside || comm == "outside-hog" || comm.rfind("kworker", 0) == 0 ||
		    comm.rfind("ksoftirqd", 0) == 0)
			CHECK((id & FT_TASK_OUTSIDE) == (is_inside ? 0 : FT_TASK_OUTSIDE));
		in += is_inside;
		out += comm == "outside-hog";
	};
	const Recorded recorded = read_recording(recording);
	for (const ft_cpu_slice &s : recorded.slices)
		check(s.tid, s.comm.raw);
	for (const ft_io &io : recorded.io)
		check(io.tid, io.comm.raw);
	CHECK(in > 0);
	CHECK(out > 0);
	size_t own = 0, foreign = 0; // writes of dd
	for (const ft_writes &w : recorded.writes) {
		own += w.comm.raw == std::string("dd") && !(w.tgid & FT_TASK_OUTSIDE);
		foreign += w.comm.raw == std::string("dd") && w.tgid & FT_TASK_OUTSIDE;
	}
	CHECK(own > 0);
	CHECK(foreign > 0);
}

TEST_CASE("in its own pid namespace the recorder knows processes by their ids there")
{
	REQUIRE(root());
	if (!has_namespaces()) {
		WARN("SKIPPED: cannot make a pid namespace here");
		return;
	}
	TempDir dir;
	const std::string socket = dir.file("s"), recording = dir.file("in.forktail");
	// Everything is inside: the server, its client, the recorder.
	const std::string script =
	    "redis-server --port 0 --unixsocket " + socket + " --dir " + dir.path() +
	    " --save '' --enable-debug-command yes --rdb-key-save-delay 1000 >/dev/null & server=$!\n"
	    "until redis-cli -s " +
	    socket +
	    " ping >/dev/null 2>&1; do sleep 0.05; done\n"
	    "redis-cli -s " +
	    socket + " debug populate 200 key 100 >/dev/null\n" + program("forktail-record") +
	    " --pid $server -o " + recording + " 2>" + dir.file("err") +
	    " & recorder=$!\n"
	    "until grep -q '^recording' " +
	    dir.file("err") +
	    "; do kill -0 $recorder || exit 9; sleep 0.05; done\n"
	    "redis-cli -s " +
	    socket + " bgsave >/dev/null; redis-cli -s " + socket +
	    " debug sleep 0.1 >/dev/null\n"
	    "sleep 0.5; redis-cli -s " +
	    socket +
	    " ping >/dev/null; kill -INT $recorder; wait $recorder || exit 8\n"
	    "echo $server; kill $server; wait $server";
	const Result inside = run({"unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script});
	INFO(inside.out << inside.err << text_of(dir.file("err")));
	REQUIRE(inside.status == 0);
	const uint32_t server = static_cast<uint32_t>(std::stoul(inside.out));
	REQUIRE(server < 100); // an id of that namespace

	const Recorded r = read_recording(recording);
	const ft_thread *main = r.role("redis-server");
	REQUIRE(main);
	CHECK((main->tid == server && main->tgid == server));
	CHECK(r.role("bio_aof_fsync"));
	CHECK(r.owned_ns(server, FT_SLEEP) >= 99'000'000);
	CHECK(r.count(server, FT_PAGE_ZERO) + r.count(server, FT_COW_COPY) > 0);
	check_snapshot(r, server);
	CHECK(r.accounted_ns(server) >= (main->end_ns - main->start_ns) / 1000 * 999);
}

TEST_CASE("a server in another pid namespace is traced from outside by its id outside")
{
	REQUIRE(root());
	if (!has_namespaces()) {
		WARN("SKIPPED: cannot make a pid namespace here");
		return;
	}
	TempDir dir;
	const std::string socket = dir.file("s");
	Process namespaced({"unshare", "--pid", "--fork", "--kill-child", "redis-server", "--port", "0",
			    "--unixsocket", socket, "--dir", dir.path(), "--save", "", "--rdb-key-save-delay",
			    "100000"});
	const std::string children = "/proc/" + std::to_string(namespaced.pid()) + "/task/" +
				     std::to_string(namespaced.pid()) + "/children";
	auto ping = [&] { return run({"redis-cli", "-s", socket, "ping"}).out == "PONG\n"; };
	REQUIRE(eventually(ping));
	const uint32_t server = static_cast<uint32_t>(std::stoul(text_of(children)));
	REQUIRE(run({"redis-cli", "-s", socket, "mset", "a", "1", "b", "2"}).status == 0);
	Recorder recorder(static_cast<pid_t>(server));
	REQUIRE(run({"redis-cli", "-s", socket, "bgsave"}).status == 0);
	sleep_for(Seconds(0.3));
	ping();
	check_snapshot(recorder.stop(), server);
}

TEST_CASE("ids without meaning here are refused with a sentence")
{
	REQUIRE(root());
	if (!has_namespaces()) {
		WARN("SKIPPED: cannot make a pid namespace here");
		return;
	}
	TempDir dir;
	const std::string out = dir.file("x.forktail"), pid = std::to_string(getpid());
	const Result hidden = run({"unshare", "--pid", "--fork", "--mount-proc", program("forktail-record"),
				   "--pid", pid, "-o", out});
	CHECK(hidden.status == 3);
	CHECK(hidden.err.find("no process " + pid + " in this pid namespace") != std::string::npos);
	// /proc is still the outer namespace's.
	const Result foreign =
	    run({"unshare", "--pid", "--fork", program("forktail-record"), "--pid", pid, "-o", out});
	CHECK(foreign.status == 3);
	CHECK(foreign.err.find("/proc belongs to another pid namespace") != std::string::npos);
	CHECK(access(out.c_str(), F_OK) != 0);
}

TEST_CASE("a container is found by its cgroup, its id and the beginning of its id")
{
	REQUIRE(root());
	Freezer group(1);
	if (!group.usable()) {
		WARN("SKIPPED: cannot make a cgroup with a freezer here");
		return;
	}
	Redis redis;
	REQUIRE(group.add(redis.pid()));
	check_named(group, redis, {"--cgroup", group.path()});
	check_named(group, redis, {"--cgroup", group.name()});
	check_named(group, redis, {"--container", Freezer::id()});
	check_named(group, redis, {"--container", "ffffffffffff"});

	TempDir dir;
	const Result none = run({program("forktail-record"), "--container", "nobody-has-this-name", "-o",
				 dir.file("x.forktail")});
	CHECK(none.status == 3);
	CHECK(none.err.find("no process is in a container nobody-has-this-name") != std::string::npos);
	const Result empty =
	    run({program("forktail-record"), "--cgroup", "/no/such", "-o", dir.file("x.forktail")});
	CHECK(empty.status == 3);
	CHECK(empty.err.find("no process is in the cgroup /no/such") != std::string::npos);
}

TEST_CASE("which of several targets ended, and when, is printed and recorded")
{
	REQUIRE(root());
	Redis stays, ends;
	Recorder recorder(stays.pid(), {"--pid", std::to_string(ends.pid())});
	ends.process().signal(SIGKILL);
	REQUIRE(ends.process().wait(Seconds(10)));
	stays.command({"PING"});
	const uint32_t gone = static_cast<uint32_t>(ends.pid()), here = static_cast<uint32_t>(stays.pid());
	const Recorded r = recorder.stop();
	CHECK(recorder.process().err().find("redis-server (" + std::to_string(gone) + ") exited after ") !=
	      std::string::npos);
	CHECK(recorder.process().err().find("(" + std::to_string(here) + ") exited") == std::string::npos);
	const Json ended = parse_json(r.summary)["ended"];
	REQUIRE(ended.size() == 1);
	CHECK(ended[0]["pid"] == gone);
	bool noted = false;
	for (const auto &[key, t] : r.threads) {
		if (t.tid == gone)
			CHECK(((t.flags & FT_THREAD_ENDED) && t.end_ns <= ended[0]["t_ns"]));
		if (t.tid == here)
			CHECK_FALSE(t.flags & FT_THREAD_ENDED);
	}
	for (const std::string &note : r.notes)
		noted |= note.find("\"target-ended\",\"pid\":" + std::to_string(gone)) != std::string::npos;
	CHECK(noted);
	const Result explained = run({program("forktail"), "explain", recorder.path(), "--all"});
	INFO(explained.out << explained.err);
	CHECK(explained.out.find("redis-server (" + std::to_string(gone) + ") exited at +") !=
	      std::string::npos);
}

TEST_CASE("the end of a target is reported in printable text, whatever its name")
{
	REQUIRE(root());
	TempDir dir;
	const std::string name = dir.file("\x1b]52;c;Q\a\n\xff"), said = R"(\x1b]52;c;Q\x07\x0a\xff)";
	const std::string sleep = run({"which", "sleep"}).out;
	std::filesystem::copy_file(std::filesystem::canonical(sleep.substr(0, sleep.find('\n'))), name);
	Process ends({name, "600"}), stays({"sleep", "600"});
	Recorder recorder(ends.pid(), {"--pid", std::to_string(stays.pid())});
	CHECK(recorder.process().err().find("recording " + said + " (") == 0);
	ends.signal(SIGKILL);
	REQUIRE(ends.wait(Seconds(10)).has_value());
	sleep_for(Seconds(0.3));
	const Recorded r = recorder.stop();
	const std::string err = recorder.process().err();
	INFO(err);
	CHECK(err.find(said + " (" + std::to_string(ends.pid()) + ") exited after") != std::string::npos);
	CHECK(err.find('\x1b') == std::string::npos);
	CHECK(err.find('\xff') == std::string::npos);
	CHECK(parse_json(r.manifest)["targets"][0]["comm"].is_string());
}
