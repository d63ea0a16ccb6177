// SPDX-License-Identifier: MIT
// `forktail explain` on difficult input: a log that grows, one with its blocks in another order, and one on a
// slow disk. On the latter it reports progress, locks nothing, and ends at once on a signal.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <pty.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <thread>

#include "recording/recording.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

Json explained(const std::string &path)
{
	const Result r = run({program("forktail"), "explain", "--json", path});
	INFO(r.err);
	REQUIRE(r.status == 0);
	return parse_json(r.out);
}

uint64_t requests_of(const Json &json)
{
	return json["requests"]["count"].get<uint64_t>();
}

std::vector<std::string> load(const Redis &redis, const std::string &log, const std::string &how_long)
{
	return {program("forktail"),
		"load",
		"-s",
		redis.socket(),
		"-q",
		"-o",
		log,
		"--rate",
		"20000",
		"-c",
		"8",
		"-t",
		"get",
		"--duration",
		how_long};
}

// The same file with its blocks of requests from the last to the first, and no index.
void reverse(const std::string &from, const std::string &to)
{
	struct ft_reader *reader = nullptr;
	char error[256];
	REQUIRE(ft_reader_open(&reader, from.c_str(), error, sizeof error) == 0);
	struct ft_places places = {};
	REQUIRE(ft_reader_places(reader, true, &places, nullptr, nullptr) == 0);
	std::ifstream in(from, std::ios::binary);
	const std::string bytes(std::istreambuf_iterator<char>(in), {});
	std::vector<std::string> blocks, requests;
	std::string out = bytes.substr(0, places.all[0].offset);
	for (size_t i = 0; i < places.count; i++) {
		const size_t end = i + 1 < places.count ? places.all[i + 1].offset : bytes.size();
		std::string block = bytes.substr(places.all[i].offset, end - places.all[i].offset);
		(places.all[i].kind == FT_BLOCK_REQUEST ? requests : blocks).push_back(std::move(block));
	}
	REQUIRE(requests.size() > 3);
	std::reverse(requests.begin(), requests.end());
	blocks.pop_back(); // with the index and the trailer after it
	for (const std::string &block : blocks)
		out += block;
	for (const std::string &block : requests)
		out += block;
	ft_places_free(&places);
	ft_reader_close(reader);
	std::ofstream(to, std::ios::binary) << out;
}

// A directory on a disk with this read limit in bytes per second for processes in its cgroup.
class SlowDisk
{
public:
	explicit SlowDisk(uint64_t bytes_per_second)
	{
		const std::string image = dir_.file("image");
		usable_ =
		    access("/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device", F_OK) == 0 &&
		    unshare(CLONE_NEWNS) == 0 &&
		    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
		    run({"sh", "-c",
			 "truncate -s 96M " + image + " && mkfs.ext4 -q " + image + " && mkdir " + path()})
			    .status == 0 &&
		    turn_on();
		struct stat s = {};
		usable_ = usable_ && stat(path().c_str(), &s) == 0;
		if (usable_) {
			mkdir(cgroup_.c_str(), 0755);
			std::ofstream limit(cgroup_ + "/blkio.throttle.read_bps_device");
			limit << major(s.st_dev) << ":" << minor(s.st_dev) << " " << bytes_per_second
			      << std::flush;
			usable_ = limit.good();
		}
		if (!usable_)
			WARN("SKIPPED: a slow disk needs root, a loop device and the blkio controller");
	}
	~SlowDisk()
	{
		umount2(path().c_str(), MNT_DETACH);
		eventually([&] { return rmdir(cgroup_.c_str()) == 0 || access(cgroup_.c_str(), F_OK) != 0; });
	}
	SlowDisk(const SlowDisk &) = delete;
	SlowDisk &operator=(const SlowDisk &) = delete;
	bool usable() const { return usable_; }
	std::string path() const { return dir_.file("disk"); }
	std::string cgroup() const { return cgroup_ + "/cgroup.procs"; }
	// Nothing of it is in memory any more.
	bool forget() { return umount2(path().c_str(), 0) == 0 && turn_on(); }

private:
	bool turn_on() { return run({"mount", "-o", "loop", dir_.file("image"), path()}).status == 0; }
	TempDir dir_;
	std::string cgroup_ = "/sys/fs/cgroup/blkio/forktail-test-" + std::to_string(getpid());
	bool usable_ = false;
};

