// SPDX-License-Identifier: MIT
// What the server's own code did, in words: with counts where they were recorded, and never more time than
// was measured.
#include "tests/unit/analysis/evidence/evidence_of.h"

#include "analysis/explain/scene.h"
#include "recording/owners.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

uint64_t Packed(uint64_t reads, uint64_t writes, uint64_t accepted, uint64_t closed)
{
	return reads | writes << 16 | accepted << 32 | closed << 48;
}

// Activities, the calls of their iteration, and both in words.
struct Words {
	std::vector<std::string> names;
	uint64_t packed;
	const char *words;
};

void CheckWords(const std::vector<Words> &cases)
{
	for (const Words &w : cases) {
		ft_span iteration = {};
		iteration.arg[1] = w.packed;
		CHECK(ActivityWords(w.names, CallsOf(iteration)) == w.words);
	}
}

std::string InIterations(const std::vector<std::string> &names, IterationCalls calls)
{
	calls.at_least = true;
	return ActivityWords(names, calls);
}

// The first sentence of the run's only episode.
std::string Said(RunBuilder *b)
{
	b->Finish();
	const std::string all = EvidenceOf(b, 4);
	REQUIRE(!all.empty());
	return all.substr(0, all.find('\n'));
}

// Samples in a system call on a socket.
void CallSamples(RunBuilder *b, uint64_t from_ns, uint64_t count, uint32_t stack, int call)
{
	const size_t first = b->run.cpu_samples.size();
	b->CpuSamples(from_ns, count, stack);
	for (size_t i = first; i < b->run.cpu_samples.size(); i++) {
		ft_cpu_sample &s = b->run.cpu_samples[i];
		s.flags = FT_CPU_SAMPLE_KERNEL;
		s.syscall = static_cast<uint16_t>(call + 1);
		s.file = FT_SAMPLE_FILE_SOCKET;
	}
}

constexpr int kWrite = 1;

} // namespace

TEST_CASE("an iteration's calls show how many requests it had")
{
	CheckWords({
	    {{"kernel/send"}, Packed(1, 5001, 0, 0), "was sending replies to about 5,000 clients"},
	    {{"answer", "kernel/send"}, Packed(20, 20, 0, 0), "was sending replies to about 20 clients"},
	    {{"answer"}, Packed(1, 1, 0, 0), "was sending replies"},
	    {{"answer"}, 0, "was sending replies"}, // an old recording, or another call than write
	    {{"kernel/send"}, Packed(1, 65535, 0, 0), "was sending replies to more than 65,000 clients"},
	    {{"kernel/receive"}, Packed(1234, 1, 0, 0), "was reading requests of about 1,200 clients"},
	    {{"accept", "free-client"},
	     Packed(0, 0, 4010, 3990),
	     "was accepting 4,010 and freeing 3,990 connections"},
	    {{"kernel/accept", "kernel/close"},
	     Packed(0, 0, 8000, 8000),
	     "was accepting and freeing 8,000 connections"},
	    {{"accept"}, Packed(0, 0, 1000, 0), "was accepting 1,000 connections"},
	    {{"kernel/close"}, Packed(0, 0, 0, 7), "was freeing 7 connections"},
	    {{"accept", "free-client"}, 0, "was accepting and freeing connections"},
	    {{"kernel/connection"}, 0, "was setting up connections"},
	});
}

TEST_CASE("for many iterations no count is called complete")
{
	IterationCalls calls;
	calls.writes = 3210;
	calls.accepted = calls.closed = 8000;
	CHECK(InIterations({"kernel/send"}, calls) == "was sending replies (in at least 3,210 writes)");
	CHECK(InIterations({"kernel/accept"}, calls) ==
	      "was accepting and freeing at least 8,000 connections");
	calls.closed = 0;
	CHECK(InIterations({"kernel/accept"}, calls) == "was accepting at least 8,000 connections");
}

TEST_CASE("activities outside a group are listed one by one")
{
	CheckWords({
	    {{"command/KEYS"}, 0, "ran KEYS"},
	    {{"expire"}, 0, "was expiring keys"},
	    {{"function/dictFind"}, 0, "ran dictFind()"},
	    {{"module/libc.so.6"}, 0, "ran code of libc.so.6 without symbols"},
	    {{"module/redisearch.so"}, 0, "ran code of the module redisearch.so"},
	    {{"script"}, 0, "ran a Lua script"},
	    {{"command"}, 0, "ran a command whose function has no name"},
	    {{"module/libcrypto.so.3"}, 0, "ran TLS code"},
	    {{"tls-handshake"}, 0, "was doing TLS handshakes"},
	    {{"tls-handshake"},
	     Packed(0, 0, 60, 0),
	     "was doing TLS handshakes, with 60 accepted connections"},
	    {{"kernel/sched_yield"}, 0, "was in sched_yield()"},
	    {{"kernel/memory"}, 0, "was requesting memory from the kernel or returning it"},
	    {{"something-new"}, 0, "ran something-new"},
	});
}

TEST_CASE("without activities there is no sentence")
{
	CheckWords({{{}, Packed(1, 1, 1, 1), ""}});
	CHECK(InIterations({}, {}).empty());
}

