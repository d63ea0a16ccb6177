// SPDX-License-Identifier: MIT
// A ring as a recorder would leave it, of one redis-server with a known activity at every nanosecond: each
// second it sleeps for 900 ms and then works for 100.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "recording/recording.h"
#include "tests/support/catch.h"

namespace forktail::test
{

constexpr uint64_t kRingSecond = 1'000'000'000, kRingMs = 1'000'000;

struct RingWriter {
	std::string dir;
	std::string boot = "b1";
	uint64_t began_ns = 100 * kRingSecond; // the recorder, and its account of the thread
	ft_writer *w = nullptr;

	static std::string Name(uint64_t number)
	{
		char name[40];
		snprintf(name, sizeof name, "segment-%010llu.forktail",
			 static_cast<unsigned long long>(number));
		return name;
	}
	std::string path(uint64_t number) const { return dir + "/" + Name(number); }

	template <typename T> void Record(ft_block_kind kind, const T &record) const
	{
		REQUIRE(ft_writer_record(w, kind, &record) == 0);
	}
	void Json(ft_block_kind kind, const std::string &text) const
	{
		REQUIRE(ft_writer_json(w, kind, text.c_str()) == 0);
	}
	static ft_span Sleep(uint64_t start_ns, uint64_t duration_ns)
	{
		ft_span s = {};
		s.start_ns = start_ns;
		s.duration_ns = s.blocked_ns = duration_ns;
		s.tid = 100;
		s.owner = FT_IDLE;
		s.off_cpu = 1;
		s.syscall = 232;
		return s;
	}
	// A segment's repeated records from before it, with new numbers in each segment.
	void Begin(uint64_t number, uint64_t start_ns)
	{
		const std::string manifest =
		    R"({"program":"forktail-record","version":"0.1.0","host":"h","kernel":"6.18","boot_id":")" +
		    boot + R"(","min_span_ns":20000,"cpus":2,"start_ns":)" + std::to_string(start_ns) +
		    R"(,"ring_start_ns":)" + std::to_string(began_ns) + R"(,"segment":)" +
		    std::to_string(number) +
		    R"(,"programs":["p","q"],"targets":[{"pid":100,"comm":"redis-server",)" +
		    R"("cmdline":"redis-server *:6379"}],"missing":[{"what":"compaction","why":"no such tracepoint"}]})";
		REQUIRE(ft_writer_open(&w, path(number).c_str(), manifest.c_str()) == 0);
		const uint32_t id = static_cast<uint32_t>(number % 7 + 1);
		ft_thread t = {};
		t.start_ns = began_ns;
		t.tid = t.tgid = 100;
		t.flags = FT_THREAD_MAIN;
		strcpy(t.comm.raw, "redis-server");
		Record(FT_BLOCK_THREAD, t);
		Record(FT_BLOCK_CLOCK, ft_clock{start_ns, 1'700'000'000 * kRingSecond + start_ns, 0, 0});
		Json(FT_BLOCK_SERIES, R"({"id":)" + std::to_string(id) +
					  R"(,"name":"target.rss","unit":"bytes","labels":{"pid":"100"}})");
		Json(FT_BLOCK_DETAIL,
		     R"({"id":)" + std::to_string(id) + R"(,"name":"nine","stack":["a","b"]})");
		Record(FT_BLOCK_SAMPLE, ft_sample{start_ns, 42, id, 0});
		Record(FT_BLOCK_LOOP, ft_loop{start_ns, 100, 100, 5, 0});
		Record(FT_BLOCK_SOCKET, ft_socket{0, start_ns, 77, 0, 100, 5, 6379, 4000, 0, 0});
		Json(
		    FT_BLOCK_NOTE,
		    R"({"t_ns":)" + std::to_string(start_ns) +
			R"(,"kind":"cpu-quota","pid":100,"cgroup":"/a","quota_us":50000,"period_us":100000})");
		Cost(start_ns, 0);
	}
	// Since the segment began.
	void Cost(uint64_t t_ns, uint64_t bpf_ns) const
	{
		Json(FT_BLOCK_COST, R"({"t_ns":)" + std::to_string(t_ns) + R"(,"bpf_ns":)" +
					std::to_string(bpf_ns) +
					R"(,"recorder_cpu_ns":5,"recorder_rss_bytes":9,"programs":[]})");
	}
	// The second that ends at this time: a sleep, and a tally of the work.
	void Second(uint64_t number, uint64_t end_ns) const
	{
		ft_span s = Sleep(end_ns - kRingSecond, 900 * kRingMs);
		s.detail = static_cast<uint32_t>(number % 7 + 1);
		Record(FT_BLOCK_SPAN, s);
		ft_tally t = {};
		t.start_ns = end_ns - 100 * kRingMs;
		t.end_ns = end_ns;
		t.total_ns = 100 * kRingMs;
		t.tid = 100;
		Record(FT_BLOCK_TALLY, t);
		Cost(end_ns, kRingMs);
	}
	void End(uint64_t end_ns)
	{
		const std::string summary =
		    "{\"reason\":\"segment\",\"end_ns\":" + std::to_string(end_ns) + "}";
		REQUIRE(ft_writer_close(w, summary.c_str()) == 0);
		w = nullptr;
	}
	// Sealed segments of one second each, from one number up to another. The recorder's first one is
	// number 0.
	void Sealed(uint64_t first, uint64_t last)
	{
		for (uint64_t i = first; i <= last; i++) {
			Begin(i, began_ns + i * kRingSecond);
			Second(i, began_ns + (i + 1) * kRingSecond);
			End(began_ns + (i + 1) * kRingSecond);
		}
	}
};

} // namespace forktail::test
