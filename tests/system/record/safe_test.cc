// SPDX-License-Identifier: MIT
// The recorder with hostile targets, and its own privileges while it records.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <sys/stat.h>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

// `which`: a directory of a process, or of a thread of one.
std::map<std::string, std::string> status_in(const std::string &which)
{
	std::map<std::string, std::string> fields;
	std::ifstream in(which + "/status");
	for (std::string line; std::getline(in, line);) {
		const size_t colon = line.find(':');
		const size_t text = line.find_first_not_of(" \t", colon + 1);
		fields[line.substr(0, colon)] = text == std::string::npos ? "" : line.substr(text);
	}
	return fields;
}

std::map<std::string, std::string> status_of(pid_t pid)
{
	return status_in("/proc/" + std::to_string(pid));
}

// Children by name, in the order of their start.
std::vector<pid_t> children_of(pid_t pid, const std::string &name)
{
	std::ifstream in("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
	std::vector<pid_t> found;
	for (pid_t child; in >> child;)
		if (status_of(child)["Name"] == name)
			found.push_back(child);
	std::sort(found.begin(), found.end());
	return found;
}

// Helpers of a recorder: children of the process that starts them.
std::vector<pid_t> children(pid_t recorder, const std::string &name)
{
	const std::vector<pid_t> starter = children_of(recorder, "forktail-spawn");
	return starter.size() == 1 ? children_of(starter[0], name) : std::vector<pid_t>();
}

uint64_t hexadecimal(const std::string &text)
{
	return std::stoull(text, nullptr, 16);
}

constexpr uint64_t bit(int capability)
{
	return 1ull << capability;
}
constexpr int kDacReadSearch = 2, kSetGid = 6, kSetUid = 7, kSetPcap = 8, kSysChroot = 18, kSysPtrace = 19,
	      kSysAdmin = 21, kPerfmon = 38, kBpf = 39, kCheckpointRestore = 40;

// Checks every thread, because each has its own. Returns their number.
size_t check_confined(pid_t pid, uint64_t capabilities)
{
	size_t threads = 0;
	for (const auto &task :
	     std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
		auto s = status_in(task.path());
		threads++;
		INFO(s["Name"] << " " << s["Pid"] << " of " << pid);
		for (const char *set : {"CapPrm", "CapEff", "CapBnd"})
			CHECK(hexadecimal(s[set]) == capabilities);
		CHECK(hexadecimal(s["CapInh"]) == 0);
		CHECK(hexadecimal(s["CapAmb"]) == 0);
		CHECK(s["NoNewPrivs"] == "1");
		CHECK(s["Seccomp"] == "2");
		CHECK(s["Seccomp_filters"] != "0");
	}
	return threads;
}

// A process that runs nothing but the function with the long name, in this library.
std::unique_ptr<Process> spinning(const std::string &library)
{
	return std::make_unique<Process>(std::vector<std::string>{"dash", "-c", ":"},
					 ProcessOptions{{{"LD_PRELOAD", library}}, "", ""});
}

std::string stack_of(const Recorded &r)
{
	std::map<uint32_t, size_t> seen;
	for (const ft_cpu_sample &s : r.cpu_samples)
		seen[s.stack]++;
	uint32_t best = 0;
	for (const auto &[stack, count] : seen)
		if (count > seen[best])
			best = stack;
	const auto found = r.stacks.find(best);
	return found == r.stacks.end() ? "" : found->second;
}

uint64_t not_unwound(const Recorded &r)
{
	uint64_t count = 0;
	for (const ft_drop &d : r.drops)
		count += d.source == FT_DROP_UNWIND ? d.count : 0;
	return count;
}

} // namespace

