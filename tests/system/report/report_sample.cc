// SPDX-License-Identifier: MIT
// Writes a report of a synthetic run of the requested size, which the browser tests open.
//   report_sample OUT.html [SECONDS RATE SPANS SLOW_ONE_IN [requests|iterations|no-recorder|kernel|many]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "analysis/report.h"
#include "tests/support/sample_explanation.h"

namespace
{

// As if the server's kernel had seen the requests, all of one client.
void MakeKernelLog(forktail::analysis::Explained *e)
{
	e->run.request_clients.emplace_back().name = "10.0.0.7";
	for (forktail::analysis::Connection &c : e->run.connections)
		c.client = 1;
	for (forktail::analysis::SlowRequest &s : e->blame.slow) {
		s.sent_ns = s.due_ns;
		s.read_ns = s.due_ns + s.latency_ns / 4;
		s.written_ns = s.end_ns() + 1000;
		s.request_bytes = 1031;
		s.answer_bytes = 5;
	}
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 6 && argc != 7) {
		fprintf(stderr, "usage: report_sample OUT.html [SECONDS RATE SPANS SLOW_ONE_IN "
				"[requests|iterations|no-recorder|kernel|many]]\n");
		return 2;
	}
	forktail::analysis::SampleSize size;
	if (argc >= 6) {
		size.seconds = atof(argv[2]);
		size.rate = static_cast<uint32_t>(atol(argv[3]));
		size.spans = static_cast<size_t>(atol(argv[4]));
		size.slow_one_in = static_cast<uint32_t>(std::max(1L, atol(argv[5])));
	}
	std::string mode = argc == 7 ? argv[6] : "requests";
	size.requests = mode != "iterations";
	size.recorder = mode != "no-recorder";
	std::string error;
	forktail::analysis::Explained explanation = forktail::analysis::SampleExplanation(size);
	if (mode == "kernel")
		MakeKernelLog(&explanation);
	if (mode == "many") // each episode three times
		for (const auto &once = explanation.episodes; once.size() < 15;)
			explanation.episodes.push_back(once[once.size() - 5]);
	auto before = std::chrono::steady_clock::now();
	bool written =
	    forktail::analysis::report::WriteReport(explanation, explanation.reading.get(), argv[1], &error);
	std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - before;
	if (written) {
		printf("written in %.0f ms\n", took.count());
		return 0;
	}
	fprintf(stderr, "%s\n", error.c_str());
	return 1;
}