// A command with a terminal, in a cgroup.
class OnTerminal
{
public:
	OnTerminal(const std::vector<std::string> &argv, const std::string &cgroup)
	{
		pid_ = forkpty(&fd_, nullptr, nullptr, nullptr);
		if (pid_ == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			std::ofstream(cgroup) << getpid() << std::flush;
			std::vector<char *> args;
			for (const std::string &a : argv)
				args.push_back(const_cast<char *>(a.c_str()));
			args.push_back(nullptr);
			execv(args[0], args.data());
			_exit(127);
		}
		fcntl(fd_, F_SETFL, O_NONBLOCK);
	}
	~OnTerminal()
	{
		if (pid_ > 0 && !ended_) {
			kill(pid_, SIGKILL);
			waitpid(pid_, nullptr, 0);
		}
		close(fd_);
	}
	OnTerminal(const OnTerminal &) = delete;
	OnTerminal &operator=(const OnTerminal &) = delete;
	const std::string &said()
	{
		char buffer[4096];
		for (ssize_t n; (n = read(fd_, buffer, sizeof buffer)) > 0;)
			said_.append(buffer, static_cast<size_t>(n));
		return said_;
	}
	void type(char key) { REQUIRE(write(fd_, &key, 1) == 1); }
	bool ended()
	{
		said();
		ended_ = ended_ || waitpid(pid_, &status_, WNOHANG) == pid_;
		return ended_;
	}
	int status() const { return status_; }

private:
	pid_t pid_ = -1;
	int fd_ = -1, status_ = 0;
	bool ended_ = false;
	std::string said_;
};

} // namespace

