// SPDX-License-Identifier: MIT
// Reading run directories: several recordings together, their ids, boots, damage, and the messages for
// directories that are no run.
#include "tests/support/catch.h"
#include "tests/support/explained.h"
#include "tests/support/json.h"
#include "tests/support/tempdir.h"
#include "tests/support/text.h"
#include "tests/unit/analysis/loaded_run.h"

#include <cstring>

#include "analysis/explain.h"
#include "analysis/text.h"

using namespace forktail::analysis;
using namespace forktail::common;
using forktail::test::contains;
using forktail::test::LoadedRun;
using forktail::test::read_file;
using forktail::test::TempDir;
using forktail::test::write_file;

namespace
{

constexpr uint64_t kStart = 5'000'000'000, kMs = 1'000'000;

struct File {
	ft_writer *w = nullptr;

	File(const std::string &path, const std::string &manifest)
	{
		REQUIRE(ft_writer_open(&w, path.c_str(), manifest.c_str()) == 0);
	}
	template <typename T> void Record(ft_block_kind kind, const T &record)
	{
		REQUIRE(ft_writer_record(w, kind, &record) == 0);
	}
	void Json(ft_block_kind kind, const std::string &text)
	{
		REQUIRE(ft_writer_json(w, kind, text.c_str()) == 0);
	}
	void Close(const char *summary = "{\"end_ns\":6000000000,\"reason\":\"duration\"}")
	{
		REQUIRE(ft_writer_close(w, summary) == 0);
	}
};

const char kServerManifest[] =
    R"({"program":"forktail-record","version":"0.1.0","host":"h","kernel":"6.18","boot_id":"b1",
	"min_span_ns":20000,"cpus":2,"start_ns":5000000000,"targets":[{"pid":100,"comm":"redis-server",
	"cmdline":"redis-server *:6379"}],"missing":[{"what":"compaction","why":"no such tracepoint"}]})";

// A server with one fork of 60 ms at +500 ms.
void WriteServer(const std::string &path, const std::string &manifest = kServerManifest)
{
	File f(path, manifest);
	ft_thread t = {};
	t.start_ns = kStart;
	t.end_ns = kStart + 1000 * kMs;
	t.tid = t.tgid = 100;
	t.flags = FT_THREAD_MAIN;
	strcpy(t.comm.raw, "redis-server");
	ft_thread open = t;
	open.end_ns = 0;
	f.Record(FT_BLOCK_THREAD, open); // the last record of a thread counts
	f.Record(FT_BLOCK_THREAD, t);
	ft_span s = {};
	s.start_ns = kStart + 500 * kMs;
	s.duration_ns = s.on_cpu_ns = 60 * kMs;
	s.tid = 100;
	s.owner = FT_FORK;
	s.detail = 9;
	f.Record(FT_BLOCK_SPAN, s);
	s.owner = FT_ITERATION;
	f.Record(FT_BLOCK_SPAN, s);
	ft_tally y = {};
	y.start_ns = kStart;
	y.end_ns = kStart + 1000 * kMs;
	y.total_ns = 940 * kMs;
	y.tid = 100;
	f.Record(FT_BLOCK_TALLY, y);
	f.Json(FT_BLOCK_DETAIL, R"({"id":9,"name":"nine","stack":["a","b"]})");
	f.Json(FT_BLOCK_STACK, R"({"id":5,"program":"redis-server","frames":[["keysCommand","redis-server"],)"
			       R"(["call","redis-server"],7],"kernel":["copy_page"]})");
	f.Record(FT_BLOCK_CPU_SAMPLE, ft_cpu_sample{kStart + 2 * kMs, 100, 6, 1, FT_OWN_CODE, 0, 0, 0, 0});
	f.Record(FT_BLOCK_CPU_SAMPLE, ft_cpu_sample{kStart + kMs, 100, 5, 1, FT_OWN_CODE, 0, 0, 0, 0});
	f.Json(FT_BLOCK_SERIES, R"({"id":3,"name":"target.rss","unit":"bytes","labels":{"pid":"100"}})");
	f.Record(FT_BLOCK_SAMPLE, ft_sample{kStart, 42, 3, 0});
	f.Record(FT_BLOCK_CLOCK, ft_clock{kStart, 1'700'000'000'000'000'000, 0, 0});
	f.Record(FT_BLOCK_CLOCK, ft_clock{kStart + 900 * kMs, 1'700'000'000'900'000'777, 0, 0});
	f.Json(FT_BLOCK_COST, R"({"t_ns":1,"bpf_ns":7,"bpf_ns_is_estimate":true,"recorder_cpu_ns":8,
		"recorder_rss_bytes":9,"programs":[{"name":"p","runs":2,"ns_per_run":3.5,"total_ns":7}]})");
	f.Json(FT_BLOCK_NOTE, R"({"t_ns":5600000000,"kind":"server-word","latest_fork_usec":59000})");
	for (const char *change : {R"(5200000000,"kind":"softirqs-sampled","on":true,"per_second":160123})",
				   R"(5300000000,"kind":"softirqs-sampled","on":false,"per_second":0})",
				   R"(5900000000,"kind":"softirqs-sampled","on":true,"per_second":90000})"})
		f.Json(FT_BLOCK_NOTE, std::string(R"({"t_ns":)") + change);
	for (int times = 0; times < 2; times++)
		f.Json(FT_BLOCK_NOTE,
		       R"({"t_ns":5700000000,"kind":"missing","what":"faults","why":"a CPU came"})");
	f.Close();
}

