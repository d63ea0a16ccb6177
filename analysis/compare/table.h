// SPDX-License-Identifier: MIT
// Rows of a comparison as cells, for text and Markdown.
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

// The tables: percentiles and throughput, causes, stalls of the server, episodes, forks.
std::vector<ComparisonTable> TablesOf(const Comparison &comparison);
// Differences between hosts, loads and servers; no rows: none.
ComparisonTable FactsOf(const Comparison &comparison);
std::string SideText(const ComparedSide &side); // "runs/base, 8 runs"

} // namespace forktail::analysis::compare
