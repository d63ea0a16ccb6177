// SPDX-License-Identifier: MIT
// HdrHistogram's interval log: a decoder written here from the format's description returns every count, and
// the lines have the form that readers split at commas.
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>
#include <zlib.h>

#include "recording/hdr_log.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using forktail::test::read_file;
using forktail::test::TempDir;

namespace
{

using Bytes = std::vector<uint8_t>;

Bytes from_base64(const std::string &text)
{
	static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	REQUIRE(text.size() % 4 == 0);
	Bytes bytes;
	uint32_t bits = 0;
	int bit_count = 0;
	for (char c : text.substr(0, text.find('='))) {
		const size_t digit = digits.find(c);
		REQUIRE(digit != std::string::npos);
		bits = bits << 6 | static_cast<uint32_t>(digit);
		bit_count += 6;
		if (bit_count >= 8)
			bytes.push_back(static_cast<uint8_t>(bits >> (bit_count -= 8)));
	}
	return bytes;
}

uint64_t big_endian(const Bytes &bytes, size_t at, size_t size)
{
	REQUIRE(at + size <= bytes.size());
	uint64_t value = 0;
	for (size_t i = 0; i < size; i++)
		value = value << 8 | bytes[at + i];
	return value;
}

struct Decoded {
	std::vector<uint64_t> counts;
	size_t payload = 0;
};

Decoded decode(const std::string &base64)
{
	const Bytes wrapped = from_base64(base64);
	CHECK(big_endian(wrapped, 0, 4) == 0x1c849314);
	REQUIRE(big_endian(wrapped, 4, 4) == wrapped.size() - 8);
	Bytes plain(1 << 20);
	uLongf size = plain.size();
	REQUIRE(uncompress(plain.data(), &size, wrapped.data() + 8, wrapped.size() - 8) == Z_OK);
	plain.resize(size);
	CHECK(big_endian(plain, 0, 4) == 0x1c849313);
	Decoded decoded;
	decoded.payload = big_endian(plain, 4, 4);
	REQUIRE(decoded.payload == plain.size() - 40);
	CHECK(big_endian(plain, 8, 4) == 0);
	CHECK(big_endian(plain, 12, 4) == 3);
	CHECK(big_endian(plain, 16, 8) == 1);
	CHECK(big_endian(plain, 24, 8) == (1ull << 42) - 1);
	CHECK(big_endian(plain, 32, 8) == 0x3ff0000000000000); // 1.0
	for (size_t at = 40; at < plain.size();) {
		uint64_t value = 0;
		for (unsigned shift = 0;; shift += 7) {
			REQUIRE(at < plain.size());
			const uint8_t byte = plain[at++];
			if (shift == 56) { // the ninth byte is all value
				value |= static_cast<uint64_t>(byte) << shift;
				break;
			}
			value |= static_cast<uint64_t>(byte & 0x7f) << shift;
			if (!(byte & 0x80))
				break;
		}
		const auto count = static_cast<int64_t>(value >> 1 ^ (0 - (value & 1)));
		if (count < 0)
			decoded.counts.resize(decoded.counts.size() + static_cast<size_t>(-count));
		else
			decoded.counts.push_back(static_cast<uint64_t>(count));
		REQUIRE(decoded.counts.size() <= FT_HIST_SLOTS);
	}
	return decoded;
}

std::vector<std::string> lines_of(const std::string &text)
{
	std::vector<std::string> lines;
	std::istringstream in(text);
	for (std::string line; std::getline(in, line);)
		lines.push_back(line);
	return lines;
}

std::vector<std::string> fields_of(const std::string &line)
{
	std::vector<std::string> fields;
	std::istringstream in(line);
	for (std::string field; std::getline(in, field, ',');)
		fields.push_back(field);
	return fields;
}

std::unique_ptr<ft_histogram> histogram(const std::vector<uint64_t> &values)
{
	auto h = std::make_unique<ft_histogram>();
	for (uint64_t v : values)
		ft_histogram_add(h.get(), v);
	return h;
}

// Counts as in the log: those behind the highest value are omitted.
std::vector<uint64_t> counts_of(const ft_histogram &h)
{
	std::vector<uint64_t> counts(std::begin(h.slots), std::end(h.slots));
	while (!counts.empty() && counts.back() == 0)
		counts.pop_back();
	return counts;
}

// One line of one histogram, and its fields.
std::vector<std::string> written(const ft_histogram &h, const char *tag = nullptr)
{
	TempDir dir;
	hdr_log *log = nullptr;
	REQUIRE(hdr_log_open(&log, dir.file("log").c_str(), 1700000000123456789, 5000) == 0);
	REQUIRE(hdr_log_write(log, tag, 5000, 1000000000, &h) == 0);
	REQUIRE(hdr_log_close(log) == 0);
	const auto lines = lines_of(read_file(dir.file("log")));
	REQUIRE(lines.size() == 4);
	return fields_of(lines[3]);
}

} // namespace

