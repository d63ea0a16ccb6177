// SPDX-License-Identifier: MIT
// Everything that reads a run, under libFuzzer: the reader of blocks, in order and by their places, the
// tables filled from them, the analysis, and its text and JSON. Compiled with FUZZ_PAGE also the page, which
// takes ten times as long. Nothing may crash, and the output may have no terminal control sequence, whatever
// names the recordings have.
//
// An input is a run. Its blocks get the right lengths and hashes, which no fuzzer would guess. Each manifest
// begins another recording, and everything before the first block is run.json. With a leading 'r' it is one
// recording, unchanged.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <xxhash.h>
#include <zstd.h>

#include "analysis/explain/explain.h"
#include "analysis/text/json.h"
#include "analysis/text/text.h"
#include "common/json/json_read.h"
#define _Static_assert static_assert // layout.h is C
#include "analysis/report/report.h"
#include "common/text/visible.h"
#include "recording/layout.h"
#include "recording/recording.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/scratch.h"

namespace
{

constexpr size_t kFiles = 3, kUnpacked = 1 << 20;
constexpr char kMagic[] = {'F', 'T', 'B', 'K'};

[[noreturn]] void Fail(const char *what, const std::string &where)
{
	fprintf(stderr, "%s: %s\n", what, where.substr(0, 2000).c_str());
	abort();
}

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

// run.json first, then recordings.
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

// Every line is unchanged by visible_text.
void CheckVisible(const std::string &text, const char *what)
{
	for (size_t at = 0, end; at < text.size(); at = end + 1) {
		end = std::min(text.find('\n', at), text.size());
		if (visible_text(nullptr, 0, text.data() + at, end - at) != end - at)
			Fail(what, text.substr(at, end - at));
	}
}

std::string Contents(const char *path)
{
	std::string text;
	char chunk[1 << 16];
	FILE *file = fopen(path, "rb");
	for (size_t n; file && (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
		text.append(chunk, n);
	if (file)
		fclose(file);
	return text;
}

void CheckPage(const forktail::analysis::Explanation &explanation)
{
	char path[SCRATCH_PATH];
	scratch_path(path, "page.html");
	std::string error;
	if (!forktail::analysis::report::WriteReport(explanation, path, &error))
		Fail("no page", error);
	std::string page = Contents(path);
	size_t begin = page.find('>', page.find("id=\"run\"")), end = page.find("</script", begin);
	if (begin == std::string::npos || end == std::string::npos)
		Fail("the page has no run", "");
	std::string run = page.substr(begin + 1, end - begin - 1);
	if (forktail::common::ParseJson(run).is_discarded())
		Fail("the page's run is no JSON", run);
	CheckVisible(run, "the page's text steers terminals");
}

// A table from a scan has the blocks of a walk over the file, and no more. One from an accepted index may be
// wrong, within limits. A block read from a place is the requested one.
void CheckPlaces(ft_reader *r, bool scan)
{
	ft_places places;
	if (ft_reader_places(r, scan, &places, nullptr, nullptr))
		Fail("no table", "");
	uint64_t end = 0;
	for (size_t i = 0; i < places.count; i++) {
		const ft_place &p = places.all[i];
		ft_block walked, read;
		if (p.offset < end || p.end_ns < p.start_ns || p.end_ns > 1ull << 62)
			Fail("places overlap, or times make no sense", std::to_string(i));
		end = p.offset + sizeof(ft_block_header) + p.stored_bytes;
		std::string payload;
		if (scan) {
			if (ft_reader_next(r, &walked) != 1 || walked.offset != p.offset ||
			    walked.kind != p.kind)
				Fail("a place that no walk gives", std::to_string(i));
			payload.assign(static_cast<const char *>(walked.payload), walked.bytes);
		}
		int rc = ft_reader_read(r, &p, &read);
		if (rc < 0 || (scan && rc == 0))
			Fail("a block is not read", std::to_string(i));
		if (rc && (read.kind != p.kind || read.count != p.count || read.bytes != p.raw_bytes))
			Fail("another block is read", std::to_string(i));
		if (scan &&
		    payload.compare(0, payload.npos, static_cast<const char *>(read.payload), read.bytes))
			Fail("another payload is read", std::to_string(i));
	}
	ft_block more;
	if (scan && ft_reader_next(r, &more) != 0)
		Fail("a walk gives more", "");
	ft_places_free(&places);
}

void CheckFile(const std::string &name)
{
	char path[SCRATCH_PATH], error[512];
	scratch_path(path, name.c_str());
	ft_reader *r = nullptr;
	if (ft_reader_open(&r, path, error, sizeof error))
		return;
	CheckPlaces(r, false);
	CheckPlaces(r, true);
	ft_reader_close(r);
}

void Explain(const char *path)
{
	forktail::analysis::Explanation explanation;
	std::string error;
	int status = 0;
	if (!forktail::analysis::ExplainRun(path, {}, &explanation, &error, &status)) {
		CheckVisible(error, "the error steers terminals");
		return;
	}
	CheckVisible(forktail::analysis::ExplainText(explanation, {}), "the text steers terminals");
	std::string json = forktail::analysis::ExplainJson(explanation, true);
	if (forktail::common::ParseJson(json).is_discarded())
		Fail("the JSON is none", json);
	CheckVisible(json, "the JSON steers terminals");
	if (FUZZ_PAGE)
		CheckPage(explanation);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	std::string input(reinterpret_cast<const char *>(data), size);
	char path[SCRATCH_PATH];
	if (size && data[0] == 'r') {
		scratch_write("raw/only.forktail", data + 1, size - 1);
		CheckFile("raw/only.forktail");
		scratch_path(path, "raw");
		Explain(path);
		return 0;
	}
	std::vector<std::string> files = Split(input);
	scratch_write("run/run.json", files[0].data(), files[0].size());
	for (size_t i = 1; i <= kFiles + 1; i++) {
		std::string name = "run/" + std::to_string(i) + ".forktail";
		if (i < files.size()) {
			scratch_write(name.c_str(), files[i].data(), files[i].size());
			CheckFile(name);
		} else {
			scratch_path(path, name.c_str());
			remove(path);
		}
	}
	scratch_path(path, "run");
	Explain(path);
	return 0;
}
