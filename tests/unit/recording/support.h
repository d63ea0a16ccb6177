// SPDX-License-Identifier: MIT
// Shared by the recording's tests: a recording with every kind of block, written through the library, and its
// blocks as a list. The list of extents comes from a separate walk over the bytes, so that the tested reader
// does not check itself.
#pragma once
#include <csignal>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include <xxhash.h>

#include "recording/recording.h"
#include "tests/support/tempdir.h"

struct Block {
	unsigned kind;
	uint32_t record_size, count;
	uint64_t offset;
	std::string payload;
	bool operator==(const Block &) const = default;
};

struct Contents {
	int rc = 0;	   // the result of opening
	std::string error; // and its message
	std::vector<Block> blocks;
	ft_damage damage = {};
};

inline Contents read_recording(const std::string &path)
{
	Contents c;
	ft_reader *r = nullptr;
	char error[512] = "";
	c.rc = ft_reader_open(&r, path.c_str(), error, sizeof(error));
	c.error = error;
	if (c.rc)
		return c;
	ft_block b;
	while (ft_reader_next(r, &b) == 1)
		c.blocks.push_back({b.kind, b.record_size, b.count, b.offset,
				    std::string(static_cast<const char *>(b.payload), b.bytes)});
	ft_reader_damage(r, &c.damage);
	ft_reader_close(r);
	return c;
}

// All records of a kind, in their order.
template <typename R> std::vector<R> all_records(const Contents &c, unsigned kind)
{
	std::vector<R> all;
	for (const Block &b : c.blocks)
		for (uint32_t i = 0; b.kind == kind && i < b.count; i++) {
			R record;
			std::memcpy(&record, &b.payload[i * sizeof(R)], sizeof(R));
			all.push_back(record);
		}
	return all;
}

struct Extent {
	unsigned kind;
	uint64_t begin, end;
};

// The blocks of an undamaged file, index and trailer included.
inline std::vector<Extent> walk(const std::string &bytes)
{
	std::vector<Extent> all;
	for (size_t at = 0; at < bytes.size();) {
		ft_block_header h;
		if (bytes.size() - at < sizeof(h))
			throw std::runtime_error("walk: half a header");
		std::memcpy(&h, &bytes[at], sizeof(h));
		const size_t end = at + sizeof(h) + h.stored_bytes;
		if (h.magic != FT_BLOCK_MAGIC || end > bytes.size())
			throw std::runtime_error("walk: no block where one should be");
		all.push_back({h.kind, at, end});
		at = end;
	}
	return all;
}

inline bool shown(const Extent &e)
{
	return e.kind != FT_BLOCK_INDEX && e.kind != FT_BLOCK_TRAILER;
}

// A block made by hand, with hashes that match whatever false values its header has.
inline std::string forged(ft_block_header h, const std::string &stored)
{
	h.magic = FT_BLOCK_MAGIC;
	h.payload_xxh32 = XXH32(stored.data(), stored.size(), 0);
	h.header_xxh32 = XXH32(&h, offsetof(ft_block_header, header_xxh32), 0);
	return std::string(reinterpret_cast<const char *>(&h), sizeof(h)) + stored;
}

inline ft_block_header header_of(unsigned kind, uint32_t record_size, uint32_t count, uint32_t bytes)
{
	ft_block_header h = {};
	h.kind = static_cast<uint16_t>(kind);
	h.version = FT_FORMAT_VERSION;
	h.record_size = record_size;
	h.count = count;
	h.raw_bytes = h.stored_bytes = bytes;
	return h;
}

inline std::string forged_json(unsigned kind, uint32_t sequence, const std::string &json)
{
	ft_block_header h = header_of(kind, 0, 1, static_cast<uint32_t>(json.size()));
	h.sequence = sequence;
	return forged(h, json);
}

inline ft_span span_number(uint32_t i)
{
	ft_span s = {};
	s.start_ns = 1'000'000'000ull + i * 50'000ull;
	s.duration_ns = 20'000 + i;
	s.on_cpu_ns = 20'000;
	s.blocked_ns = i;
	s.arg[0] = i * 4096ull;
	s.tid = 4711;
	s.owner = FT_COW_COPY;
	s.syscall = -1;
	s.queue_cpu = static_cast<uint16_t>(1 + i % 8);
	return s;
}

// A process that opens a recording, prepares its writer, writes spans continuously and flushes after every
// 50. After `wanted` reports of that it is killed. Returns the number of reports.
template <typename Prepare, typename HandOn>
size_t kill_writer(const std::string &path, size_t wanted, Prepare prepare, HandOn hand_on)
{
	int pipes[2];
	if (pipe(pipes))
		throw std::runtime_error("no pipe");
	const pid_t child = fork();
	if (child < 0)
		throw std::runtime_error("no process");
	if (child == 0) {
		ft_writer *w = nullptr;
		ft_writer_open(&w, path.c_str(), "{}");
		prepare(w);
		for (uint32_t i = 0;; i++) {
			const ft_span s = span_number(i);
			ft_writer_record(w, FT_BLOCK_SPAN, &s);
			if (i % 50 != 49)
				continue;
			hand_on(w);
			if (write(pipes[1], "", 1) != 1)
				_exit(1);
		}
	}
	close(pipes[1]);
	char report;
	size_t times = 0;
	while (times < wanted && read(pipes[0], &report, 1) == 1)
		times++;
	kill(child, SIGKILL);
	int status;
	waitpid(child, &status, 0);
	if (times < wanted || !WIFSIGNALED(status))
		throw std::runtime_error("the writer ended by itself");
	while (read(pipes[0], &report, 1) == 1) // before it died
		times++;
	close(pipes[0]);
	return times;
}

