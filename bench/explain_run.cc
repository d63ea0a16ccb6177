// SPDX-License-Identifier: MIT
// Writes a run directory of any size for timing `forktail explain`: the files that a recorder and a load
// generator would have written for a server busy for that long. The numbers are synthetic, so the explanation
// itself means nothing. bench/explain.sh does the timing, docs/results/speed.md has the figures.
//
//   bench_explain_run DIR [MILLION_REQUESTS=10] [REQUESTS_PER_SECOND=50000] [PIPELINE=1]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "recording/recording.h"

namespace
{

constexpr uint64_t kStart = 1'000'000'000'000, kUs = 1'000, kMs = 1'000'000;
constexpr uint32_t kConnections = 50, kTid = 4311;

using Random = std::mt19937_64;

void Check(int result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "bench_explain_run: cannot %s: %s\n", what, strerror(-result));
	exit(3);
}

void Span(ft_writer *w, ft_owner owner, uint64_t start_ns, uint64_t duration_ns, bool off_cpu)
{
	ft_span s = {};
	s.start_ns = start_ns;
	s.duration_ns = duration_ns;
	(off_cpu ? s.blocked_ns : s.on_cpu_ns) = duration_ns;
	s.tid = kTid;
	s.owner = static_cast<uint8_t>(owner);
	s.syscall = -1;
	s.off_cpu = off_cpu;
	Check(ft_writer_record(w, FT_BLOCK_SPAN, &s), "write a span");
}

void Tally(ft_writer *w, uint64_t start_ns, ft_owner owner, uint64_t total_ns, uint32_t count)
{
	ft_tally t = {};
	t.start_ns = start_ns;
	t.end_ns = start_ns + kMs;
	t.total_ns = total_ns;
	t.count = count;
	t.tid = kTid;
	t.owner = owner;
	Check(ft_writer_record(w, FT_BLOCK_TALLY, &t), "write a tally");
}

// One millisecond of a busy server: a few idle spans, a softirq, sometimes copies. Every 10 s a fork takes 40
// ms; this function is called for each of these milliseconds, and the first call writes the span.
void ServerMillisecond(ft_writer *w, Random &random, uint64_t index)
{
	uint64_t t = kStart + index * kMs, in_fork = index % 10'000;
	if (in_fork < 40) {
		if (in_fork == 0)
			Span(w, FT_FORK, t, 40 * kMs, false);
		return;
	}
	uint64_t idle_ns = 0;
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t ns = 20 * kUs + random() % (80 * kUs);
		Span(w, FT_IDLE, t + i * 200 * kUs, ns, true);
		idle_ns += ns;
	}
	bool copies = in_fork < 1000;
	if (copies)
		Span(w, FT_COW_COPY, t + 850 * kUs, 25 * kUs, false);
	uint64_t covered = idle_ns + (copies ? 25 * kUs : 0);
	Tally(w, t, static_cast<ft_owner>(FT_SOFTIRQ + 3), 30 * kUs, 12);
	Tally(w, t, FT_IDLE, 20 * kUs, 3);
	if (copies)
		Tally(w, t, FT_COW_COPY, 60 * kUs, 30);
	Tally(w, t, FT_OWN_CODE, kMs - covered - 50 * kUs - (copies ? 60 * kUs : 0), 0);
}

void WriteServer(const std::string &path, uint64_t milliseconds)
{
	ft_writer *w = nullptr;
	Check(ft_writer_open(
		  &w, path.c_str(),
		  R"({"program":"forktail-record","version":"bench","boot_id":"bench","min_span_ns":20000,
			     "start_ns":1000000000000,"targets":[{"pid":4311,"comm":"redis-server","cmdline":""}]})"),
	      "create the server's recording");
	Random random(1);
	for (uint64_t i = 0; i < milliseconds; i++)
		ServerMillisecond(w, random, i);
	ft_thread t = {};
	t.start_ns = kStart;
	t.end_ns = kStart + milliseconds * kMs;
	t.tid = t.tgid = kTid;
	t.flags = FT_THREAD_MAIN;
	strcpy(t.comm.raw, "redis-server");
	strcpy(t.role.raw, "redis-server");
	Check(ft_writer_record(w, FT_BLOCK_THREAD, &t), "write a thread");
	Check(ft_writer_close(w, "{\"reason\":\"duration\"}"), "close the server's recording");
}

