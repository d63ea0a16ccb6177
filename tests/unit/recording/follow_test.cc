// SPDX-License-Identifier: MIT
// A recording that is read while it is written. Whatever its end contains at the moment, the result is the
// same as for a reader that starts later.
#include <fstream>

#include "tests/support/catch.h"
#include "tests/unit/recording/support.h"

using namespace forktail::test;

TEST_CASE("a reader that follows a file gets each block once, however the file grows")
{
	TempDir dir;
	const std::string whole = small_recording(dir.file("whole"));
	const std::vector<Block> all = read_recording(dir.file("whole")).blocks;
	const size_t step = GENERATE(1, 7, 36, 37, 1000);
	const std::string path = dir.file("growing");
	std::vector<Block> got;
	ft_reader *r = nullptr;
	char error[512];
	std::ofstream out(path, std::ios::binary);
	for (size_t at = 0; at < whole.size(); at += step) {
		out.write(&whole[at], static_cast<std::streamsize>(std::min(step, whole.size() - at)));
		out.flush();
		if (!r && ft_reader_open(&r, path.c_str(), error, sizeof error))
			continue;
		ft_block b;
		while (ft_reader_follow(r, &b) == 1)
			got.push_back({b.kind, b.record_size, b.count, b.offset,
				       std::string(static_cast<const char *>(b.payload), b.bytes)});
		CHECK(ft_reader_sealed(r) == (at + step >= whole.size()));
	}
	REQUIRE(r);
	CHECK(got == all);
	CHECK(ft_reader_at(r) == whole.size());
	ft_damage damage;
	ft_reader_damage(r, &damage);
	CHECK(damage.gaps == 0);
	CHECK(damage.blocks_missing == 0);
	REQUIRE(truncate(path.c_str(), 10) == 0);
	ft_block b;
	CHECK(ft_reader_follow(r, &b) == -ESTALE);
	ft_reader_close(r);
}
