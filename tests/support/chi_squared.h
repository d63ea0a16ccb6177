// SPDX-License-Identifier: MIT
// Pearson's chi-squared test of counts against exact probabilities, for tests of random draws. Seeds are
// fixed, so such a test passes always or never. The limit is exceeded by one correct generator in 10,000.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

struct chi_squared {
	double statistic = 0, limit = 0;
	bool fits() const { return statistic <= limit; }
};

// Neighbouring cells are pooled until at least 10 are expected in each. `probabilities` sum to 1.
inline chi_squared chi_squared_test(const std::vector<uint64_t> &counts,
				    const std::vector<double> &probabilities)
{
	double draws = 0, expected = 0, seen = 0, freedom = -1;
	for (uint64_t n : counts)
		draws += static_cast<double>(n);
	chi_squared result;
	double left = draws;
	for (size_t i = 0; i < counts.size(); i++) {
		const double here = probabilities[i] * draws;
		expected += here;
		left -= here;
		seen += static_cast<double>(counts[i]);
		// The rest joins this cell if it would be too small for a separate one.
		if (expected < 10 || (left < 10 && i + 1 < counts.size()))
			continue;
		result.statistic += (seen - expected) * (seen - expected) / expected;
		freedom++;
		expected = seen = 0;
	}
	if (expected > 1e-6)
		result.statistic += (seen - expected) * (seen - expected) / expected;
	else if (seen > 0)
		result.statistic = HUGE_VAL; // something impossible was drawn
	if (freedom < 1)
		freedom = 1;
	// Wilson and Hilferty: (chi^2 / k)^(1/3) is nearly normal. 3.719 deviations are 1 in 10,000.
	const double v = 2 / (9 * freedom);
	result.limit = freedom * std::pow(1 - v + 3.719 * std::sqrt(v), 3);
	return result;
}