TEST_CASE("a growing log is explained up to its end")
{
	Redis redis;
	TempDir dir;
	const std::string log = dir.file("load.forktail");
	Process p(load(redis, log, "6s"));
	REQUIRE(eventually([&] {
		std::error_code ec;
		return std::filesystem::file_size(log, ec) > 100'000 && !ec;
	}));
	uint64_t before = 0, times = 0;
	while (p.running()) {
		const Json json = explained(dir.path());
		const uint64_t now = requests_of(json);
		CHECK(now >= before);
		CHECK(json["requests"]["latency_ns"]["max"].get<uint64_t>() >=
		      json["requests"]["latency_ns"]["p50"].get<uint64_t>());
		before = now;
		times++;
	}
	INFO(p.err());
	REQUIRE(p.wait(Seconds(20)) == 0);
	CHECK(times > 1);
	const uint64_t all = requests_of(explained(dir.path()));
	CHECK(all >= before);
	CHECK(all == 120'000);
}

TEST_CASE("blocks of requests in another order are the same requests")
{
	Redis redis;
	TempDir dir, other;
	REQUIRE(run(load(redis, dir.file("load.forktail"), "4s")).status == 0);
	reverse(dir.file("load.forktail"), other.file("load.forktail"));
	const Json in_order = explained(dir.path()), reversed = explained(other.path());
	CHECK(requests_of(reversed) == requests_of(in_order));
	CHECK(reversed["requests"]["latency_ns"] == in_order["requests"]["latency_ns"]);
	CHECK(reversed["slow"] == in_order["slow"]);
	uint64_t sum = 0;
	for (const Json &cause : reversed["causes"])
		sum += cause["time_ns"].get<uint64_t>();
	CHECK(sum == reversed["slow"]["time_ns"].get<uint64_t>());
}

TEST_CASE("a part without sent requests is explained as it is in the whole run")
{
	TempDir dir;
	Redis redis;
	Process recorder({program("forktail"), "record", "--pid", std::to_string(redis.pid()), "-o",
			  dir.file("server.forktail")});
	REQUIRE(eventually([&] { return recorder.err().find("recording ") == 0 || !recorder.running(); },
			   std::chrono::seconds(60)));
	INFO(recorder.err());
	REQUIRE(recorder.running());
	// Requests due after the server stopped wait for its two connections until the end.
	Process load({program("forktail"), "load", "-s", redis.socket(), "-q", "-o",
		      dir.file("load.forktail"), "--rate", "3000", "-c", "2", "-t", "get", "--duration",
		      "60"});
	std::this_thread::sleep_for(std::chrono::seconds(1));
	kill(redis.pid(), SIGSTOP);
	std::this_thread::sleep_for(std::chrono::seconds(3));
	load.signal(SIGINT);
	load.wait(std::chrono::seconds(60));
	kill(redis.pid(), SIGCONT);
	recorder.signal(SIGINT);
	REQUIRE(recorder.wait(std::chrono::seconds(60)) == 0);

	auto explain = [&](std::vector<std::string> more) {
		std::vector<std::string> command = {
		    program("forktail"), "explain", "--json", "--requests", "--slow", "100ms", dir.path()};
		command.insert(command.end(), more.begin(), more.end());
		const Result r = run(command, std::chrono::seconds(60));
		INFO(r.err);
		REQUIRE(r.status == 0);
		return parse_json(r.out);
	};
	const Json part = explain({"--since", "+2s", "--until", "+3s"});
	REQUIRE(part["requests"]["by_status"].size() == 1);
	REQUIRE(part["requests"]["by_status"].contains("unsent"));
	// By their due times.
	std::map<uint64_t, const Json *> whole;
	const Json all = explain({});
	CHECK(all["causes"][0]["cause"] == "stopped");
	for (const Json &r : all["slow_requests"])
		whole[r["start_ns"].get<uint64_t>()] = &r;
	uint64_t compared_ns = 0, moved_ns = 0;
	for (const Json &r : part["slow_requests"]) {
		auto same = whole.find(r["start_ns"].get<uint64_t>());
		if (same == whole.end())
			continue;
		std::map<std::string, int64_t> by_cause;
		for (const Json &p : r["parts"])
			by_cause[p["cause"]] +=
			    (p["direct_ns"].get<int64_t>() + p["queued_ns"].get<int64_t>());
		for (const Json &p : (*same->second)["parts"])
			by_cause[p["cause"]] -=
			    (p["direct_ns"].get<int64_t>() + p["queued_ns"].get<int64_t>());
		for (const auto &[cause, ns] : by_cause)
			moved_ns += static_cast<uint64_t>(ns < 0 ? -ns : ns);
		compared_ns += r["latency_ns"].get<uint64_t>();
	}
	REQUIRE(compared_ns > 0);
	CHECK(moved_ns < compared_ns / 50);
}

TEST_CASE("on a slow disk explain reports progress, locks nothing, and ends at once on a signal")
{
	Redis redis;
	SlowDisk disk(200'000);
	if (!disk.usable())
		return;
	const std::string log = disk.path() + "/load.forktail";
	REQUIRE(run(load(redis, log, "6s")).status == 0);
	REQUIRE(std::filesystem::file_size(log) > 600'000);
	REQUIRE(disk.forget());
	TempDir dir;
	const std::string page = dir.file("page.html");
	OnTerminal report({program("forktail"), "report", log, "-o", page}, disk.cgroup());
	REQUIRE(
	    eventually([&] { return report.ended() || report.said().find(" %\033[K") != std::string::npos; },
		       Seconds(30)));
	INFO(report.said());
	REQUIRE_FALSE(report.ended());
	CHECK(report.said().find("reading ") != std::string::npos);
	// The writer of the log is not blocked.
	const int fd = open(log.c_str(), O_RDWR | O_CLOEXEC);
	REQUIRE(fd >= 0);
	CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0);
	struct flock whole = {};
	whole.l_type = F_WRLCK;
	CHECK(fcntl(fd, F_SETLK, &whole) == 0);
	close(fd);
	report.type('\003');
	CHECK(eventually([&] { return report.ended(); }));
	CHECK(WIFSIGNALED(report.status()));
	CHECK(std::filesystem::is_empty(dir.path()));
}
