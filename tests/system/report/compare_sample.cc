// SPDX-License-Identifier: MIT
// Writes the page of a synthetic comparison, which the browser tests open.
//   compare_sample OUT.html [PAIRS]
#include <cstdio>
#include <cstdlib>
#include <string>

#include "analysis/report.h"
#include "tests/support/sample_comparison.h"

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: compare_sample OUT.html [PAIRS]\n");
		return 2;
	}
	std::string error;
	size_t pairs = argc == 3 ? static_cast<size_t>(atol(argv[2])) : 1;
	if (forktail::analysis::report::WriteComparePage(forktail::analysis::SampleComparison(pairs), argv[1],
							 &error))
		return 0;
	fprintf(stderr, "%s\n", error.c_str());
	return 1;
}