TEST_CASE("server and kernel in the same activity are reported together")
{
	RunBuilder b;
	OneRequest(&b, 0);
	b.Frame(FT_ITERATION, 0, 100 * ms).arg[0] = 1;
	b.run.spans[b.run.spans.size() - 1].arg[1] = Packed(1, 5001, 0, 0);
	CallSamples(&b, 0, 50, b.StackIn("writeToClient"), kWrite);
	b.CpuSamples(50 * ms, 30, b.StackIn("writeToClient"));
	b.CpuSamples(80 * ms, 20, b.StackIn("publishCommand"));
	CHECK(Said(&b) ==
	      "the server ran its own code for 100 ms in one event-loop iteration of 100 ms with 1 ready "
	      "connection; the server was sending replies to about 5,000 clients for 80.0 ms of that time "
	      "(80 of "
	      "100 samples, 50 in the kernel: write() < writeToClient), and ran PUBLISH for 20.0 ms of that "
	      "time "
	      "(20 of 100 samples: publishCommand)");
}

TEST_CASE("a transaction is reported with its number of commands, if that was recorded")
{
	RunBuilder b;
	OneRequest(&b, 0);
	b.Frame(FT_ITERATION, 0, 100 * ms).arg[0] = 1;
	Stack set, rehash;
	set.program = rehash.program = "redis-server";
	for (const char *f : {"setCommand", "call", "execCommand", "call", "processCommand"})
		set.frames.push_back({f, "redis-server"});
	rehash.frames = set.frames;
	rehash.frames.insert(rehash.frames.begin(), {"dictRehash", "redis-server"});
	b.CpuSamples(0, 60, b.Stack(set));
	b.CpuSamples(60 * ms, 40, b.Stack(rehash));
	const std::string
	    begin = "the server ran its own code for 100 ms in one event-loop iteration of 100 ms "
		    "with 1 ready connection, mostly in ",
	    end = "; the server ran SET for 60.0 ms of that time (60 of 100 samples: setCommand < "
		  "call < execCommand), and was rehashing a dictionary for 40.0 ms";
	auto note = [&](uint64_t t, uint32_t tid, uint64_t commands) {
		b.run.reports.push_back({kBase + t, "transaction", 0,
					 R"({"tid":)" + std::to_string(tid) + R"(,"commands":)" +
					     std::to_string(commands) + "}"});
	};
	SECTION("not recorded")
	{
		note(200 * ms, kServer, 5000); // later
		note(1 * ms, 999, 5000);       // of another thread
		CHECK(Said(&b).starts_with(begin + "a transaction (EXEC)" + end));
	}
	SECTION("one")
	{
		note(1 * ms, kServer, 150'000);
		CHECK(Said(&b).starts_with(begin + "one transaction (EXEC) of 150,000 commands" + end));
	}
	SECTION("several")
	{
		note(1 * ms, kServer, 1500);
		note(50 * ms, kServer, 2500);
		CHECK(Said(&b).starts_with(begin + "2 transactions (EXEC) of up to 2,500 commands" + end));
	}
}

TEST_CASE("no activity gets more time than was measured")
{
	// 40 ms of own code in the reported iteration, 20 ms in others.
	RunBuilder b;
	b.Thread(kServer, 0, 100 * ms);
	b.Tally(FT_OWN_CODE, 0, 20 * ms, 20 * ms);
	b.Off(FT_IDLE, 20 * ms, 60 * ms, 60 * ms);
	b.Tally(FT_OWN_CODE, 60 * ms, 100 * ms, 40 * ms);
	b.Frame(FT_ITERATION, 0, 20 * ms).arg[0] = 1;
	b.Frame(FT_ITERATION, 60 * ms, 100 * ms).arg[0] = 1;
	uint32_t keys = b.StackIn("keysCommand");
	b.CpuSamples(0, 20, keys);
	b.CpuSamples(60 * ms, 3, keys);
	b.Request(0, 0, 100 * ms);
	std::string said = Said(&b);
	INFO(said);
	CHECK(said.find("ran its own code for 40.0 ms in one event-loop iteration of 40.0 ms") !=
	      std::string::npos);
	// Three samples give an estimate, which is marked as one.
	CHECK(said.find("the server ran KEYS for about 40.0 ms of that time (3 of 3 samples: keysCommand)") !=
	      std::string::npos);
}

TEST_CASE("a second long iteration that ran something else is reported")
{
	// 60 ms of one command, then 20 ms or 10 ms of another.
	const auto said = [](uint64_t second_ms, const char *function) {
		RunBuilder b;
		const uint64_t end_ns = (60 + second_ms) * ms;
		b.Thread(kServer, 0, end_ns);
		b.Tally(FT_OWN_CODE, 0, end_ns, end_ns);
		b.Frame(FT_ITERATION, 0, 60 * ms).arg[0] = 1;
		b.Frame(FT_ITERATION, 60 * ms, end_ns).arg[0] = 1;
		b.CpuSamples(0, 60, b.StackIn("keysCommand"));
		b.CpuSamples(60 * ms, second_ms, b.StackIn(function));
		b.Request(0, 0, end_ns);
		return Said(&b);
	};
	const std::string longest = "the server ran its own code for 60.0 ms in one event-loop iteration of "
				    "60.0 ms with 1 ready connection; the server ran KEYS for 60.0 ms of "
				    "that time (60 of 60 samples: keysCommand)";
	CHECK(said(20, "sortCommand") ==
	      longest + "; another iteration took 20.0 ms; the server ran SORT for 20.0 ms of that time (20 "
			"of 20 samples: sortCommand)");
	CHECK(said(20, "keysCommand") == longest);
	CHECK(said(10, "sortCommand") == longest);
}

TEST_CASE("a sample counts for the time that it represents")
{
	RunBuilder b;
	OneRequest(&b, 0);
	b.Frame(FT_ITERATION, 0, 100 * ms).arg[0] = 1;
	uint32_t keys = b.StackIn("keysCommand"), sort = b.StackIn("sortCommand");
	const auto samples = [&](uint64_t from_ns, uint64_t every_ns, uint64_t count, uint32_t stack) {
		for (uint64_t i = 0; i < count; i++) {
			b.CpuSample(from_ns + i * every_ns, stack);
			b.run.cpu_samples[b.run.cpu_samples.size() - 1].period =
			    static_cast<uint8_t>(every_ns * 16 / ms);
		}
	};
	samples(0, 4 * ms, 20, keys);
	samples(80 * ms, 1 * ms, 20, sort);
	std::string said = Said(&b);
	INFO(said);
	CHECK(said.find("the server ran KEYS for 80.0 ms of that time (20 of 40 samples: keysCommand), and "
			"ran SORT for "
			"20.0 ms of that time (20 of 40 samples: sortCommand)") != std::string::npos);
}

// An iteration of 100 ms in a recording of 1 s, with what the CPU counted per ms in it and outside.
std::string SaidWithCounters(const ft_counters &in_it, const ft_counters &usual)
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000 * ms);
	b.Tally(FT_OWN_CODE, 0, 1000 * ms, 1000 * ms);
	b.Frame(FT_ITERATION, 500 * ms, 600 * ms).arg[0] = 1;
	b.CpuSamples(500 * ms, 100, b.StackIn("keysCommand"));
	b.Request(500 * ms, 500 * ms, 600 * ms);
	for (uint64_t at = 1; at <= 1000; at++) {
		ft_counters c = at > 500 && at <= 600 ? in_it : usual;
		c.t_ns = kBase + at * ms;
		c.duration_ns = ms;
		c.tid = kServer;
		b.run.counters.push_back(c);
	}
	for (const ft_counters &c : b.run.counters)
		b.run.threads[0].counted.Add(c);
	return Said(&b);
}