TEST_CASE("an HDR log's header and lines have the known format")
{
	TempDir dir;
	hdr_log *log = nullptr;
	REQUIRE(hdr_log_open(&log, dir.file("log").c_str(), 1700000000123456789, 5000000000) == 0);
	const auto h = histogram({1000000, 2500000});
	CHECK(hdr_log_write(log, "GET", 5000000000, 1000000000, h.get()) == 0);
	CHECK(hdr_log_write(log, "SET", 6250000000, 999600000, h.get()) == 0);
	CHECK(hdr_log_write(log, "", 7000000000, 1, h.get()) == 0);
	CHECK(hdr_log_close(log) == 0);
	const auto lines = lines_of(read_file(dir.file("log")));
	REQUIRE(lines.size() == 6);
	CHECK(lines[0] == "#[Histogram log format version 1.3]");
	CHECK(lines[1] == "#[StartTime: 1700000000.123 (seconds since epoch), Tue Nov 14 22:13:20 UTC 2023]");
	CHECK(lines[2] ==
	      R"("StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram")");
	CHECK(lines[3].rfind("Tag=GET,0.000,1.000,2.500,HISTFAAA", 0) == 0);
	CHECK(lines[4].rfind("Tag=SET,1.250,1.000,2.500,HISTFAAA", 0) == 0);
	CHECK(lines[5].rfind("2.000,0.000,2.500,HISTFAAA", 0) == 0);
}

TEST_CASE("every slot is decoded with its count")
{
	SECTION("the ends of the first buckets, where slots become wider")
	{
		std::vector<uint64_t> values;
		for (unsigned bit = 0; bit <= 42; bit++)
			for (uint64_t v : {(1ull << bit) - 1, 1ull << bit, (1ull << bit) + 1})
				values.push_back(v);
		const auto h = histogram(values);
		CHECK(decode(written(*h)[3]).counts == counts_of(*h));
	}
	SECTION("one zero between counts, and two")
	{
		const auto h = histogram({0, 2, 5, 5, 5});
		const Decoded d = decode(written(*h)[3]);
		CHECK(d.counts == std::vector<uint64_t>{1, 0, 1, 0, 0, 3});
		CHECK(d.payload == 5); // a single zero is a count, several are one negative number
	}
	SECTION("values over the whole range")
	{
		std::vector<uint64_t> values;
		uint64_t x = 88172645463325252;
		for (int i = 0; i < 200000; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			values.push_back(x >> (22 + x % 40));
		}
		const auto h = histogram(values);
		CHECK(decode(written(*h)[3]).counts == counts_of(*h));
	}
	SECTION("counts of every length up to the largest zigzag value of 64 bits")
	{
		auto h = histogram({});
		for (unsigned bit = 0; bit < 63; bit++) {
			h->slots[3 * bit] = 1ull << bit;
			h->slots[3 * bit + 1] = (1ull << bit) - 1;
		}
		CHECK(decode(written(*h)[3]).counts == counts_of(*h));
	}
	SECTION("all slots in use")
	{
		auto h = histogram({});
		for (uint64_t i = 0; i < FT_HIST_SLOTS; i++)
			h->slots[i] = INT64_MAX - i * 0x123456789;
		CHECK(decode(written(*h)[3]).counts == counts_of(*h));
	}
	SECTION("none")
	{
		const auto fields = written(*histogram({}));
		CHECK(fields[2] == "0.000");
		CHECK(decode(fields[3]).counts.empty());
	}
}

TEST_CASE("text that would break a line is refused, and the log continues")
{
	TempDir dir;
	hdr_log *log = nullptr;
	REQUIRE(hdr_log_open(&log, dir.file("log").c_str(), 0, 5000) == 0);
	const auto h = histogram({7});
	for (const char *tag : {"a,b", "a b", "a\nb", ",", "a\t", "a\x7f"}) {
		INFO(tag);
		CHECK(hdr_log_write(log, tag, 5000, 1, h.get()) == -EINVAL);
	}
	CHECK(hdr_log_write(log, "GET", 4999, 1, h.get()) == -EINVAL);
	CHECK(hdr_log_write(log, "JSON.GET", 5000, 1, h.get()) == 0);
	CHECK(hdr_log_close(log) == 0);
	CHECK(lines_of(read_file(dir.file("log"))).size() == 4);
}

TEST_CASE("a log that cannot be created or written is an error")
{
	hdr_log *log = nullptr;
	CHECK(hdr_log_open(&log, "/nonexistent/log", 0, 0) == -ENOENT);
	CHECK(log == nullptr);
	CHECK(hdr_log_open(&log, "/dev/full", 0, 0) == -ENOSPC);
	CHECK(log == nullptr);
	CHECK(hdr_log_close(nullptr) == 0);
}
