// SPDX-License-Identifier: MIT
// Column: its values are unchanged when it grows from the heap into mapped memory and beyond, and when it is
// copied or moved.
#include "tests/support/catch.h"

#include <algorithm>

#include "analysis/run.h"

using forktail::analysis::Column;

namespace
{

bool Counts(const forktail::analysis::Column<uint64_t> &c, size_t count)
{
	if (c.size() != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (c[i] != i)
			return false;
	return true;
}

} // namespace

TEST_CASE("a column keeps its values while it grows to megabytes")
{
	constexpr size_t count = 3'000'000; // 24 MB: heap, then mapped, then remapped several times
	forktail::analysis::Column<uint64_t> c;
	for (size_t i = 0; i < count; i++) {
		c.push_back(i);
		if ((i & (i + 1)) == 0)
			REQUIRE(Counts(c, i + 1));
	}
	REQUIRE(Counts(c, count));
	CHECK(c.back() == count - 1);

	forktail::analysis::Column<uint64_t> copy = c;
	copy[0] = 7;
	CHECK(c[0] == 0);
	forktail::analysis::Column<uint64_t> moved = std::move(c);
	CHECK(Counts(moved, count));
	moved.Truncate(10);
	CHECK(Counts(moved, 10));
	moved.Truncate(20); // never grows
	CHECK(moved.size() == 10);
	copy = moved;
	CHECK(Counts(copy, 10));
}

TEST_CASE("a column can be extended by many values at once, also from empty")
{
	forktail::analysis::Column<uint64_t> c;
	CHECK(c.empty());
	CHECK(c.begin() == c.end());
	std::generate_n(c.Extend(500'000), 500'000, [n = uint64_t{0}]() mutable { return n++; });
	CHECK(Counts(c, 500'000));
	c.Append(nullptr, 0);
	const uint64_t more[] = {500'000, 500'001};
	c.Append(more, 2);
	CHECK(Counts(c, 500'002));
}
