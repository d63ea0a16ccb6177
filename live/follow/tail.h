// SPDX-License-Identifier: MIT
// The followed files as one sequence of blocks: the segments of a ring, or one recording. Segments are
// created, sealed and evicted meanwhile, and a new recorder may continue in the ring.
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
	// Returns the next complete block. The first block of each file is its manifest. Failed: *error is
	// one sentence.
	Got Next(ft_block *block, std::string *error);

	// All data is read, the last file is sealed, and there is no next one.
	bool ended() const { return reader_ && ft_reader_sealed(reader_) && at_end_; }
	uint64_t damaged() const { return damaged_; }

	// Segments and bytes of the last listing of the directory; lists again after some time.
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
	uint64_t number_ = 0; // of the current segment
	ft_reader *reader_ = nullptr;
	uint64_t damaged_ = 0;
	uint64_t looked_ns_ = 0, listed_ns_ = 0, pause_ns_ = 0;
	uint64_t oldest_number_ = 0;
	OnDisk on_disk_;
};

} // namespace forktail::live
