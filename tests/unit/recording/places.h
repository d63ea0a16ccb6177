// SPDX-License-Identifier: MIT
// Shared by the tests of block tables: a file's table, and the blocks read with it.
#pragma once
#include <zstd.h>

#include "tests/unit/recording/support.h"

inline bool operator==(const ft_place &a, const ft_place &b)
{
	return a.offset == b.offset && a.start_ns == b.start_ns && a.end_ns == b.end_ns && a.kind == b.kind &&
	       a.count == b.count && a.stored_bytes == b.stored_bytes && a.raw_bytes == b.raw_bytes;
}

inline bool operator==(const ft_damage &a, const ft_damage &b)
{
	return a.bytes_skipped == b.bytes_skipped && a.gaps == b.gaps &&
	       a.blocks_missing == b.blocks_missing && a.no_trailer == b.no_trailer;
}

// A table, and the result of ft_reader_places.
struct Places {
	std::vector<ft_place> all;
	ft_damage damage = {};
	bool indexed = false;
};

inline ft_reader *open_recording(const std::string &path)
{
	ft_reader *r = nullptr;
	char error[512] = "";
	if (ft_reader_open(&r, path.c_str(), error, sizeof(error)))
		throw std::runtime_error(error);
	return r;
}

inline Places places_of(const std::string &path, bool scan)
{
	ft_reader *r = open_recording(path);
	ft_places p;
	const int rc = ft_reader_places(r, scan, &p, nullptr, nullptr);
	ft_reader_close(r);
	if (rc)
		throw std::runtime_error("ft_reader_places: " + std::to_string(rc));
	Places places{{p.all, p.all + p.count}, p.damage, p.indexed};
	ft_places_free(&p);
	return places;
}

inline Block block_of(const ft_block &b)
{
	return {b.kind, b.record_size, b.count, b.offset,
		std::string(static_cast<const char *>(b.payload), b.bytes)};
}

// The blocks read at all places, from the last to the first. Returned in the file's order.
inline std::vector<Block> blocks_at(const std::string &path, const Places &p)
{
	ft_reader *r = open_recording(path);
	std::vector<Block> blocks;
	ft_block block;
	for (size_t i = p.all.size(); i-- > 0;)
		if (ft_reader_read(r, &p.all[i], &block) == 1)
			blocks.push_back(block_of(block));
	ft_reader_close(r);
	return {blocks.rbegin(), blocks.rend()};
}

// The entries of the index block at an offset, as stored in the file.
inline std::vector<ft_index_entry> index_at(const std::string &bytes, uint64_t offset)
{
	ft_block_header h;
	std::memcpy(&h, &bytes.at(offset), sizeof(h));
	if (h.kind != FT_BLOCK_INDEX || h.record_size != sizeof(ft_index_entry))
		throw std::runtime_error("no index block where one should be");
	const char *stored = &bytes[offset + sizeof(h)];
	std::vector<ft_index_entry> entries(h.count);
	if (!(h.flags & FT_BLOCK_ZSTD))
		std::memcpy(entries.data(), stored, h.raw_bytes);
	else if (ZSTD_decompress(entries.data(), h.raw_bytes, stored, h.stored_bytes) != h.raw_bytes)
		throw std::runtime_error("an index block that does not unpack");
	return entries;
}