// A load generator's connection.
inline ft_connection client_connection(uint64_t opened_ns, uint64_t closed_ns, uint32_t id, uint32_t thread,
				       uint32_t local_port, uint32_t server, uint64_t inode)
{
	ft_connection c = {};
	c.opened_ns = opened_ns;
	c.closed_ns = closed_ns;
	c.id = id;
	c.thread = thread;
	c.local_port = local_port;
	c.server = server;
	c.inode = inode;
	return c;
}

// Every kind of block in a file of a few kilobytes, some of it compressed.
inline std::string small_recording(const std::string &path)
{
	ft_writer *w = nullptr;
	const auto must = [](int rc) {
		if (rc)
			throw std::runtime_error("small_recording: " + std::to_string(rc));
	};
	must(ft_writer_open(&w, path.c_str(), R"({"format":"forktail","kind":"test"})"));
	ft_thread thread = {.start_ns = 1,
			    .end_ns = 0,
			    .tid = 7,
			    .tgid = 7,
			    .parent_tgid = 0,
			    .flags = 1,
			    .comm = {"redis-server"},
			    .role = {"redis-server"}};
	must(ft_writer_record(w, FT_BLOCK_THREAD, &thread));
	for (uint32_t i = 0; i < 40; i++) {
		const ft_span s = span_number(i);
		must(ft_writer_record(w, FT_BLOCK_SPAN, &s));
	}
	const ft_tally tally = {1, 2, 3, 4, 5, 6, 7, 0};
	must(ft_writer_record(w, FT_BLOCK_TALLY, &tally));
	must(ft_writer_json(w, FT_BLOCK_DETAIL, R"({"id":1,"name":"kworker/1:2"})"));
	const ft_io io = {1, 2, 3, 4, 5, 6, 1, 0, 0, "kworker"};
	must(ft_writer_record(w, FT_BLOCK_IO, &io));
	const ft_writes writes = {1, 2, 3, 4, 5, "dd"};
	must(ft_writer_record(w, FT_BLOCK_WRITES, &writes));
	const ft_cpu_slice slice = {1, 2, 3, 4, 0, "ksoftirqd/4"};
	must(ft_writer_record(w, FT_BLOCK_CPU_SLICE, &slice));
	must(ft_writer_json(w, FT_BLOCK_SERIES, R"({"id":1,"name":"host.cpu.user","unit":"percent"})"));
	const ft_sample sample = {1, 2.5, 3, 0};
	must(ft_writer_record(w, FT_BLOCK_SAMPLE, &sample));
	const ft_drop drop = {1, 2, 3, FT_DROP_RING, FT_DROP_TALLY};
	must(ft_writer_record(w, FT_BLOCK_DROP, &drop));
	must(ft_writer_json(w, FT_BLOCK_STACK, R"({"id":1,"program":"p","frames":[["f","p"]],"kernel":[]})"));
	const ft_cpu_sample cpu_sample = {1, 2, 1, 3, 4, 5, 6, 1, 0};
	must(ft_writer_record(w, FT_BLOCK_CPU_SAMPLE, &cpu_sample));
	const ft_counters counters = {1, 2, 3, 4, 5, 6, 7, FT_COUNTED_MISSES};
	must(ft_writer_record(w, FT_BLOCK_COUNTERS, &counters));
	const ft_clock clock = {1, 2, 3, 4};
	must(ft_writer_record(w, FT_BLOCK_CLOCK, &clock));
	const ft_connection connection = client_connection(1, 0, 3, 4, 5, 6, 7);
	must(ft_writer_record(w, FT_BLOCK_CONNECTION, &connection));
	must(ft_writer_flush(w));
	ft_requests requests;
	must(ft_requests_init(&requests));
	for (uint32_t i = 0; i < 20; i++) {
		const ft_request q = {
		    i * 1000ull, i * 1000ull + 7, i * 1100ull + 90'000, i % 3, 1, FT_STATUS_OK, 0, 0};
		ft_requests_append(&requests, &q);
	}
	must(ft_requests_flush(&requests, w));
	ft_requests_free(&requests);
	must(ft_writer_json(w, FT_BLOCK_COST, R"({"bpf_ns":12})"));
	must(ft_writer_json(w, FT_BLOCK_NOTE, R"({"t_ns":5,"kind":"target-found"})"));
	must(ft_writer_json(w, FT_BLOCK_HISTOGRAM, R"({"count":0})"));
	must(ft_writer_close(w, R"({"ended":"signal"})"));
	return forktail::test::read_file(path);
}