// A load of `count` requests, one per millisecond, the last of them slow.
// `behind`: further members of its manifest. Requests then go to each of them in rotation, and one to an
// unknown one.
void WriteLoad(const std::string &path, const std::string &boot = "b1", int count = 600,
	       const std::string &ops = R"(["GET","SET"])", const std::string &behind = "", int servers = 0)
{
	File f(path, R"({"program":"forktail-load","version":"0.1.0","boot_id":")" + boot +
			 R"(","servers":["127.0.0.1:6379"],"server_info":[{"pid":100}],"rate":1000,)" +
			 R"("arrival":"constant","pipeline":1,"start_ns":5000000000,"ops":)" + ops + behind +
			 "}");
	ft_connection c = {};
	c.id = 7;
	c.opened_ns = kStart;
	c.local_port = 40'000;
	c.inode = 1ull << 40;
	f.Record(FT_BLOCK_CONNECTION, c);
	ft_requests requests;
	REQUIRE(ft_requests_init(&requests) == 0);
	for (int i = 0; i < count; i++) {
		ft_request q = {};
		q.intended_ns = q.start_ns = kStart + static_cast<uint64_t>(i) * kMs;
		q.end_ns = q.start_ns + (i + 1 == count ? 50 * kMs : kMs / 10);
		q.connection = 7;
		q.op = 1;
		q.behind = static_cast<uint8_t>(servers ? i % (servers + 1) : 0);
		if (ft_requests_full(&requests))
			REQUIRE(ft_requests_flush(&requests, f.w) == 0);
		ft_requests_append(&requests, &q);
	}
	REQUIRE(ft_requests_flush(&requests, f.w) == 0);
	ft_requests_free(&requests);
	f.Close();
}

} // namespace

TEST_CASE("why soft interrupts were sampled is said only where it is known")
{
	const std::pair<SoftirqSampling, std::string> cases[] = {
	    {{kStart, "", true, false, 160123}, "the host had up to 160,123 a second"},
	    {{kStart, "", true, true, 0}, "--softirqs=sampled was given"},
	    {{kStart, "", true, false, 0}, "their programs cannot be attached"}};
	for (const auto &[sampling, why] : cases) {
		Run run;
		run.end_ns = kStart + 300 * kMs;
		run.softirq_samplings = {sampling};
		WarnOfSampledSoftirqs(&run);
		REQUIRE(run.missing.size() == 1);
		CHECK(run.missing[0].why == why);
	}
}

