// SPDX-License-Identifier: MIT
// Writes a report of a synthetic run of the requested size, which the browser tests open.
//   report_sample OUT.html [SECONDS RATE SPANS SLOW_ONE_IN [requests|iterations|no-recorder]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "analysis/report/report.h"
#include "tests/support/sample_explanation.h"

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 6 && argc != 7) {
		fprintf(stderr, "usage: report_sample OUT.html [SECONDS RATE SPANS SLOW_ONE_IN "
				"[requests|iterations|no-recorder]]\n");
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
	forktail::analysis::Explanation explanation = forktail::analysis::SampleExplanation(size);
	auto before = std::chrono::steady_clock::now();
	bool written = forktail::analysis::report::WriteReport(explanation, argv[1], &error);
	std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - before;
	if (written) {
		printf("written in %.0f ms\n", took.count());
		return 0;
	}
	fprintf(stderr, "%s\n", error.c_str());
	return 1;
}
