// SPDX-License-Identifier: MIT
// See operations.h.
#include "operations.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <strings.h>

namespace forktail::analysis::gate
{

namespace
{

void Count(const Requests &q, size_t i, OperationFigures *f)
{
	f->requests++;
	f->misses += q.status[i] == FT_STATUS_MISS;
	if (IsError(q.status[i])) {
		f->errors++;
		return;
	}
	const uint64_t latency = q.Latency(i);
	f->latencies.Add(latency);
	f->min_ns = std::min(f->min_ns, latency);
	const double value = static_cast<double>(latency), off = value - f->mean_ns;
	f->mean_ns += off / static_cast<double>(f->answered());
	f->square_sum += off * (value - f->mean_ns);
}

// Finds the percentiles of one operation.
struct Search {
	OperationFigures *figures;
	std::unique_ptr<RankFinder> finder;
};

void FindPercentiles(const Run &run, Log *log, Operations *wanted)
{
	std::vector<Search> searches;
	for (auto &[name, f] : *wanted) {
		std::vector<uint64_t> ranks;
		for (const auto &[p, value] : f.percentiles)
			ranks.push_back(Rank(f.answered(), p));
		if (f.answered() && !ranks.empty())
			searches.push_back({&f, std::make_unique<RankFinder>(f.latencies, ranks)});
	}
	auto done = [](const Search &s) { return s.finder->Done(); };
	while (!std::all_of(searches.begin(), searches.end(), done)) {
		ForWindows(log, [&] {
			const Requests &q = run.requests;
			for (size_t i = q.lead; i < q.size(); i++)
				for (const Search &s : searches)
					if (s.figures->ops[q.op[i]] && !IsError(q.status[i]))
						s.finder->Add(q.Latency(i));
		});
		for (const Search &s : searches)
			if (!s.finder->Done())
				s.finder->EndPass();
	}
	for (const Search &s : searches) {
		size_t i = 0;
		for (auto &[p, value] : s.figures->percentiles)
			value = s.finder->Value(i++);
	}
}

} // namespace

double OperationFigures::stddev_ns() const
{
	return answered() ? std::sqrt(square_sum / static_cast<double>(answered())) : 0;
}

void FindOperations(const Run &run, Log *log, Operations *wanted)
{
	if (wanted->empty())
		return;
	for (auto &[name, f] : *wanted)
		for (size_t op = 0; op < f.ops.size(); op++)
			f.ops[op] = name.empty() || (op < run.ops.size() &&
						     strcasecmp(run.ops[op].c_str(), name.c_str()) == 0);
	ForWindows(log, [&] {
		const Requests &q = run.requests;
		for (size_t i = q.lead; i < q.size(); i++)
			for (auto &[name, f] : *wanted)
				if (f.ops[q.op[i]])
					Count(q, i, &f);
	});
	for (auto &[name, f] : *wanted)
		f.known = f.requests > 0;
	FindPercentiles(run, log, wanted);
}

} // namespace forktail::analysis::gate