TEST_CASE("servers behind a proxy are one list, in whatever order each log names them")
{
	TempDir dir;
	WriteLoad(dir.file("a.forktail"), "b1", 10);
	WriteLoad(dir.file("b.forktail"), "b1", 9, R"(["SET","GET"])",
		  R"(,"behind":[{"name":"x","address":"h:1"},{"name":"y","address":"h:2"}])", 2);
	WriteLoad(dir.file("c.forktail"), "b1", 8, R"(["SET","GET"])",
		  R"(,"behind":[{"name":"z","address":"h:3"},{"name":"x","address":"h:1"}])", 3);
	std::string error;
	Run run = LoadedRun(dir.path());
	REQUIRE(run.behind.size() == 3);
	CHECK(run.behind[0].name == "x");
	CHECK(run.behind[1].address == "h:2");
	CHECK(run.behind[2].address == "h:3");
	REQUIRE(run.requests.behind.size() == 27);
	const std::vector<uint32_t> want = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0,
					    1, 2, 0, 1, 2, 0, 3, 1, 0, 0, 3, 1, 0};
	for (size_t i = 0; i < want.size(); i++) {
		INFO(i);
		CHECK(run.requests.Behind(i) == want[i]); // c's fourth one is missing in its manifest
	}

	// They were not recorded: the run is explained as without them, with one message.
	Explained e;
	int status = 0;
	WriteServer(dir.file("server.forktail"));
	REQUIRE(ExplainRun(dir.path(), {}, &e, &error, &status));
	CHECK(e.hop_threads.size() == 4);
	CHECK(contains(e.notes,
		       "time at 3 servers behind the proxy counts as network: 1 process was recorded"));
	CHECK(contains(e.notes, "is unknown for 7 requests"));
	CHECK(e.blame.hops.size() == 1);
	CHECK_FALSE(e.blame.hops[0].proxy);

	TempDir without;
	WriteLoad(without.file("a.forktail"));
	Run plain = LoadedRun(without.path());
	CHECK(plain.requests.behind.empty());
	CHECK(plain.requests.Behind(5) == 0);
}

TEST_CASE("a part of a run is explained as it is within the whole run")
{
	TempDir dir;
	WriteServer(dir.file("server.forktail"));
	WriteLoad(dir.file("load.forktail"));
	ExplainOptions options;
	options.slow.ns = kMs;
	auto explain = [&](const std::string &since, const std::string &until) {
		options.part = {};
		std::string error;
		int status = 0;
		Explained e;
		REQUIRE(ParsePart(since, until, "", &options.part, &error));
		REQUIRE(ExplainRun(dir.path(), options, &e, &error, &status));
		return forktail::test::parse_json(ExplainJson(e, true));
	};
	auto refused = [&](const std::string &since, int want) {
		options.part = {};
		std::string error;
		int status = 0;
		Explained e;
		REQUIRE(ParsePart(since, "", "", &options.part, &error));
		CHECK(!ExplainRun(dir.path(), options, &e, &error, &status));
		CHECK(status == want);
		return error;
	};
	nlohmann::json whole = explain("", ""), part = explain("+550ms", "-1ms");
	CHECK(whole["requests"]["count"] == 600);
	CHECK(!whole["requests"].contains("since_ns"));
	CHECK(part["requests"]["count"] == 50);
	CHECK(part["requests"]["first_ns"] == kStart + 550 * kMs);
	CHECK(part["requests"]["since_ns"] == kStart + 550 * kMs);
	CHECK(part["requests"]["until_ns"] == kStart + 648 * kMs);
	CHECK(part["requests"]["duration_ns"] == 99 * kMs);
	REQUIRE(whole["slow_requests"].size() == 1);
	CHECK(part["slow_requests"][0]["id"] == 49); // only those in the part
	CHECK(whole["slow_requests"][0]["id"] == 599);
	part["slow_requests"][0].erase("id");
	whole["slow_requests"][0].erase("id");
	CHECK(part["slow_requests"] == whole["slow_requests"]); // with t_s, which counts from the run's start
	CHECK(part["account"]["threads"][0]["wall_ns"] == 99 * kMs);
	CHECK(explain("+0s", "+100ms")["slow_requests"].empty());

	CHECK(refused("+2s", 3).find(dir.path() + " has no data at that time: the run lasts from +0 s to") ==
	      0);
	CHECK(refused("+620ms", 3).find("no request was due in that time in " + dir.path()) == 0);
}