TEST_CASE(
    "the recorder has the privileges of docs/how-it-works/security.md while it records, its helpers fewer")
{
	REQUIRE(root());
	Redis redis;
	Recorder recorder(redis.pid());
	const pid_t pid = recorder.process().pid();
	// The threads that empty the ring buffer, write the file, and watch the first.
	CHECK(check_confined(pid, bit(kDacReadSearch) | bit(kSysPtrace) | bit(kBpf)) == 3);
	const auto starter = children_of(pid, "forktail-spawn");
	REQUIRE(starter.size() == 1);
	check_confined(starter[0], bit(kDacReadSearch) | bit(kSetGid) | bit(kSetUid) | bit(kSetPcap) |
				       bit(kSysChroot) | bit(kSysPtrace) | bit(kSysAdmin) | bit(kPerfmon) |
				       bit(kBpf) | bit(kCheckpointRestore));
	const auto files = children(pid, "forktail-files");
	REQUIRE(files.size() == 1);
	check_confined(files[0], bit(kDacReadSearch) | bit(kSysPtrace) | bit(kCheckpointRestore));
	CHECK(status_of(files[0])["Uid"].find("65534\t65534") == 0);
	const auto unwinding = children(pid, "forktail-unwind"), statistics = children(pid, "forktail-stats"),
		   events = children(pid, "forktail-events");
	REQUIRE(unwinding.size() == 1);
	REQUIRE(statistics.size() == 1);
	REQUIRE(events.size() == 1);
	for (const pid_t helper : unwinding) {
		check_confined(helper, 0);
		CHECK(status_of(helper)["Uid"].find("65534\t65534") == 0);
		CHECK(status_of(helper)["Groups"].empty());
	}
	check_confined(statistics[0], bit(kSysAdmin));
	check_confined(events[0], bit(kPerfmon));
	CHECK(status_of(events[0])["Uid"].find("65534\t65534") == 0);
	const Recorded r = recorder.stop();
	INFO(recorder.process().err());
	CHECK(recorder.process().err().find("is not on the recorder's list") == std::string::npos);
	for (const pid_t helper : unwinding)
		CHECK(eventually([&] { return kill(helper, 0) != 0; }));
	for (const pid_t helper : {statistics[0], events[0], files[0], starter[0]})
		CHECK(eventually([&] { return kill(helper, 0) != 0; }));
}

TEST_CASE("while it waits for load generators it keeps nothing more, and without samples less")
{
	REQUIRE(root());
	Redis redis;
	Recorder with_client(redis.pid());
	check_confined(with_client.process().pid(), bit(kDacReadSearch) | bit(kSysPtrace) | bit(kBpf));
	Process load({program("forktail-load"), "-s", redis.socket(), "-n", "20000", "-t", "set"});
	REQUIRE(load.wait(Seconds(60)) == 0);
	const Recorded r = with_client.stop();
	INFO(with_client.process().err());
	CHECK(r.role("load generator"));
	CHECK(with_client.process().err().find("is not on the recorder's list") == std::string::npos);

	Recorder without_samples(redis.pid(), {"--no-samples"});
	check_confined(without_samples.process().pid(), bit(kSysPtrace) | bit(kBpf));
	CHECK(children(without_samples.process().pid(), "forktail-unwind").empty());
	without_samples.stop();
}

TEST_CASE(
    "what clients sent is read without rights, and only processes that do nothing else attach programs again")
{
	REQUIRE(root());
	Redis redis;
	Recorder recorder(redis.pid(), {"--requests", "--keep", "10s"});
	const pid_t pid = recorder.process().pid();
	const auto requests = children(pid, "forktail-reqs"), attaching = children(pid, "forktail-switch");
	REQUIRE(requests.size() == 1);
	REQUIRE(attaching.size() == 2); // the programs of requests, and the one that sees who reads
	check_confined(requests[0], 0);
	for (const pid_t helper : attaching)
		check_confined(helper, bit(kBpf) | bit(kPerfmon));
	for (const pid_t helper : {requests[0], attaching[0], attaching[1]})
		CHECK(status_of(helper)["Uid"].find("65534\t65534") == 0);
	recorder.process().signal(SIGINT);
	CHECK(recorder.process().wait(Seconds(30)) == 0);
	CHECK(recorder.process().err().find("is not on the recorder's list") == std::string::npos);
}

TEST_CASE("the kernel's statistics are on for part of the time, by the process that may enable them")
{
	REQUIRE(root());
	Redis redis;
	Recorder recorder(redis.pid());
	Process load({"redis-benchmark", "-s", redis.socket(), "-n", "10000000", "-t", "set", "-q"});
	sleep_for(Seconds(2.6));
	const Recorded r = recorder.stop();
	const size_t at = r.cost.find("\"name\":\"sched_switch\",\"runs\":");
	REQUIRE(at != std::string::npos);
	CHECK(std::stoull(r.cost.substr(at + 29)) > 1000);
}

TEST_CASE("a function's name of any length does no harm and is cut")
{
	REQUIRE(root());
	const auto target = spinning(FORKTAIL_LONG_NAME);
	Recorder recorder(target->pid());
	sleep_for(Seconds(0.7));
	const Recorded r = recorder.stop();
	CHECK(r.cpu_samples.size() > 20);
	const std::string stack = stack_of(r);
	INFO(stack);
	CHECK(stack.find("[\"" + std::string(256, 'n') + "\",") != std::string::npos);
}