// The end of the server's fork at this instant, or the instant itself if there is no fork.
uint64_t AfterFork(uint64_t t_ns)
{
	uint64_t since = t_ns - kStart, in_fork = since % (10'000 * kMs);
	return in_fork < 40 * kMs ? t_ns - in_fork + 40 * kMs : t_ns;
}

// With a pipeline, a closed loop in which so many requests are sent together and answered together.
void WriteLoad(const std::string &path, uint64_t count, uint64_t rate, uint32_t pipeline)
{
	ft_writer *w = nullptr;
	const std::string arrival = pipeline > 1 ? "closed" : "constant";
	std::string manifest =
	    R"({"program":"forktail-load","version":"bench","boot_id":"bench","servers":["unix:/bench"],)"
	    R"("ops":["GET","SET"],"start_ns":1000000000000,"arrival":")" +
	    arrival + R"(","pipeline":)" + std::to_string(pipeline) + R"(,"rate":)" +
	    std::to_string(pipeline > 1 ? 0 : rate) + "}";
	Check(ft_writer_open(&w, path.c_str(), manifest.c_str()), "create the load's recording");
	for (uint32_t i = 0; i < kConnections; i++) {
		ft_connection c = {};
		c.id = i;
		c.opened_ns = kStart;
		Check(ft_writer_record(w, FT_BLOCK_CONNECTION, &c), "write a connection");
	}
	ft_requests requests;
	Check(ft_requests_init(&requests), "make room for requests");
	Random random(2);
	uint64_t free_ns[kConnections] = {}, server_free_ns = 0;
	for (uint64_t i = 0; i < count; i += pipeline) {
		// The server takes 8 us per request, one at a time, and answers none while it forks.
		ft_request q = {};
		q.connection = static_cast<uint32_t>(i / pipeline % kConnections);
		q.intended_ns = kStart + i * 1'000'000'000 / rate;
		q.start_ns = std::max(q.intended_ns + random() % 3000, free_ns[q.connection]);
		server_free_ns = AfterFork(std::max(server_free_ns, q.start_ns + 15 * kUs)) + 8 * kUs;
		if (pipeline > 1)
			q.intended_ns = q.start_ns;
		q.end_ns = server_free_ns + random() % (20 * kUs);
		q.op = random() % 10 == 0;
		free_ns[q.connection] = q.end_ns;
		for (uint32_t n = 0; n < pipeline; n++) {
			if (ft_requests_full(&requests))
				Check(ft_requests_flush(&requests, w), "write requests");
			ft_requests_append(&requests, &q);
		}
	}
	Check(ft_requests_flush(&requests, w), "write requests");
	ft_requests_free(&requests);
	Check(ft_writer_close(w, "{\"reason\":\"duration\"}"), "close the load's recording");
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr,
			"usage: bench_explain_run DIR [MILLION_REQUESTS] [REQUESTS_PER_SECOND] [PIPELINE]\n");
		return 2;
	}
	std::string dir = argv[1];
	uint64_t count = static_cast<uint64_t>((argc > 2 ? atof(argv[2]) : 10) * 1e6);
	uint64_t rate = argc > 3 ? strtoull(argv[3], nullptr, 10) : 50'000;
	uint32_t pipeline = argc > 4 ? static_cast<uint32_t>(strtoul(argv[4], nullptr, 10)) : 1;
	if (count == 0 || rate == 0 || pipeline == 0) {
		fprintf(stderr, "bench_explain_run: the numbers must be at least 1\n");
		return 2;
	}
	WriteServer(dir + "/server.forktail", count * 1000 / rate + 100);
	WriteLoad(dir + "/load.forktail", count, rate, pipeline);
	return 0;
}