TEST_CASE("a reopened connection had other sockets before")
{
	TempDir dir;
	{
		File f(dir.file("load.forktail"),
		       R"({"program":"forktail-load","boot_id":"b1","ops":["GET"]})");
		// In the order of opening and closing. The last one is recorded once more at the end.
		const auto record = [&](uint64_t opened_ns, uint64_t closed_ns, uint32_t id, uint32_t thread,
					uint32_t port, uint64_t inode) {
			ft_connection c = {};
			c.opened_ns = opened_ns;
			c.closed_ns = closed_ns;
			c.id = id;
			c.thread = thread;
			c.local_port = port;
			c.inode = inode;
			f.Record(FT_BLOCK_CONNECTION, c);
		};
		record(kStart, 0, 7, 2, 100, 1);
		record(kStart, kStart + 10, 7, 2, 100, 1);
		record(kStart + 20, 0, 7, 2, 101, 2);
		record(kStart + 20, kStart + 30, 7, 2, 101, 2);
		record(kStart + 40, 0, 7, 2, 102, 3);
		record(kStart + 5, 0, 8, 1, 200, 9);
		record(kStart + 40, kStart + kMs, 7, 2, 102, 3);
		record(kStart + 5, kStart + kMs, 8, 1, 200, 9);
		f.Close();
	}
	Run run = LoadedRun(dir.path());
	REQUIRE(run.connections.size() == 2);
	const Connection &c = run.connections[0];
	CHECK(c.local_port == 102);
	CHECK(c.inode == 3);
	CHECK(c.closed_ns == kStart + kMs);
	CHECK(c.thread == 2);
	REQUIRE(c.earlier.size() == 2);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(c.earlier[i].opened_ns == kStart + 20 * i);
		CHECK(c.earlier[i].closed_ns == kStart + 20 * i + 10);
		CHECK(c.earlier[i].local_port == 100 + i);
		CHECK(c.earlier[i].inode == 1 + i);
		CHECK(c.earlier[i].earlier.empty());
	}
	CHECK(run.connections[1].earlier.empty());
	CHECK(run.connections[1].closed_ns == kStart + kMs);
}

TEST_CASE("arrival times are known for requests whose log has them, within the request")
{
	TempDir dir;
	WriteLoad(dir.file("a.forktail"), "b1", 10);
	{
		File f(dir.file("b.forktail"), R"({"program":"forktail-load","boot_id":"b1","ops":["GET"]})");
		ft_requests requests;
		REQUIRE(ft_requests_init(&requests) == 0);
		for (uint64_t i = 0; i < 5; i++) {
			ft_request q = {};
			q.intended_ns = q.start_ns = kStart + i * kMs;
			q.end_ns = q.start_ns + 900'000;
			q.arrival_ns = i == 1 ? q.start_ns - 1 : i == 2 ? 0 : q.end_ns - i;
			ft_requests_append(&requests, &q);
		}
		REQUIRE(ft_requests_flush(&requests, f.w) == 0);
		ft_requests_free(&requests);
		f.Close();
	}
	WriteLoad(dir.file("c.forktail"), "b1", 10);
	Run run = LoadedRun(dir.path());
	const Requests &q = run.requests;
	REQUIRE(q.size() == 25);
	REQUIRE(q.arrival_ns.size() == 25);
	for (size_t i = 0; i < q.size(); i++) {
		INFO(i);
		CHECK(q.Unread(i) == (i == 13 ? 3u : i == 14 ? 4u : 0u));
		CHECK(q.Arrived(i) == q.end_ns[i] - q.Unread(i));
	}
	CHECK(q.arrival_ns[9] == 0);
	CHECK(q.arrival_ns[10] == q.end_ns[10]);
	CHECK(q.arrival_ns[11] == 0);
	CHECK(q.arrival_ns[24] == 0);
}

