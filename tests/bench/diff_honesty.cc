// SPDX-License-Identifier: MIT
// How honest `forktail diff` is, on runs whose true differences are known: how often identical sides are
// called worse, how often a tail that is 20 % longer is found, and how often intervals hold the true
// difference.
//
//   diff_honesty [--comparisons N] [--write docs/diff.md]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/made_runs.h"

using namespace forktail;
using ft::test::MadeOptions;
using ft::test::MadeRuns;

namespace
{

struct Tally {
	int all = 0, worse = 0, open = 0;
	int held[3] = {}; // intervals of p50, p99, p99.9 that hold the true ratio
};

Tally Measure(int comparisons, size_t pairs, double longer, double allowed, int seconds, uint64_t seed)
{
	Tally tally;
	MadeRuns made(seed);
	MadeOptions a, b;
	b.longer = longer;
	a.seconds = b.seconds = seconds;
	CompareOptions options;
	options.allowed = allowed;
	for (int i = 0; i < comparisons; i++) {
		Comparison c = made.Pairs(pairs, a, b, options);
		tally.all++;
		tally.worse += c.verdict == Verdict::Worse;
		tally.open += c.verdict == Verdict::Inconclusive;
		const double truth[] = {1, 1, longer};
		size_t at[] = {0, 2, 3};
		for (int q = 0; q < 3; q++) {
			const Interval &interval = c.percentiles[at[q]].ratio_interval;
			tally.held[q] += interval.low <= truth[q] && truth[q] <= interval.high;
		}
	}
	return tally;
}

std::string Percent(int count, int all)
{
	char text[32];
	snprintf(text, sizeof text, "%.1f %%", 100.0 * count / all);
	return text;
}

std::string Row(const char *what, size_t pairs, int seconds, double allowed, const Tally &t)
{
	char text[256];
	snprintf(text, sizeof text, "| %s | %zu | %d s | %.0f %% | %s | %s | %s | %s | %s |\n", what, pairs,
		 seconds, allowed * 100, Percent(t.worse, t.all).c_str(), Percent(t.open, t.all).c_str(),
		 Percent(t.held[0], t.all).c_str(), Percent(t.held[1], t.all).c_str(),
		 Percent(t.held[2], t.all).c_str());
	return text;
}

bool Write(const std::string &path, const std::string &table)
{
	const std::string begin = "<!-- diff_honesty -->\n", end = "<!-- /diff_honesty -->";
	std::ifstream in(path);
	std::string text{std::istreambuf_iterator<char>(in), {}};
	size_t from = text.find(begin), to = text.find(end);
	if (from == std::string::npos || to == std::string::npos || to < from) {
		fprintf(stderr, "%s has no place for the table\n", path.c_str());
		return false;
	}
	std::ofstream out(path);
	out << text.substr(0, from + begin.size()) << table << text.substr(to);
	out.close();
	return static_cast<bool>(out);
}

} // namespace

int main(int argc, char **argv)
{
	int comparisons = 2000;
	std::string document;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--comparisons"))
			comparisons = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--write"))
			document = argv[i + 1];
	}
	if (comparisons < 1)
		return 2;
	std::string table =
	    "| sides | pairs | runs | allowed | called worse | can't tell | p50's interval holds | p99's | "
	    "p99.9's |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
	const struct {
		const char *what;
		size_t pairs;
		double longer, allowed;
		int seconds;
	} rows[] = {{"identical", 8, 1, 0.05, 60},	{"identical", 8, 1, 0, 60},
		    {"identical", 6, 1, 0, 60},		{"p99.9 +20 %", 8, 1.2, 0.05, 60},
		    {"p99.9 +20 %", 8, 1.2, 0.05, 120}, {"p99.9 +20 %", 6, 1.2, 0.05, 120},
		    {"p99.9 +10 %", 8, 1.1, 0.05, 120}};
	uint64_t seed = 1;
	for (const auto &row : rows) {
		std::string text =
		    Row(row.what, row.pairs, row.seconds, row.allowed,
			Measure(comparisons, row.pairs, row.longer, row.allowed, row.seconds, seed++));
		printf("%s", text.c_str());
		fflush(stdout);
		table += text;
	}
	return document.empty() || Write(document, table) ? 0 : 3;
}
