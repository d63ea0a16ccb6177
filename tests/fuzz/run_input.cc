// SPDX-License-Identifier: MIT
// See run_input.h.
#include "run_input.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <xxhash.h>
#include <zstd.h>
#define _Static_assert static_assert // layout.h is C
#include "common/text.h"
#include "recording/layout.h"
#include "recording/recording.h"
#include "tests/fuzz/scratch.h"

namespace forktail::fuzz
{
namespace
{

constexpr size_t kFiles = 3, kUnpacked = 1 << 20;
constexpr char kMagic[] = {'F', 'T', 'B', 'K'};

// The payload before its compression, if it was compressed.
std::string Unpacked(const ft_block_header &h, std::string payload)
{
	if (!(h.flags & FT_BLOCK_ZSTD) || h.raw_bytes > kUnpacked)
		return payload;
	std::string raw(h.raw_bytes, '\0');
	size_t n = ZSTD_decompress(raw.data(), raw.size(), payload.data(), payload.size());
	return n == raw.size() ? raw : payload;
}

// A complete block from bytes that may be one: kind, count and record size stay, as far as they can.
std::string Mended(ft_block_header h, std::string payload, uint32_t sequence)
{
	payload = Unpacked(h, std::move(payload));
	uint32_t known = ft_record_size(h.kind);
	if (!known || !h.record_size || h.record_size > payload.size())
		h.record_size = known;
	if (h.record_size) {
		h.count = static_cast<uint32_t>(payload.size() / h.record_size);
		payload.resize(h.count * h.record_size);
	}
	h.flags = 0;
	h.version = h.version > FT_FORMAT_VERSION ? 1 : h.version;
	h.raw_bytes = h.stored_bytes = static_cast<uint32_t>(payload.size());
	h.sequence = sequence;
	h.payload_xxh32 = XXH32(payload.data(), payload.size(), 0);
	h.header_xxh32 = XXH32(&h, offsetof(ft_block_header, header_xxh32), 0);
	return std::string(reinterpret_cast<const char *>(&h), sizeof h) + payload;
}

std::vector<std::string> Split(const std::string &input)
{
	const std::string magic(kMagic, sizeof kMagic);
	size_t at = std::min(input.find(magic), input.size());
	std::vector<std::string> files = {input.substr(0, at)};
	uint32_t sequence = 0;
	while (at < input.size()) {
		size_t next = std::min(input.find(magic, at + magic.size()), input.size());
		std::string block = input.substr(at, next - at);
		at = next;
		ft_block_header h = {};
		size_t head = std::min(block.size(), sizeof h);
		memcpy(&h, block.data(), head);
		if (files.size() == 1 || (h.kind == FT_BLOCK_MANIFEST && files.size() <= kFiles)) {
			files.emplace_back();
			sequence = 0;
		}
		files.back() += Mended(h, block.substr(head), sequence++);
	}
	return files;
}

} // namespace

std::vector<std::string> RunFiles(const uint8_t *data, size_t size)
{
	const std::string input(reinterpret_cast<const char *>(data), size);
	if (!input.empty() && input[0] == 'r')
		return {"", input.substr(1)};
	return Split(input);
}

std::string RecordingName(size_t i)
{
	return std::to_string(i) + ".forktail";
}

std::string WriteRun(const std::string &name, const std::vector<std::string> &files)
{
	char path[SCRATCH_PATH];
	const auto place = [&](const std::string &file) { return name + "/" + file; };
	scratch_write(place("run.json").c_str(), files[0].data(), files[0].size());
	for (size_t i = 1; i <= kFiles + 1; i++) {
		const std::string file = place(RecordingName(i));
		scratch_path(path, file.c_str());
		if (i < files.size())
			scratch_write(file.c_str(), files[i].data(), files[i].size());
		else
			remove(path);
	}
	scratch_path(path, name.c_str());
	return path;
}

void Fail(const char *what, const std::string &where)
{
	fprintf(stderr, "%s: %s\n", what, where.substr(0, 2000).c_str());
	abort();
}

void CheckVisible(const std::string &text, const char *what)
{
	for (size_t at = 0, end; at < text.size(); at = end + 1) {
		end = std::min(text.find('\n', at), text.size());
		if (visible_text(nullptr, 0, text.data() + at, end - at) != end - at)
			Fail(what, text.substr(at, end - at));
	}
}

std::string Contents(const std::string &path)
{
	std::string text;
	char chunk[1 << 16];
	FILE *file = fopen(path.c_str(), "rb");
	for (size_t n; file && (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
		text.append(chunk, n);
	if (file)
		fclose(file);
	return text;
}

} // namespace forktail::fuzz
