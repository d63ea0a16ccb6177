# SPDX-License-Identifier: MIT
"""Pearson's chi-squared test of counts against exact probabilities, for tests of random draws. Seeds are fixed, so such
a test passes always or never. The limit is exceeded by one correct generator in 10,000.
"""

import math


def assert_fits(counts, probabilities):
    """The counts may be draws with these probabilities, which sum to 1. Neighbouring cells are pooled until at least 10
    draws are expected in each."""
    left = draws = sum(map(int, counts))
    expected = seen = statistic = 0
    freedom = -1
    for i, (count, probability) in enumerate(zip(counts, probabilities, strict=True), 1):
        expected += probability * draws
        left -= probability * draws
        seen += int(count)
        # The rest joins this cell if it would be too small for a separate one.
        if expected < 10 or (left < 10 and i < len(counts)):
            continue
        statistic += (seen - expected) ** 2 / expected
        freedom += 1
        expected = seen = 0
    if expected > 1e-6:
        statistic += (seen - expected) ** 2 / expected
    else:
        assert seen == 0, "something impossible was drawn"
    freedom = max(freedom, 1)
    # Wilson and Hilferty: (chi^2 / k)^(1/3) is nearly normal. 3.719 deviations are 1 in 10,000.
    v = 2 / (9 * freedom)
    limit = freedom * (1 - v + 3.719 * math.sqrt(v)) ** 3
    assert statistic <= limit