TEST_CASE("a program that was replaced on disk is still named, and its replacement is not touched")
{
	REQUIRE(root());
	TempDir dir;
	const std::string library = dir.file("library.so");
	write_file(library, read_file(FORKTAIL_LONG_NAME));
	const auto target = spinning(library);
	REQUIRE(eventually([&] {
		return read_file("/proc/" + std::to_string(target->pid()) + "/maps").find(library) !=
		       std::string::npos;
	}));
	sleep_for(Seconds(0.1));
	REQUIRE(unlink(library.c_str()) == 0);
	REQUIRE(mkfifo(library.c_str(), 0600) == 0); // a reader that opens it waits without limit
	Recorder recorder(target->pid());
	sleep_for(Seconds(0.7));
	const std::string stack = stack_of(recorder.stop());
	INFO(stack);
	CHECK(stack.find("nnnnnnnn\",\"library.so\"]") != std::string::npos);
}

TEST_CASE("a helper that dies or hangs loses names and nothing else")
{
	REQUIRE(root());
	const auto target = spinning(FORKTAIL_LONG_NAME);
	Recorder recorder(target->pid());
	const auto unwinding = [&] { return children(recorder.process().pid(), "forktail-unwind"); };
	const pid_t first = unwinding().at(0);
	sleep_for(Seconds(0.4));
	kill(first, SIGKILL);
	REQUIRE(eventually(
	    [&] { return recorder.process().err().find("It is started again") != std::string::npos; }));
	REQUIRE(eventually([&] { return unwinding().size() == 1 && unwinding()[0] != first; }));
	const uint64_t replaced_ns = ft_now_ns();
	sleep_for(Seconds(0.5));
	const uint64_t stopped_ns = ft_now_ns();
	kill(unwinding()[0], SIGSTOP);
	sleep_for(Seconds(0.5));
	const Recorded r = recorder.stop();
	size_t named_by_second = 0, unnamed = 0;
	for (const ft_cpu_sample &s : r.cpu_samples) {
		named_by_second += s.stack && s.t_ns > replaced_ns && s.t_ns < stopped_ns;
		unnamed += !s.stack;
	}
	CHECK(named_by_second > 10);
	CHECK(unnamed > 10);
	CHECK(not_unwound(r) >= unnamed);
	CHECK(!r.damage.no_trailer);
}

TEST_CASE("a killed recorder leaves no helper behind")
{
	REQUIRE(root());
	Redis redis;
	Recorder recorder(redis.pid());
	std::vector<pid_t> all = children(recorder.process().pid(), "forktail-unwind");
	for (const char *name : {"forktail-stats", "forktail-events", "forktail-files"})
		all.push_back(children(recorder.process().pid(), name).at(0));
	recorder.process().signal(SIGKILL);
	recorder.process().wait(Seconds(30));
	for (const pid_t helper : all)
		CHECK(
		    eventually([&] { return kill(helper, 0) != 0 || status_of(helper)["State"][0] == 'Z'; }));
}

TEST_CASE("an output that is a link, another file, or being written is refused in a sentence")
{
	REQUIRE(root());
	Redis redis;
	TempDir dir;
	const auto refused = [&](const std::string &path, const std::string &why) {
		const Result r = run({program("forktail-record"), "--pid", std::to_string(redis.pid()), "-o",
				      path, "--duration", "100ms"});
		INFO(r.err);
		CHECK(r.status == 3);
		CHECK(r.err.find(path + ": " + why) != std::string::npos);
		CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
	};
	write_file(dir.file("notes"), "precious");
	REQUIRE(symlink(dir.file("notes").c_str(), dir.file("link").c_str()) == 0);
	refused(dir.file("link"), "it is a symbolic link");
	refused(dir.file("notes"), "it contains something other than a recording");
	CHECK(read_file(dir.file("notes")) == "precious");
	refused("/dev/null", "it is not a regular file");
	Recorder first(redis.pid());
	refused(first.path(), "another recording is being written to it");
	CHECK(!first.stop().damage.no_trailer);
	struct stat st = {};
	REQUIRE(stat(first.path().c_str(), &st) == 0);
	CHECK((st.st_mode & 07777) == 0600);
}

TEST_CASE("run by sudo, a recording and its new directory belong to the caller alone")
{
	REQUIRE(root());
	Redis redis;
	TempDir dir;
	const Result r = run({program("forktail-record"), "--pid", std::to_string(redis.pid()), "-o",
			      dir.file("made/server.forktail"), "--duration", "100ms"},
			     Seconds(60), {{{"SUDO_UID", "65534"}, {"SUDO_GID", "65533"}}, "", ""});
	INFO(r.err);
	REQUIRE(r.status == 0);
	struct stat made = {}, file = {};
	REQUIRE(stat(dir.file("made").c_str(), &made) == 0);
	REQUIRE(stat(dir.file("made/server.forktail").c_str(), &file) == 0);
	CHECK((made.st_mode & 07777) == 0700);
	CHECK((file.st_mode & 07777) == 0600);
	for (const struct stat &st : {made, file}) {
		CHECK(st.st_uid == 65534);
		CHECK(st.st_gid == 65533);
	}
}
