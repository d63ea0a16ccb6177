// SPDX-License-Identifier: MIT
// The files that are followed, as one row of blocks: a ring's segments one after the other, or one recording.
// Segments come, are sealed, and are evicted while this reads; a recorder dies and another goes on in the
// ring.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recording/recording.h"

namespace forktail::live
{

class Tail
{
public:
	Tail(const std::string &path, uint64_t from_ns) : path_(path), from_ns_(from_ns) {}
	~Tail() { ft_reader_close(reader_); }
	Tail(const Tail &) = delete;
	Tail &operator=(const Tail &) = delete;

	enum class Got { Block, Nothing, Failed };
	// The next whole block that is there. Its manifest is the first block of each file. Failed: *error is
	// one sentence.
	Got Next(ft_block *block, std::string *error);

	// All is read, the last file has its trailer, and there is no other.
	bool ended() const { return reader_ && ft_reader_sealed(reader_) && at_end_; }
	uint64_t damaged() const { return damaged_; }

	// Segments and their bytes, as of the last look at the directory; looks again if that was long ago.
	struct OnDisk {
		uint64_t bytes = 0, oldest_ns = 0;
		uint32_t segments = 0;
	};
	OnDisk Look();

private:
	bool Begin(std::string *error);
	bool BeginRing(std::string *error);
	bool Open(const std::string &path, std::string *error);
	bool OpenNext();
	bool OpenLater();
	std::vector<uint64_t> List();
	std::string SegmentPath(uint64_t number) const;

	std::string path_;
	uint64_t from_ns_;
	bool ring_ = false, at_end_ = false;
	uint64_t number_ = 0; // of the segment being read
	ft_reader *reader_ = nullptr;
	uint64_t damaged_ = 0;
	uint64_t looked_ns_ = 0, listed_ns_ = 0, pause_ns_ = 0;
	uint64_t oldest_number_ = 0;
	OnDisk on_disk_;
};

} // namespace forktail::live
