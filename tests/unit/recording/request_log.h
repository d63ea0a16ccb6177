// SPDX-License-Identifier: MIT
// Request logs for the tests of their columns: made, written, and decoded from memory that ends at an
// unreadable page, so that a read beyond a payload crashes even without AddressSanitizer.
#pragma once

#include <algorithm>
#include <cerrno>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/unit/recording/support.h"

namespace forktail::test
{

class Guarded
{
public:
	Guarded()
	{
		const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
		bytes_ = (1 << 20) + page;
		base_ = static_cast<char *>(
		    mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		REQUIRE(base_ != MAP_FAILED);
		end_ = base_ + (1 << 20);
		REQUIRE(mprotect(end_, page, PROT_NONE) == 0);
	}
	~Guarded() { munmap(base_, bytes_); }
	Guarded(const Guarded &) = delete;
	Guarded &operator=(const Guarded &) = delete;
	const char *place(const std::string &payload)
	{
		return static_cast<const char *>(
		    std::memcpy(end_ - payload.size(), payload.data(), payload.size()));
	}

private:
	char *base_, *end_;
	size_t bytes_;
};

inline bool same_request(const ft_request &a, const ft_request &b)
{
	return a.intended_ns == b.intended_ns && a.start_ns == b.start_ns && a.end_ns == b.end_ns &&
	       a.connection == b.connection && a.op == b.op && a.status == b.status && a.behind == b.behind &&
	       a.arrival_ns == b.arrival_ns;
}

// -EBADMSG, or the decoded requests. Each array has room for exactly `count`.
inline int decode(Guarded &memory, const std::string &payload, uint32_t count,
		  std::vector<ft_request> *to = nullptr)
{
	std::vector<uint64_t> intended(count), start(count), end(count), arrival(count);
	std::vector<uint32_t> connection(count);
	std::vector<uint8_t> op(count), status(count), behind(count);
	const ft_request_columns out = {intended.data(), start.data(),	end.data(),    connection.data(),
					op.data(),	 status.data(), behind.data(), arrival.data(),
					nullptr,	 nullptr,	nullptr,       nullptr};
	const char *placed = memory.place(payload);
	const int rc = ft_requests_decode(placed, payload.size(), count, &out);
	// The short decoder reads the same payload: never beyond it, and to the same end if it is valid.
	std::vector<uint64_t> latencies(count);
	std::vector<uint8_t> ops(count);
	const int quick = ft_requests_latencies(placed, payload.size(), count, latencies.data(), ops.data());
	if (rc > 0)
		CHECK(quick == rc);
	size_t differ = 0;
	for (size_t i = 0; rc > 0 && i < count; i++)
		differ += latencies[i] != end[i] - intended[i] || ops[i] != op[i];
	CHECK(differ == 0);
	for (int i = 0; to && i < rc; i++)
		to->push_back({intended[static_cast<size_t>(i)], start[static_cast<size_t>(i)],
			       end[static_cast<size_t>(i)], connection[static_cast<size_t>(i)],
			       op[static_cast<size_t>(i)], status[static_cast<size_t>(i)],
			       behind[static_cast<size_t>(i)], arrival[static_cast<size_t>(i)]});
	return rc;
}

// `together`: equal requests that follow each other are appended by one call.
inline std::vector<Block> write_requests(const std::string &path, const std::vector<ft_request> &log,
					 uint32_t flush_every = FT_REQUEST_BLOCK, bool together = false)
{
	ft_writer *w = nullptr;
	ft_requests r;
	REQUIRE(ft_writer_open(&w, path.c_str(), "{}") == 0);
	REQUIRE(ft_requests_init(&r) == 0);
	REQUIRE(ft_requests_flush(&r, w) == 0); // nothing yet: no block
	for (size_t i = 0, after; i < log.size(); i = after) {
		after = i + 1;
		if (ft_requests_full(&r) || r.count == flush_every)
			REQUIRE(ft_requests_flush(&r, w) == 0);
		while (together && after < log.size() && same_request(log[i], log[after]) &&
		       r.count + (after - i) < flush_every)
			after++;
		ft_requests_append_equal(&r, &log[i], static_cast<uint32_t>(after - i));
	}
	REQUIRE(ft_requests_flush(&r, w) == 0);
	ft_requests_free(&r);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	const Contents c = read_recording(path);
	REQUIRE(c.rc == 0);
	return {c.blocks.begin() + 1, c.blocks.end()};
}

// 0, 1, and both sides of every power of two: every length of a varint and every carry.
inline std::vector<uint64_t> edges()
{
	std::vector<uint64_t> all = {0, UINT64_MAX};
	for (int bit = 0; bit < 64; bit++)
		for (const int64_t d : {-1, 0, 1})
			all.push_back((1ull << bit) + static_cast<uint64_t>(d));
	return all;
}

inline ft_request request_of(std::mt19937_64 &random, const std::vector<uint64_t> &values)
{
	const auto any = [&] { return values[random() % values.size()]; };
	const uint64_t end = any(), unread = any();
	return {any(),
		any(),
		end,
		static_cast<uint32_t>(any()),
		static_cast<uint8_t>(any()),
		static_cast<uint8_t>(any()),
		static_cast<uint8_t>(random() % 3 ? any() : 0),
		random() % 3 && unread != UINT64_MAX ? end - unread : 0};
}

inline std::vector<ft_request> typical(size_t count)
{
	std::mt19937_64 random(1);
	std::vector<ft_request> log;
	uint64_t now = 3'000'000'000'000;
	for (size_t i = 0; i < count; i++) {
		const uint64_t due = now += random() % 20'000;
		const uint64_t start = due + random() % 30'000;
		log.push_back({due, start, start + 60'000 + random() % 60'000,
			       static_cast<uint32_t>(random() % 50), static_cast<uint8_t>(random() % 2), 0, 0,
			       0});
	}
	return log;
}

} // namespace forktail::test
