// SPDX-License-Identifier: MIT
// A flight recorder on real servers: segments are separate recordings whose accounts add up, targets are
// followed, and neither a full disk nor a kill loses more than it must.
#include <csignal>
#include <cstring>
#include <set>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

std::vector<std::string> segments(const std::string &ring)
{
	std::set<std::string> all;
	for (const auto &e : std::filesystem::directory_iterator(ring))
		if (e.path().extension() == ".forktail")
			all.insert(e.path());
	return {all.begin(), all.end()};
}

// A running forktail-record --keep.
class Keeper
{
public:
	Keeper(const std::string &ring, const std::vector<std::string> &more,
	       const std::string &recorder = program("forktail-record"))
	{
		std::vector<std::string> argv = {recorder, "-o", ring};
		argv.insert(argv.end(), more.begin(), more.end());
		process_ = std::make_unique<Process>(argv);
		if (!says("recording "))
			throw std::runtime_error("forktail-record did not start: " + process_->err());
	}
	Process &process() { return *process_; }
	bool says(const std::string &what)
	{
		const auto said = [&] { return process_->err().find(what) != std::string::npos; };
		return eventually([&] { return said() || !process_->running(); }, Seconds(30)) && said();
	}
	void end()
	{
		process_->signal(SIGINT);
		const auto status = process_->wait(Seconds(60));
		INFO(process_->err());
		CHECK(status == 0);
		CHECK(process_->err().find("is not on the recorder's list") == std::string::npos);
	}

private:
	std::unique_ptr<Process> process_;
};

bool has_note(const Recorded &r, const std::string &part)
{
	for (const std::string &note : r.notes)
		if (note.find(part) != std::string::npos)
			return true;
	return false;
}

// The time of a thread from the first to the last instant in some consecutive segments, and how much of it
// they account for.
void check_account(const std::vector<Recorded> &all, size_t first, size_t last, uint32_t tid)
{
	uint64_t begin = UINT64_MAX, end = 0, accounted = 0;
	for (size_t i = first; i <= last; i++) {
		accounted += all[i].accounted_ns(tid);
		for (const ft_span &s : all[i].spans) {
			if (s.tid != tid || s.owner == FT_ITERATION || s.depth)
				continue;
			begin = std::min(begin, s.start_ns);
			end = std::max(end, s.start_ns + s.duration_ns);
		}
		for (const ft_tally &t : all[i].tallies) {
			if (t.tid != tid)
				continue;
			begin = std::min(begin, t.start_ns);
			end = std::max(end, t.end_ns);
		}
	}
	const double wall = static_cast<double>(end - begin), sum = static_cast<double>(accounted);
	INFO("segments " << first << " to " << last << ": wall " << wall << " ns, accounted " << sum);
	REQUIRE(end > begin);
	// A frame open at a begin or end is there with its inner frames on one side only.
	CHECK(std::abs(sum - wall) <= 0.01 * wall + 3e6);
}

// Everything that a record refers to is in the same file.
void check_whole(const Recorded &r)
{
	INFO(r.manifest);
	CHECK(r.error.empty());
	CHECK(!r.damage.no_trailer);
	CHECK(r.damage.blocks_missing == 0);
	CHECK(r.cost.find("\"bpf_ns\"") != std::string::npos);
	std::set<uint32_t> tids;
	for (const auto &[key, t] : r.threads)
		tids.insert(t.tid);
	for (const ft_span &s : r.spans) {
		CHECK((!s.detail || r.details.count(s.detail)));
		CHECK(tids.count(s.tid));
	}
	for (const ft_sample &s : r.samples)
		CHECK(r.series.count(s.series));
	for (const ft_cpu_sample &s : r.cpu_samples)
		CHECK((!s.stack || r.stacks.count(s.stack)));
	CHECK(!r.samples.empty());
	CHECK(!r.loops.empty());
}

// The last open spans of its threads: owner by thread.
std::map<uint32_t, uint8_t> open_at_end(const std::string &path)
{
	char error[256];
	ft_reader *reader = nullptr;
	ft_block block;
	std::map<uint32_t, uint8_t> last;
	if (ft_reader_open(&reader, path.c_str(), error, sizeof error))
		return last; // it has just been begun
	while (ft_reader_next(reader, &block) > 0) {
		for (uint32_t i = 0; block.kind == FT_BLOCK_OPEN && i < block.count; i++) {
			ft_span s;
			ft_block_record(&block, i, &s, sizeof s);
			CHECK((s.flags & FT_SPAN_UNFINISHED) != 0);
			if (s.owner != FT_ITERATION)
				last[s.tid] = s.owner;
		}
	}
	ft_reader_close(reader);
	return last;
}

} // namespace

