// SPDX-License-Identifier: MIT
// Rows of a comparison as cells, for text and for Markdown alike.
#pragma once

#include <string>
#include <vector>

#include "comparison.h"

namespace forktail::analysis::compare
{

struct ComparisonTable {
	std::string title;
	std::vector<std::string> head;
	std::vector<std::vector<std::string>> rows;
};

// What is worth a look: percentiles and throughput, causes, stalls of the server, episodes, forks.
std::vector<ComparisonTable> TablesOf(const Comparison &comparison);
// What differs between hosts, loads, servers; no rows: nothing.
ComparisonTable FactsOf(const Comparison &comparison);
std::string SideText(const ComparedSide &side); // "runs/base, 8 runs"

} // namespace forktail::analysis::compare