TEST_CASE("code that executed fewer instructions per cycle than usual is said to be slow")
{
	const ft_counters usual = {0, 0, 0, 3'000'000, 3'900'000, 3'900, 0, FT_COUNTED_MISSES};
	ft_counters slow = usual;
	CHECK(SaidWithCounters(slow, usual).find("per cycle") == std::string::npos);
	slow.instructions = 1'800'000;
	slow.cache_misses = 36'000;
	CHECK(SaidWithCounters(slow, usual)
		  .find("; it executed 0.6 instructions per cycle, usually 1.3, with 20 cache misses per "
			"1,000 instructions, usually 1 (it waited for memory, or a neighbour used the "
			"cache)") != std::string::npos);
	slow.cache_misses = 1'800;
	CHECK(
	    SaidWithCounters(slow, usual).find("usually 1.3 (a neighbour on the same core, or other code)") !=
	    std::string::npos);
	slow = usual;
	slow.cycles = 1'500'000;
	slow.instructions = 1'950'000;
	const std::string said = SaidWithCounters(slow, usual);
	CHECK(said.find("; its CPU ran at 1.5 GHz, usually 3") != std::string::npos);
	CHECK(said.find("per cycle") == std::string::npos);
}

TEST_CASE("an iteration known only from samples has a minimum length")
{
	RunBuilder b;
	OneRequest(&b, 0);
	b.Frame(FT_ITERATION, 0, 96 * ms);
	ft_span &iteration = b.run.spans[b.run.spans.size() - 1];
	iteration.arg[1] = Packed(0, 5001, 0, 0);
	iteration.flags = FT_SPAN_SAMPLED;
	CallSamples(&b, 0, 90, b.StackIn("writeToClient"), kWrite);
	std::string said = Said(&b);
	INFO(said);
	CHECK(said.find("in one event-loop iteration of at least 96.0 ms") != std::string::npos);
	CHECK(said.find("was sending replies (in at least 5,001 writes)") != std::string::npos);
}

TEST_CASE("without samples only the calls are reported")
{
	RunBuilder b;
	OneRequest(&b, 0);
	b.Frame(FT_ITERATION, 0, 100 * ms).arg[0] = 1;
	b.run.spans[b.run.spans.size() - 1].arg[1] = Packed(1, 5001, 0, 0);
	CHECK(Said(&b).find("(a slow command or a long batch; 5,001 writes)") != std::string::npos);
}