TEST_CASE("segments can be explained alone, accounts of consecutive ones add up, and a kill leaves the ring")
{
	REQUIRE(root());
	Redis redis;
	TempDir dir;
	const std::string ring = dir.file("ring"), pid = std::to_string(redis.pid());
	const auto main_thread = static_cast<uint32_t>(redis.pid());
	{
		Keeper keeper(ring, {"--pid", pid, "--keep", "40s,100MB"});
		// Segments of 5 s: from a second before the first one's end until after the second one's.
		sleep_for(Seconds(4));
		Process load({"redis-benchmark", "-s", redis.socket(), "-n", "10000000", "-t", "set", "-q"});
		redis.command({"BGSAVE"});
		REQUIRE(eventually([&] { return segments(ring).size() >= 3; }, Seconds(20)));
		load.signal(SIGTERM);
		CHECK(load.wait(Seconds(10)));
		// A thread that runs while it is read is not in this reading. The next one has it.
		REQUIRE(eventually([&] { return open_at_end(segments(ring).back())[main_thread] == FT_IDLE; },
				   Seconds(20)));
		const Result second =
		    run({program("forktail-record"), "--pid", pid, "--keep", "40s", "-o", ring});
		CHECK(second.status == 3);
		CHECK(second.err.find("another recorder is writing to it") != std::string::npos);
		keeper.process().signal(SIGKILL);
		keeper.process().wait(Seconds(30));
	}
	std::vector<std::string> files = segments(ring);
	const size_t killed = files.size() - 1; // the current one; the third one, unless everything is slow
	REQUIRE(killed >= 2);
	Keeper again(ring, {"--pid", pid, "--keep", "40s,100MB"});
	again.end();
	files = segments(ring);
	REQUIRE(files.size() == killed + 2);
	CHECK(files[killed + 1] == ring + "/segment-000000000" + std::to_string(killed + 2) + ".forktail");
	std::vector<Recorded> all;
	for (const std::string &file : files)
		all.push_back(read_recording(file));
	for (const size_t i : {0, 1})
		check_whole(all[i]);
	CHECK(all[0].summary.find("\"reason\":\"segment\"") != std::string::npos);
	CHECK(all[1].manifest.find("\"segment\":2") != std::string::npos);
	CHECK(all[1].manifest.find("\"keep\":\"40s,100MB\"") != std::string::npos);
	CHECK(all[killed].damage.no_trailer);
	CHECK(all[killed].damage.bytes_skipped == 0);
	CHECK(!all[killed + 1].damage.no_trailer);
	check_account(all, 0, 0, main_thread);
	check_account(all, 1, 1, main_thread);
	check_account(all, 0, 1, main_thread);
	check_account(all, 1, killed, main_thread);
	// It waits for events and its threads for work. These waits began before the ring.
	const auto open = open_at_end(files[killed]);
	REQUIRE(open.count(main_thread));
	CHECK(open.at(main_thread) == FT_IDLE);
	size_t waiting = 0;
	for (const auto &[tid, owner] : open)
		waiting += tid != main_thread && owner == FT_LOCK_WAIT;
	CHECK(waiting >= 3);
}

TEST_CASE("targets that start, end and restart are followed, with a note, and a signal ends it")
{
	REQUIRE(root());
	TempDir dir;
	const std::string ring = dir.file("ring"), port = std::to_string(free_port());
	// As another user, and with the smallest ring.
	Keeper keeper(ring, {"--port", port, "--keep", "40s", "--user", "nobody", "--no-samples"});
	CHECK(keeper.process().err().find("recording nothing yet") == 0);
	std::vector<pid_t> pids;
	for (int i = 0; i < 2; i++) {
		// Its child lives long enough for the recorder to find out what it is.
		Process server({"redis-server", "--port", port, "--save", "", "--dir", dir.path(),
				"--rdb-key-save-delay", "100000"});
		pids.push_back(server.pid());
		const std::string name = "redis-server (" + std::to_string(server.pid()) + ")";
		REQUIRE(keeper.says(name + " began"));
		run({"redis-benchmark", "-p", port, "-n", "2000", "-t", "set", "-q"});
		run({"redis-cli", "-p", port, "bgsave"});
		keeper.process().signal(i ? SIGHUP : SIGUSR1);
		sleep_for(Seconds(0.2));
		server.signal(SIGTERM);
		REQUIRE(keeper.says(name + " ended"));
		server.wait(Seconds(30));
	}
	keeper.end();
	Recorded r;
	std::set<uint32_t> mains;
	bool child = false;
	for (const std::string &file : segments(ring)) {
		const Recorded one = read_recording(file);
		r.notes.insert(r.notes.end(), one.notes.begin(), one.notes.end());
		child = child || one.role("snapshot child");
		for (const pid_t pid : pids)
			if (one.count(static_cast<uint32_t>(pid), FT_IDLE))
				mains.insert(static_cast<uint32_t>(pid));
	}
	CHECK(mains.size() == 2);
	CHECK(child);
	for (const pid_t pid : pids)
		for (const char *kind : {"target-began", "target-ended"})
			CHECK(has_note(r, "\"kind\":\"" + std::string(kind) +
					      "\",\"pid\":" + std::to_string(pid)));
	CHECK(has_note(r, "\"kind\":\"trigger\",\"name\":\"SIGUSR1\""));
	size_t began = 0; // a snapshot's child has the name and is not a target
	for (const std::string &note : r.notes)
		began += note.find("target-began") != std::string::npos;
	CHECK(began == 2);
}

