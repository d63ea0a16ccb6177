// SPDX-License-Identifier: MIT
// Hash tables when memory is short: what cannot be added is in no table, and the rest stays.
#include <cstdint>
#include <cstdlib>

namespace
{

bool short_of_memory = false;

} // namespace

#define uthash_malloc(size) (short_of_memory ? nullptr : malloc(size))
#define uthash_free(memory, size) free(memory)

#include "common/hash.h"
#include "tests/support/catch.h"

namespace
{

struct Item {
	uint32_t key;
	UT_hash_handle hh;
};

bool Add(Item **table, uint32_t key)
{
	Item *item = static_cast<Item *>(calloc(1, sizeof(Item)));
	item->key = key;
	HASH_ADD(hh, *table, key, sizeof item->key, item);
	if (hash_added(item))
		return true;
	free(item);
	return false;
}

Item *Find(Item *table, uint32_t key)
{
	Item *found;
	HASH_FIND(hh, table, &key, sizeof key, found);
	return found;
}

} // namespace

TEST_CASE("hash: without memory nothing is added, neither first nor later, and the rest is found")
{
	Item *table = nullptr;
	short_of_memory = true;
	CHECK(!Add(&table, 1));
	CHECK(table == nullptr);
	uint32_t refused = 0;
	for (uint32_t key = 0; key < 10'000; key++) {
		short_of_memory = key > 0; // felt when the table would grow
		if (!Add(&table, key)) {
			refused++;
			CHECK(!Find(table, key));
		}
	}
	CHECK(refused > 0);
	CHECK(refused < 10'000);
	short_of_memory = false;
	CHECK(HASH_COUNT(table) == 10'000 - refused);
	uint32_t found = 0;
	for (uint32_t key = 0; key < 10'000; key++)
		found += Find(table, key) != nullptr;
	CHECK(found == 10'000 - refused);
	hash_free_all(Item, table);
	CHECK(table == nullptr);
}
