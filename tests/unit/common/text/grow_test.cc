// SPDX-License-Identifier: MIT
// Arrays that grow (grow.h).
#include "common/grow.h"

#include <cstdint>

#include "tests/support/catch.h"

TEST_CASE("An array doubles, grows to what is asked for, and stays as it is without memory")
{
	int *items = nullptr;
	size_t room = 0;
	REQUIRE(grow(&items, &room, 0, sizeof(*items)));
	CHECK(room == 16);
	items[0] = 7;
	CHECK((grow(&items, &room, 15, sizeof(*items)) && room == 16));
	CHECK((grow(&items, &room, 16, sizeof(*items)) && room == 32));
	CHECK((grow_to(&items, &room, 100, sizeof(*items)) && room == 100));
	const int *before = items;
	CHECK_FALSE(grow_to(&items, &room, SIZE_MAX / sizeof(*items), sizeof(*items)));
	CHECK((items == before && room == 100 && items[0] == 7));
	free(items);
}