TEST_CASE("a child whose begin was lost in a full ring buffer is announced later")
{
	REQUIRE(root());
	Redis redis({.config = {"--rdb-key-save-delay", "100000"}}); // its child lives for minutes
	TempDir dir;
	const std::string ring = dir.file("ring");
	Keeper keeper(ring, {"--pid", std::to_string(redis.pid()), "--keep", "60s", "--min-span", "1us"});
	keeper.process().signal(SIGSTOP);
	// The ring buffer has 16 MB. Each request of one connection is a wait, and so an event of at least 80
	// bytes.
	run({"redis-benchmark", "-s", redis.socket(), "-c", "1", "-n", "300000", "-r", "10000", "-t", "set",
	     "-q"});
	redis.command({"BGSAVE"});
	keeper.process().signal(SIGCONT);
	uint64_t lost = 0;
	const auto announced = [&] {
		lost = 0;
		bool found = false;
		for (const std::string &file : segments(ring)) {
			const Recorded r = read_recording(file);
			for (const ft_drop &d : r.drops)
				lost += d.source == FT_DROP_RING && d.detail == FT_DROP_THREAD_EVENT;
			found = found || r.role("snapshot child");
		}
		return found;
	};
	CHECK(eventually(announced, Seconds(30)));
	CHECK(lost > 0); // otherwise this has tested nothing
	keeper.end();
}

TEST_CASE("a full disk is reported once and ends nothing")
{
	REQUIRE(root());
	TempDir dir;
	const std::string disk = dir.file("disk"), ring = disk + "/ring";
	REQUIRE(mkdir(disk.c_str(), 0700) == 0);
	REQUIRE(mount("forktail-test", disk.c_str(), "tmpfs", 0, "size=4m") == 0);
	struct Unmount {
		std::string at;
		~Unmount() { umount2(at.c_str(), MNT_DETACH); }
	} unmount{disk};
	Redis redis;
	Keeper keeper(ring, {"--pid", std::to_string(redis.pid()), "--keep", "10s,100MB"});
	Process load({"redis-benchmark", "-s", redis.socket(), "-n", "10000000", "-t", "set", "-q"});
	write_file(disk + "/hog", "");
	{
		// All the remaining room, however much: it writes until that fails.
		std::ofstream hog(disk + "/hog", std::ios::app);
		const std::string page(4096, 'x');
		while (hog.write(page.data(), 4096).flush()) {
		}
	}
	REQUIRE(keeper.says("No space left on device. Events are lost until writing works again"));
	sleep_for(Seconds(2.5));
	CHECK(keeper.process().running());
	REQUIRE(unlink((disk + "/hog").c_str()) == 0);
	REQUIRE(keeper.says("writing to " + ring + " works again"));
	sleep_for(Seconds(2));
	load.signal(SIGTERM);
	keeper.end();
	const std::string said = keeper.process().err();
	CHECK(said.find("No space left") == said.rfind("No space left"));
	const std::vector<std::string> files = segments(ring);
	uint64_t lost = 0;
	for (const std::string &file : files)
		for (const ft_drop &d : read_recording(file).drops)
			lost += d.source == FT_DROP_DISK ? d.count : 0;
	CHECK(lost > 0);
	const Recorded last = read_recording(files.back());
	CHECK(!last.damage.no_trailer);
	CHECK(last.count(static_cast<uint32_t>(redis.pid()), FT_IDLE) + last.tallies.size() > 0);
}

