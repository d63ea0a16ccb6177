// SPDX-License-Identifier: MIT
// How often `forktail diff` is right, on runs whose true differences are known: how often it calls identical
// sides worse, how often it finds a tail that is 20 % longer, and how often its intervals contain the true
// difference.
//
//   diff_honesty [--comparisons N] [--write docs/results/speed.md]
//   diff_honesty --runs DIR [--comparisons N]         identical real runs, in random pairings of 8
//   (diff_real.sh)
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/made_runs.h"

using namespace forktail::analysis::compare;
using forktail::test::MadeOptions;
using forktail::test::MadeRuns;

namespace
{

struct Tally {
	int all = 0, worse = 0, open = 0;
	int covered[3] = {}; // intervals of p50, p99, p99.9 that contain the true ratio
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
			tally.covered[q] += interval.low <= truth[q] && truth[q] <= interval.high;
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
		 Percent(t.covered[0], t.all).c_str(), Percent(t.covered[1], t.all).c_str(),
		 Percent(t.covered[2], t.all).c_str());
	return text;
}

bool Write(const std::string &path, const std::string &table)
{
	const std::string begin = "<!-- diff_honesty -->\n", end = "<!-- /diff_honesty -->";
	std::ifstream in(path);
	std::string text{std::istreambuf_iterator<char>(in), {}};
	size_t from = text.find(begin), to = text.find(end);
	if (from == std::string::npos || to == std::string::npos || to < from) {
		fprintf(stderr, "%s: no markers for the table\n", path.c_str());
		return false;
	}
	std::ofstream out(path);
	out << text.substr(0, from + begin.size()) << table << text.substr(to);
	out.close();
	return static_cast<bool>(out);
}

// Real runs, each read once.
int PairReal(const std::string &directory, int comparisons)
{
	std::vector<std::string> paths;
	std::string error;
	for (const char *side : {"/base", "/new"}) {
		std::vector<std::string> some;
		if (!FindRuns(directory + side, &some, &error)) {
			fprintf(stderr, "%s\n", error.c_str());
			return 3;
		}
		paths.insert(paths.end(), some.begin(), some.end());
	}
	std::vector<RunSample> runs(paths.size());
	uint64_t slow_ns = 0;
	int status = 0, counts[5] = {};
	for (size_t i = 0; i < paths.size(); i++)
		if (!TakeSample(paths[i], 256 << 20, {}, &slow_ns, &runs[i], &error, &status)) {
			fprintf(stderr, "%s\n", error.c_str());
			return status;
		}
	const size_t pairs = std::min<size_t>(8, runs.size() / 2);
	Random random(1);
	for (int i = 0; i < comparisons; i++) {
		for (size_t j = 0; j < 2 * pairs; j++)
			std::swap(runs[j], runs[j + random.Below(runs.size() - j)]);
		Comparison c;
		for (size_t j = 0; j < pairs; j++) {
			c.a.runs.push_back(runs[2 * j]);
			c.b.runs.push_back(runs[2 * j + 1]);
		}
		Judge({}, &c);
		counts[static_cast<size_t>(c.verdict)]++;
	}
	printf("%zu identical runs, %d pairings of %zu:", runs.size(), comparisons, pairs);
	for (int v = 0; v < 5; v++)
		printf(" %s %s", VerdictName(static_cast<Verdict>(v)),
		       Percent(counts[v], comparisons).c_str());
	printf("\n");
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	int comparisons = 2000;
	std::string document, real;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--comparisons"))
			comparisons = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--write"))
			document = argv[i + 1];
		else if (!strcmp(argv[i], "--runs"))
			real = argv[i + 1];
	}
	if (comparisons < 1)
		return 2;
	if (!real.empty())
		return PairReal(real, comparisons);
	std::string table =
	    "| sides | pairs | runs | allowed | called worse | undecided | p50's interval holds | p99's | "
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
