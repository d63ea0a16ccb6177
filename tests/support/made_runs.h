// SPDX-License-Identifier: MIT
// Synthetic runs with known latency differences, to check the results of comparisons. A base drifts from
// second to second (AR(1) of its logarithm). Episodes of 30 ms occur at random, and requests in them wait for
// their end.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/compare.h"

namespace forktail::test
{

struct MadeOptions {
	int seconds = 60, per_second = 200;
	double episodes = 0.2;	  // per second
	double longer = 1;	  // factor on the waiting time in episodes
	double run_spread = 0.02; // of one run's level compared with another's, as a logarithm
};

class MadeRuns
{
public:
	explicit MadeRuns(uint64_t seed) : random_(seed) {}

	forktail::analysis::compare::RunSample Run(const MadeOptions &o)
	{
		const double level = std::log(100e3) + o.run_spread * Normal();
		const double length = 30e6 * std::exp(o.run_spread * Normal());
		double drift = 0.1 * Normal(), next = Wait(o.episodes), begun = -1;
		latencies_.clear();
		for (int i = 0; i < o.seconds * o.per_second; i++) {
			double t = static_cast<double>(i) / o.per_second;
			if (i % o.per_second == 0)
				drift = 0.7 * drift + 0.1 * std::sqrt(1 - 0.49) * Normal();
			for (; next <= t; next += Wait(o.episodes))
				begun = next;
			double left = begun < 0 ? 0 : length - (t - begun) * 1e9;
			double own = std::exp(level + drift + 0.3 * Normal());
			latencies_.push_back(static_cast<uint64_t>(own + std::max(left, 0.0) * o.longer));
		}
		return Sampled(o);
	}
	// Two sides of this many pairs. The runs of a pair share the conditions of their hour.
	forktail::analysis::compare::Comparison
	Pairs(size_t pairs, const MadeOptions &a, const MadeOptions &b,
	      const forktail::analysis::compare::CompareOptions &options = {})
	{
		forktail::analysis::compare::Comparison c;
		for (size_t i = 0; i < pairs; i++) {
			c.a.runs.push_back(Run(a));
			c.b.runs.push_back(Run(b));
		}
		forktail::analysis::compare::Judge(options, &c);
		return c;
	}

private:
	double Normal() // Marsaglia's polar method
	{
		for (;;) {
			double x = 2 * random_.Uniform() - 1, y = 2 * random_.Uniform() - 1,
			       r = x * x + y * y;
			if (r > 0 && r < 1)
				return x * std::sqrt(-2 * std::log(r) / r);
		}
	}
	double Wait(double rate) { return -std::log(1 - random_.Uniform()) / rate; }
	uint64_t At(double percentile)
	{
		size_t rank = static_cast<size_t>(
		    std::ceil(percentile / 100 * static_cast<double>(latencies_.size()) - 1e-9));
		auto at = latencies_.begin() + static_cast<ptrdiff_t>(std::max<size_t>(rank, 1) - 1);
		std::nth_element(latencies_.begin(), at, latencies_.end());
		return *at;
	}
	forktail::analysis::compare::RunSample Sampled(const MadeOptions &o)
	{
		forktail::analysis::compare::RunSample run;
		run.requests = latencies_.size();
		run.seconds = o.seconds;
		run.rate = o.per_second;
		run.latencies.p50 = At(50);
		run.latencies.p90 = At(90);
		run.latencies.p99 = At(99);
		run.latencies.p99_9 = At(99.9);
		run.latencies.p99_99 = At(99.99);
		run.latencies.max = At(100);
		return run;
	}

	forktail::analysis::compare::Random random_;
	std::vector<uint64_t> latencies_;
};

} // namespace forktail::test
