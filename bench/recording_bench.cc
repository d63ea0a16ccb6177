// SPDX-License-Identifier: MIT
// Measures the cost of recording: the load generator appends to the request log between one request's answer
// and the next request, and the analysis decodes tens of millions of records.
// docs/results/speed.md has the figures.
//
//   bench_recording [DIRECTORY]    where it writes, reads and removes its files (default: /tmp)
//
// Each figure is the CPU time of the best of nine rounds, so that other load on the machine adds as little as
// possible.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <vector>
#include <zstd.h>

#include "recording/recording.h"

namespace
{

constexpr size_t REQUESTS = 10'000'000;
constexpr int ROUNDS = 9;

uint64_t cpu_ns()
{
	timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

double best_ns(
    const std::function<void()> &work, const std::function<void()> &after = [] {})
{
	std::array<double, ROUNDS> times;
	for (double &t : times) {
		const uint64_t begin = cpu_ns();
		work();
		t = static_cast<double>(cpu_ns() - begin);
		after();
	}
	std::sort(times.begin(), times.end());
	return times[0];
}

void check(int rc, const char *what)
{
	if (rc < 0) {
		std::fprintf(stderr, "bench_recording: %s failed with %d\n", what, rc);
		std::exit(3);
	}
}

// Service times of a Redis under load: most around 90 us, log-normal, and a stall of 20 ms every 2 s.
struct Latency {
	std::mt19937_64 random{1};
	std::lognormal_distribution<double> usual{std::log(90'000.0), 0.35};
	uint64_t end_of(uint64_t start)
	{
		const uint64_t end = start + static_cast<uint64_t>(usual(random));
		const uint64_t into_stall = start % 2'000'000'000;
		return into_stall < 20'000'000 ? end + 20'000'000 - into_stall : end;
	}
};

void finish(ft_request &q, std::mt19937_64 &random)
{
	q.op = random() % 10 == 0;
	q.status = random() % 20 == 0 ? FT_STATUS_MISS : FT_STATUS_OK;
}

// Poisson arrivals at 100,000/s on 50 connections, sent up to 30 us late by a busy loop.
std::vector<ft_request> open_loop()
{
	Latency latency;
	std::exponential_distribution<double> gap{1e-4};
	std::vector<ft_request> log(REQUESTS);
	double due = 3e12;
	for (ft_request &q : log) {
		q = {};
		q.intended_ns = static_cast<uint64_t>(due += gap(latency.random));
		q.start_ns = q.intended_ns + latency.random() % 30'000;
		q.end_ns = latency.end_of(q.start_ns);
		q.connection = static_cast<uint32_t>(latency.random() % 50);
		finish(q, latency.random);
	}
	std::sort(log.begin(), log.end(),
		  [](const ft_request &a, const ft_request &b) { return a.end_ns < b.end_ns; });
	return log;
}

// 50 connections. Each sends its next request 2 us after its last answer.
std::vector<ft_request> closed_loop()
{
	Latency latency;
	std::vector<ft_request> log;
	log.reserve(REQUESTS);
	const auto later = [](const ft_request &a, const ft_request &b) { return a.end_ns > b.end_ns; };
	std::priority_queue<ft_request, std::vector<ft_request>, decltype(later)> open(later);
	for (uint32_t i = 0; i < 50; i++) {
		const uint64_t start = 3'000'000'000'000 + i * 100;
		open.push({start, start, latency.end_of(start), i, 0, 0, 0, 0});
	}
	while (log.size() < REQUESTS) {
		ft_request q = open.top();
		open.pop();
		finish(q, latency.random);
		log.push_back(q);
		q.intended_ns = q.start_ns = q.end_ns + 2'000;
		q.end_ns = latency.end_of(q.start_ns);
		open.push(q);
	}
	return log;
}

uint64_t write_log(const std::string &path, const std::vector<ft_request> &log)
{
	ft_writer *w = nullptr;
	ft_requests r;
	check(ft_writer_open(&w, path.c_str(), "{}"), "ft_writer_open");
	check(ft_requests_init(&r), "ft_requests_init");
	for (const ft_request &q : log) {
		if (ft_requests_full(&r))
			ft_requests_flush(&r, w);
		ft_requests_append(&r, &q);
	}
	ft_requests_flush(&r, w);
	ft_requests_free(&r);
	const uint64_t bytes = ft_writer_bytes(w);
	check(ft_writer_close(w, nullptr), "ft_writer_close");
	return bytes;
}

ft_reader *open_reader(const std::string &path)
{
	char error[512];
	ft_reader *r = nullptr;
	if (ft_reader_open(&r, path.c_str(), error, sizeof(error)) < 0) {
		std::fprintf(stderr, "bench_recording: %s\n", error);
		std::exit(3);
	}
	return r;
}

struct Decoded {
	std::vector<uint64_t> intended, start, end;
	std::vector<uint32_t> connection;
	std::vector<uint8_t> op, status;
};

size_t read_log(const std::string &path, Decoded &d)
{
	ft_reader *r = open_reader(path);
	ft_block block;
	size_t n = 0;
	while (ft_reader_next(r, &block) == 1) {
		if (block.kind != FT_BLOCK_REQUEST)
			continue;
		const ft_request_columns out = {&d.intended[n], &d.start[n],  &d.end[n], &d.connection[n],
						&d.op[n],	&d.status[n], nullptr,	 nullptr,
						nullptr,	nullptr,      nullptr,	 nullptr};
		const int got = ft_requests_decode(block.payload, block.bytes, block.count, &out);
		check(got, "ft_requests_decode");
		n += static_cast<size_t>(got);
	}
	ft_reader_close(r);
	return n;
}

// How long it takes to find all blocks.
double places_ns(const std::string &path, bool scan)
{
	return best_ns([&] {
		ft_reader *r = open_reader(path);
		ft_places p;
		check(ft_reader_places(r, scan, &p, nullptr, nullptr), "ft_reader_places");
		check(p.indexed != scan ? 0 : -1, "reading the index");
		ft_places_free(&p);
		ft_reader_close(r);
	});
}

// How much zstd would compress the columns: the reason why they are not compressed.
void compressed(const std::string &path)
{
	ft_reader *r = open_reader(path);
	ft_block block;
	double raw = 0, packed = 0, ns = 0, back_ns = 0, requests = 0;
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_DCtx *d = ZSTD_createDCtx();
	std::vector<char> to(ZSTD_compressBound(FT_BLOCK_LIMIT)), back(FT_BLOCK_LIMIT);
	while (ft_reader_next(r, &block) == 1) {
		if (block.kind != FT_BLOCK_REQUEST)
			continue;
		const uint64_t begin = cpu_ns();
		const size_t n = ZSTD_compressCCtx(c, to.data(), to.size(), block.payload, block.bytes, 1);
		const uint64_t middle = cpu_ns();
		ZSTD_decompressDCtx(d, back.data(), back.size(), to.data(), n);
		back_ns += static_cast<double>(cpu_ns() - middle);
		ns += static_cast<double>(middle - begin);
		raw += static_cast<double>(block.bytes);
		packed += static_cast<double>(n);
		requests += block.count;
	}
	ZSTD_freeCCtx(c);
	ZSTD_freeDCtx(d);
	ft_reader_close(r);
	std::printf(
	    "  zstd -1 on top         %6.2f bytes per request, %5.1f ns to pack, %4.1f ns to unpack\n",
	    packed / requests, ns / requests, back_ns / requests);
}

void requests(const std::string &path, const char *name, const std::vector<ft_request> &log)
{
	const double count = static_cast<double>(log.size());
	ft_requests r;
	check(ft_requests_init(&r), "ft_requests_init");
	const size_t one_block = FT_REQUEST_BLOCK;
	std::printf("%s, %zu requests\n", name, log.size());

	// The hot path alone: append. The block is emptied by restarting it, and the requests are in the CPU
	// cache, as those of a load generator are.
	const ft_requests empty = r;
	const double append_ns = best_ns([&] {
		for (size_t i = 0; i < log.size(); i++) {
			if (ft_requests_full(&r))
				r = empty;
			ft_requests_append(&r, &log[i % 1024]);
		}
	});
	r = empty;
	std::printf("  append                 %6.1f ns per request\n", append_ns / count);
	ft_requests_free(&r);

	uint64_t bytes = 0;
	const double write_ns = best_ns([&] { bytes = write_log(path, log); });
	std::printf(
	    "  append, flush, write   %6.1f ns per request, %.0f us per block of %zu beyond appending\n",
	    write_ns / count, (write_ns - append_ns) / 1e3 / (count / static_cast<double>(one_block)),
	    one_block);
	std::printf("  size                   %6.2f bytes per request, %.0f MB\n",
		    static_cast<double>(bytes) / count, static_cast<double>(bytes) / 1e6);

	Decoded d;
	const size_t room = log.size() + FT_REQUEST_BLOCK;
	d.intended.resize(room), d.start.resize(room), d.end.resize(room), d.connection.resize(room);
	d.op.resize(room), d.status.resize(room);
	size_t got = 0;
	const double read_ns = best_ns([&] { got = read_log(path, d); });
	for (size_t i = 0; i < log.size(); i++)
		if (got != log.size() || d.end[i] != log[i].end_ns || d.start[i] != log[i].start_ns ||
		    d.intended[i] != log[i].intended_ns)
			check(-1, "comparing what was read with what was written");
	std::printf("  read and decode        %6.1f ns per request, %.3f s, %.0f MB/s of file\n",
		    read_ns / count, read_ns / 1e9, static_cast<double>(bytes) / read_ns * 1e3);
	std::printf("  finding the blocks     %6.2f ms by the index, %.1f ns per request by a scan\n",
		    places_ns(path, false) / 1e6, places_ns(path, true) / count);
	compressed(path);
}

// Spans as a busy Redis produces them: page faults and softirqs between 20 and 200 us, several in a row from
// one owner.
void spans(const std::string &path)
{
	constexpr size_t SPANS = 2'000'000;
	std::mt19937_64 random(2);
	std::vector<ft_span> all(SPANS);
	uint64_t now = 3'000'000'000'000;
	for (ft_span &s : all) {
		s = {};
		s.start_ns = now += random() % 300'000;
		s.duration_ns = 20'000 + random() % 180'000;
		s.on_cpu_ns = s.duration_ns;
		s.owner = random() % 4 ? FT_COW_COPY : FT_SOFTIRQ + 3;
		s.arg[0] = 0x7f3000000000 + (random() % 100'000) * 4096;
		s.tid = 4711;
		s.cpu = 1;
		s.syscall = -1;
	}
	uint64_t bytes = 0;
	const double raw = static_cast<double>(SPANS * sizeof(ft_span));
	const double write_ns = best_ns([&] {
		ft_writer *w = nullptr;
		check(ft_writer_open(&w, path.c_str(), "{}"), "ft_writer_open");
		for (const ft_span &s : all)
			ft_writer_record(w, FT_BLOCK_SPAN, &s);
		ft_writer_flush(w);
		bytes = ft_writer_bytes(w);
		check(ft_writer_close(w, nullptr), "ft_writer_close");
	});
	size_t got = 0;
	const double read_ns = best_ns([&] {
		ft_reader *r = open_reader(path);
		ft_block block;
		ft_span span;
		got = 0;
		while (ft_reader_next(r, &block) == 1)
			for (uint32_t i = 0; block.kind == FT_BLOCK_SPAN && i < block.count; i++) {
				ft_block_record(&block, i, &span, sizeof(span));
				got += span.tid == 4711;
			}
		ft_reader_close(r);
	});
	check(got == SPANS ? 0 : -1, "reading the spans back");
	std::printf("spans, %zu of %zu bytes\n", SPANS, sizeof(ft_span));
	std::printf("  record and write       %6.1f ns per span, %.2f bytes per span\n", write_ns / SPANS,
		    static_cast<double>(bytes) / SPANS);
	std::printf("  read                   %6.1f ns per span, %.0f MB/s of records, %.0f MB/s of file\n",
		    read_ns / SPANS, raw / read_ns * 1e3, static_cast<double>(bytes) / read_ns * 1e3);
}

void histogram(const std::vector<ft_request> &log)
{
	static ft_histogram h;
	const double ns = best_ns([&] {
		ft_histogram_reset(&h);
		for (const ft_request &q : log)
			ft_histogram_add(&h, q.end_ns - q.intended_ns);
	});
	std::printf("histogram\n  add                    %6.1f ns per value\n",
		    ns / static_cast<double>(log.size()));
}

} // namespace

int main(int argc, char **argv)
{
	if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
		std::fprintf(stderr, "usage: bench_recording [DIRECTORY]\n");
		return 2;
	}
	const std::string path = std::string(argc == 2 ? argv[1] : "/tmp") + "/bench_recording.forktail";
	{
		const std::vector<ft_request> log = open_loop();
		requests(path, "open loop, Poisson 100,000/s, 50 connections", log);
		histogram(log);
	}
	requests(path, "closed loop, 50 connections", closed_loop());
	spans(path);
	std::remove(path.c_str());
}
