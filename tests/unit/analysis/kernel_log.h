// SPDX-License-Identifier: MIT
// Writes a recording with requests that the server's kernel saw, as the recorder does.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "analysis/explain.h"
#include "recording/recording.h"
#include "tests/support/catch.h"
#include "tests/support/explained.h"

namespace forktail::test
{

constexpr uint64_t kLogStart = 5'000'000'000, kLogMs = 1'000'000;

// `more`: further members of the manifest.
inline std::string KernelManifest(const std::string &more = "")
{
	return R"({"program":"forktail-record","version":"1.0.0","host":"h","kernel":"6.18","boot_id":"b1",)"
	       R"("min_span_ns":20000,"cpus":2,"start_ns":5000000000,)"
	       R"("targets":[{"pid":100,"comm":"redis-server","cmdline":"redis-server *:6379"}],)"
	       R"("requests":{"source":"kernel","sample":16},"ops":["unknown","GET","SET","other"],)"
	       R"("servers":["127.0.0.1:6379","unix:/r"],"server_info":[{"pid":100},{"pid":100}])" +
	       more + "}";
}

struct KernelLog {
	ft_writer *w = nullptr;
	ft_requests requests = {};

	explicit KernelLog(const std::string &path, const std::string &manifest = KernelManifest())
	{
		REQUIRE(ft_writer_open(&w, path.c_str(), manifest.c_str()) == 0);
		REQUIRE(ft_requests_init(&requests) == 0);
	}
	KernelLog(const KernelLog &) = delete;
	KernelLog &operator=(const KernelLog &) = delete;
	~KernelLog() { ft_requests_free(&requests); }

	uint32_t request_bytes = 33, answer_bytes = 44; // of the requests that follow

	template <typename T> void Record(ft_block_kind kind, const T &record)
	{
		REQUIRE(ft_writer_record(w, kind, &record) == 0);
	}
	// A server's thread that runs its own code in [0, 1000 ms) except where it is idle.
	void Thread(uint64_t idle_from_ms = 0, uint64_t idle_to_ms = 0)
	{
		ft_thread t = {};
		t.start_ns = kLogStart;
		t.end_ns = kLogStart + 1000 * kLogMs;
		t.tid = t.tgid = 100;
		t.flags = FT_THREAD_MAIN;
		strcpy(t.comm.raw, "redis-server");
		Record(FT_BLOCK_THREAD, t);
		ft_tally y = {};
		y.start_ns = kLogStart;
		y.end_ns = kLogStart + 1000 * kLogMs;
		y.total_ns = (1000 - (idle_to_ms - idle_from_ms)) * kLogMs;
		y.tid = 100;
		Record(FT_BLOCK_TALLY, y);
		if (idle_from_ms == idle_to_ms)
			return;
		ft_span s = {};
		s.start_ns = kLogStart + idle_from_ms * kLogMs;
		s.duration_ns = s.blocked_ns = (idle_to_ms - idle_from_ms) * kLogMs;
		s.tid = 100;
		s.owner = FT_IDLE;
		s.off_cpu = 1;
		s.syscall = -1;
		Record(FT_BLOCK_SPAN, s);
	}
	struct Named {
		uint32_t pid = 0;
		const char *comm = "", *name = "", *library = "";
	};
	void Tcp(uint32_t id, uint8_t last_byte, uint32_t flags = 0) { Tcp(id, last_byte, flags, {}); }
	void Tcp(uint32_t id, uint8_t last_byte, uint32_t flags, const Named &named)
	{
		ft_connection c = {};
		c.opened_ns = kLogStart;
		c.id = id;
		c.local_port = 40'000 + id;
		const uint8_t address[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last_byte};
		memcpy(c.client_address, address, sizeof address);
		c.client_flags = flags;
		c.client_pid = named.pid;
		strncpy(c.client_comm.raw, named.comm, sizeof c.client_comm.raw - 1);
		strncpy(c.client_name, named.name, sizeof c.client_name - 1);
		strncpy(c.client_library, named.library, sizeof c.client_library - 1);
		Record(FT_BLOCK_CONNECTION, c);
	}
	void Unix(uint32_t id, uint32_t pid, const char *comm)
	{
		ft_connection c = {};
		c.opened_ns = kLogStart;
		c.id = id;
		c.inode = 900 + id;
		c.server = 1;
		c.client_pid = pid;
		strncpy(c.client_comm.raw, comm, sizeof c.client_comm.raw - 1);
		Record(FT_BLOCK_CONNECTION, c);
	}
	// Times in microseconds after kLogStart.
	void Request(uint32_t connection, uint64_t arrived_us, uint64_t read_us, uint64_t left_us,
		     uint8_t op = 1, uint8_t behind = 0)
	{
		ft_request q = {};
		q.intended_ns = q.start_ns = kLogStart + arrived_us * 1000;
		q.end_ns = kLogStart + left_us * 1000;
		q.connection = connection;
		q.op = op;
		q.behind = behind;
		const ft_request_seen seen = {read_us ? kLogStart + read_us * 1000 : 0, q.end_ns + 3000,
					      request_bytes, answer_bytes};
		if (ft_requests_full(&requests))
			REQUIRE(ft_requests_flush(&requests, w) == 0);
		ft_requests_append_seen(&requests, &q, &seen);
	}
	void Close(const char *summary = "{\"end_ns\":6000000000,\"reason\":\"duration\"}")
	{
		REQUIRE(ft_requests_flush(&requests, w) == 0);
		REQUIRE(ft_writer_close(w, summary) == 0);
	}
};

// Explains a run; requests of a millisecond are slow.
inline void ExplainKernel(const std::string &path, analysis::Explained *e)
{
	analysis::ExplainOptions options;
	options.slow.ns = kLogMs;
	std::string error;
	int status = 0;
	const bool explained = analysis::ExplainRun(path, options, e, &error, &status);
	INFO(error);
	REQUIRE(explained);
}

} // namespace forktail::test