TEST_CASE("a run's recordings are read together")
{
	TempDir dir;
	WriteServer(dir.file("server.forktail"));
	WriteLoad(dir.file("load.forktail"));
	write_file(dir.file("run.json"),
		   R"({"host":"h","kernel":"6.18","versions":{"redis":"7.0.15"},"rss_bytes":5,
		"commands":["a b"],"redis_config":{"save":""},
		"server_reports":[{"t_ns":5700000000,"kind":"bgsave","latest_fork_usec":59500}]})");
	std::string error;
	Run run = LoadedRun(dir.path());
	CHECK(run.warnings.empty());
	CHECK(run.files.size() == 2);
	CHECK(run.min_span_ns == 20'000);
	CHECK(run.cpus == 2);
	REQUIRE(run.threads.size() == 1);
	CHECK(run.threads[0].end_ns == kStart + 1000 * kMs);
	CHECK(run.threads[0].comm == "redis-server");
	REQUIRE(run.spans.size() == 1);
	CHECK(run.iterations.size() == 1);
	CHECK(run.details[run.spans[0].detail].name == "nine");
	CHECK(run.details[run.spans[0].detail].stack == std::vector<std::string>{"a", "b"});
	REQUIRE(run.cpu_samples.size() == 2); // by time; a missing stack is no stack
	CHECK(run.cpu_samples[0].t_ns == kStart + kMs);
	CHECK(run.cpu_samples[1].stack == 0);
	const Stack &stack = run.stacks[run.cpu_samples[0].stack];
	CHECK(stack.program == "redis-server");
	REQUIRE(stack.frames.size() == 2);
	CHECK(stack.frames[0].function == "keysCommand");
	CHECK(stack.kernel == std::vector<std::string>{"copy_page"});
	REQUIRE(run.series.size() == 1);
	CHECK(run.series[0].labels.at("pid") == "100");
	REQUIRE(run.series[0].samples.size() == 1);
	CHECK(run.series[0].samples[0].value == 42);
	CHECK(run.cost.bpf_ns == 7);
	CHECK(run.cost.bpf_ns_is_estimate);
	REQUIRE(run.cost.programs.size() == 1);
	CHECK(run.cost.programs[0].ns_per_run == 3.5);
	REQUIRE(run.reports.size() == 2);
	CHECK(run.reports[0].latest_fork_usec == 59000);
	CHECK(run.reports[1].kind == "bgsave");
	CHECK(run.info.versions.at("redis") == "7.0.15");
	REQUIRE(run.missing.size() == 3);
	CHECK(run.missing[0].why == "no such tracepoint");
	CHECK(run.missing[1].what == "faults");
	CHECK(run.missing[2].what.rfind("each soft interrupt for 200 ms,", 0) == 0);
	CHECK(run.missing[2].why == "the host had up to 160,123 a second");
	CHECK(run.requests.size() == 600);
	CHECK(run.ops[run.requests.op[0]] == "SET");
	CHECK(run.servers == std::vector<std::string>{"127.0.0.1:6379"});
	CHECK(run.server_pids == std::vector<uint32_t>{100});
	REQUIRE(run.loads.size() == 1);
	CHECK(run.loads[0].rate == 1000);
	CHECK(run.loads[0].connection_count == 1);
	REQUIRE(run.connections.size() == 1);
	CHECK(run.connections[0].local_port == 40'000);
	CHECK(run.connections[0].inode == 1ull << 40);
	CHECK(run.start_ns == kStart);
	CHECK(RealtimeNs(run, kStart - 5) == 1'699'999'999'999'999'995);
	CHECK(RealtimeNs(run, kStart + 900 * kMs) == 1'700'000'000'900'000'777);
	CHECK(RealtimeNs(Run(), 1) == 0);

	Explained e;
	int status = -1;
	REQUIRE(ExplainRun(dir.path(), {}, &e, &error, &status));
	CHECK(status == 0);
	CHECK(e.notes.empty());
	REQUIRE(e.blame.causes.size() > 0);
	CHECK(e.serving == std::vector<int>{0});
}

TEST_CASE("a system call has its recorder's name for it, which differs between machines")
{
	TempDir dir;
	std::string error;
	std::string manifest = kServerManifest;
	manifest.insert(1, R"("syscalls":{"22":"epoll_pwait","232":"mincore"},)"); // arm64's
	WriteServer(dir.file("new.forktail"), manifest);
	Run other = LoadedRun(dir.file("new.forktail"));
	CHECK(SyscallName(other, 22) == "epoll_pwait");
	CHECK(SyscallName(other, 232) == "mincore");
	CHECK(SyscallName(other, 0) == "");
}

TEST_CASE("a load generator's log has the command of each operation, and may have only slow requests")
{
	TempDir dir;
	WriteLoad(dir.file("a.forktail"), "b1", 10,
		  R"(["LRANGE_100","MIX"],"commands":["LRANGE",""],"log_slow_ns":1000)");
	Run run = LoadedRun(dir.path());
	CHECK(run.op_commands == std::vector<std::string>{"LRANGE", ""});
	CHECK(run.loads[0].only_slow);
}

TEST_CASE("ids of several load generators are distinct")
{
	TempDir dir;
	WriteLoad(dir.file("a.forktail"), "b1", 10);
	WriteLoad(dir.file("b.forktail"), "b1", 10, R"(["SET","INCR"])");
	Run run = LoadedRun(dir.path());
	CHECK(run.ops == std::vector<std::string>{"GET", "SET", "INCR"});
	CHECK(run.op_commands == run.ops); // an old log has only names
	CHECK(!run.loads[0].only_slow);
	CHECK(run.ops[run.requests.op[0]] == "SET");
	CHECK(run.ops[run.requests.op[10]] == "INCR");
	CHECK(run.requests.connection[0] != run.requests.connection[10]);
	CHECK(run.connections.size() == 2);
	CHECK(run.servers.size() == 1);
}

TEST_CASE("recordings of different boots are not combined")
{
	TempDir dir;
	WriteServer(dir.file("server.forktail"));
	WriteLoad(dir.file("load.forktail"), "b2");
	Explained e;
	std::string error;
	int status = -1;
	REQUIRE(ExplainRun(dir.path(), {}, &e, &error, &status));
	CHECK(contains(e.run.warnings, "different boots"));
	CHECK(e.run.threads.empty());
	CHECK(contains(e.notes, "cannot be explained"));
	REQUIRE(e.blame.causes.size() == 1);
	CHECK(e.blame.causes[0].cause == Cause::Unknown);
}

TEST_CASE("a cut recording is read up to the cut, with a warning")
{
	TempDir dir;
	WriteServer(dir.file("server.forktail"));
	WriteLoad(dir.file("load.forktail"), "b1", 40'000);
	std::string bytes = read_file(dir.file("load.forktail"));
	for (size_t cut : {bytes.size() - 10, bytes.size() / 2, bytes.size() / 3}) {
		write_file(dir.file("load.forktail"), bytes.substr(0, cut));
		Run run = LoadedRun(dir.path());
		CHECK(contains(run.warnings, "load.forktail: "));
		CHECK(run.requests.size() % FT_REQUEST_BLOCK ==
		      (cut > bytes.size() / 2 ? 40'000 % FT_REQUEST_BLOCK : 0));
	}
}

TEST_CASE("a recording without its manifest is still read")
{
	TempDir dir;
	WriteLoad(dir.file("load.forktail"));
	std::string bytes = read_file(dir.file("load.forktail"));
	bytes[50] = static_cast<char>(bytes[50] ^ 1); // in the manifest's payload
	write_file(dir.file("load.forktail"), bytes);
	Run run = LoadedRun(dir.path());
	CHECK(contains(run.warnings, "the manifest is missing"));
	CHECK(run.requests.size() == 600);
	CHECK(run.ops == std::vector<std::string>{"request"});
}

TEST_CASE("one bad file among good ones is a warning")
{
	TempDir dir;
	WriteServer(dir.file("server.forktail"));
	write_file(dir.file("broken.forktail"), "");
	Run run = LoadedRun(dir.path());
	CHECK(contains(run.warnings, "broken.forktail"));
	CHECK(run.threads.size() == 1);
}

TEST_CASE("a directory that is no run gives one message")
{
	TempDir dir;
	Run run;
	std::string error;
	auto fails = [&](const std::string &path, const std::string &part) {
		INFO(path);
		Run fresh;
		error.clear();
		CHECK(!LoadRun(path, &fresh, &error));
		INFO(error);
		CHECK(error.find(part) != std::string::npos);
		CHECK(error.find('\n') == std::string::npos);
	};
	fails(dir.file("nowhere"), "no run at");
	fails(dir.path(), "holds no recording");
	write_file(dir.file("x.forktail"), "");
	fails(dir.file("x.forktail"), "empty");
	fails(dir.path(), "empty");
	write_file(dir.file("x.forktail"),
		   "GIF89a, this is no recording at all, though long enough for a header or two");
	fails(dir.file("x.forktail"), "not a");
}

TEST_CASE("a run with neither requests nor iterations cannot be explained")
{
	TempDir dir;
	std::string error;
	int status = 0;
	SECTION("a load that sent nothing")
	{
		WriteLoad(dir.file("load.forktail"), "b1", 0);
		Explained e;
		CHECK(!ExplainRun(dir.path(), {}, &e, &error, &status));
		CHECK(error.find("no requests and no server threads") != std::string::npos);
	}
	SECTION("a server that was never busy for long")
	{
		File f(dir.file("server.forktail"), kServerManifest);
		ft_thread t = {};
		t.start_ns = kStart;
		t.end_ns = kStart + kMs;
		t.tid = t.tgid = 100;
		t.flags = FT_THREAD_MAIN;
		f.Record(FT_BLOCK_THREAD, t);
		f.Close();
		Explained e;
		CHECK(!ExplainRun(dir.path(), {}, &e, &error, &status));
		CHECK(error.find("no event-loop iteration of the recorded server took 20.0 us or more") !=
		      std::string::npos);
	}
	CHECK(status == 3);
}

TEST_CASE("without a request log, stalls are found from iterations of at least 1 ms")
{
	TempDir dir;
	WriteServer(dir.file("server.forktail"));
	Explained e;
	std::string error;
	int status = -1;
	REQUIRE(ExplainRun(dir.file("server.forktail"), {}, &e, &error, &status));
	CHECK(e.blame.from_iterations);
	CHECK(e.blame.threshold_ns == kMs);
	REQUIRE(e.blame.slow.size() == 1);
	REQUIRE(e.episodes.size() == 1);
	CHECK(e.episodes[0].evidence[0].find("fork() copied page tables for 60.0 ms") == 0);
}

TEST_CASE("a recording that ends before the load is reported")
{
	TempDir dir;
	WriteServer(dir.file("server.forktail"));
	WriteLoad(dir.file("load.forktail"), "b1", 2000);
	Explained e;
	std::string error;
	int status = -1;
	REQUIRE(ExplainRun(dir.path(), {}, &e, &error, &status));
	CHECK(contains(e.notes, "recorded until +1.000 s only"));
}