TEST_CASE("ring and guard belong to the ring's user, and the recorder writes with that user's rights only")
{
	REQUIRE(root());
	Redis redis;
	TempDir dir;
	const std::string ring = dir.file("ring"), bin = dir.file("bin");
	REQUIRE(chmod(dir.path().c_str(), 0711) == 0);
	REQUIRE(mkdir(bin.c_str(), 0755) == 0);
	std::filesystem::copy(program("forktail-record"), bin + "/forktail-record");
	const std::vector<std::string> asked = {
	    "--pid", std::to_string(redis.pid()), "--keep",   "10s", "--user", "nobody",
	    "--on",  "iteration > 50ms",	  "--control"};
	CHECK_THROWS_WITH(Keeper(ring, asked, bin + "/forktail-record"),
			  Catch::Matchers::Contains("which must be in the directory of forktail-record"));
	// Root can run it, the ring's user cannot.
	write_file(bin + "/forktail-guard", "#!/bin/sh\nexit 2\n");
	REQUIRE(chmod((bin + "/forktail-guard").c_str(), 0700) == 0);
	CHECK_THROWS_WITH(Keeper(ring, asked, bin + "/forktail-record"),
			  Catch::Matchers::Contains("accessible to the ring's user: Permission denied"));
	REQUIRE(chmod((bin + "/forktail-guard").c_str(), 0755) == 0);
	{
		Keeper alone(ring, asked, bin + "/forktail-record");
		CHECK(
		    alone.says("forktail-guard did not accept its options. The recording continues without"));
		alone.end();
	}
	// Replaces the guard: writes into the ring how it was started, and dies the first time.
	write_file(bin + "/forktail-guard",
		   "#!/bin/sh\necho \"$*\" >> $1/args\ngrep -E 'Cap|NoNew|Uid' /proc/self/status >> $1/args\n"
		   "test -e $1/again && exec sleep 1000\ntouch $1/again\nexit 3\n");
	REQUIRE(chmod((bin + "/forktail-guard").c_str(), 0755) == 0);
	Keeper keeper(ring, asked, bin + "/forktail-record");
	const std::string line = ring + " --on iteration > 50ms --control\n";
	REQUIRE(eventually([&] {
		const std::string args = read_file(ring + "/args");
		return args.find(line) == 0 && args.rfind(line) != 0;
	}));
	CHECK(keeper.says("forktail-guard exited; restarting it in 1 s"));
	const std::string args = read_file(ring + "/args");
	INFO(args);
	CHECK(args.find("Uid:\t65534\t65534\t65534\t65534") != std::string::npos);
	for (const char *set : {"CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"})
		CHECK(args.find(std::string(set) + ":\t0000000000000000") != std::string::npos);
	CHECK(args.find("NoNewPrivs:\t1") != std::string::npos);
	// Files are created as their user. For file systems the recorder is that user.
	const std::string status = read_file("/proc/" + std::to_string(keeper.process().pid()) + "/status");
	CHECK(status.find("Uid:\t0\t0\t0\t65534") != std::string::npos);
	CHECK(status.find("CapEff:\t0000008000080004") != std::string::npos);
	REQUIRE(eventually([&] { return segments(ring).size() >= 2; }, Seconds(20)));
	for (const std::string &path : {ring, segments(ring)[0], segments(ring)[1]}) {
		struct stat st = {};
		REQUIRE(stat(path.c_str(), &st) == 0);
		CHECK(st.st_uid == 65534);
		CHECK((st.st_mode & 07777) == (path == ring ? 0700 : 0600));
	}
	keeper.end();
}

TEST_CASE("invalid requests for a ring are refused in a sentence")
{
	REQUIRE(root());
	const auto refused = [](const std::vector<std::string> &words, int status, const std::string &why) {
		std::vector<std::string> argv = {program("forktail-record"), "--pid",
						 std::to_string(getpid())};
		argv.insert(argv.end(), words.begin(), words.end());
		const Result r = run(argv);
		INFO(r.err);
		CHECK(r.status == status);
		CHECK(r.err.find(why) != std::string::npos);
		CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
	};
	TempDir dir;
	refused({"--keep", "5s", "-o", "x"}, 2,
		"--keep: expected a time from 10s to 7d and a size of at least 4MB");
	refused({"--user", "nobody", "-o", "x"}, 2, "--user needs --keep");
	refused({"--on", "iteration > 1s", "-o", "x"}, 2, "--on needs --keep");
	refused({"--keep", "10m", "--user", "nosuchuser", "-o", dir.file("r")}, 3,
		"no such user: nosuchuser");
	refused({"--keep", "10m", "-o", dir.file("no/such/place")}, 3, "No such file or directory");
	REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
	refused({"--keep", "10m", "-o", dir.path()}, 3,
		"other users have access to it. Run chmod 0700 on it");
}
