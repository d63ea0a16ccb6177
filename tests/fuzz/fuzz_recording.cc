// SPDX-License-Identifier: MIT
// Everything that reads a run, under libFuzzer: the reader of blocks, in order and by their places, the
// tables filled from them, the analysis, and its text and JSON. Compiled with FUZZ_PAGE also the page, which
// takes ten times as long. Nothing may crash, and the output may have no terminal control sequence, whatever
// names the recordings have. run_input.h says what an input is.
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/report.h"
#include "analysis/text.h"
#include "common/json.h"
#include "recording/recording.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/run_input.h"
#include "tests/fuzz/scratch.h"
#include "tests/support/explained.h"

namespace
{

using forktail::fuzz::CheckVisible;
using forktail::fuzz::Contents;
using forktail::fuzz::Fail;

void CheckPage(const forktail::analysis::Explained &explanation)
{
	char path[SCRATCH_PATH];
	scratch_path(path, "page.html");
	std::string error;
	if (!forktail::analysis::report::WriteReport(explanation, explanation.reading.get(), path, &error))
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

void CheckFile(const std::string &path)
{
	char error[512];
	ft_reader *r = nullptr;
	if (ft_reader_open(&r, path.c_str(), error, sizeof error))
		return;
	CheckPlaces(r, false);
	CheckPlaces(r, true);
	ft_reader_close(r);
}

void Explain(const std::string &path)
{
	forktail::analysis::Explained explanation;
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
	const std::vector<std::string> files = forktail::fuzz::RunFiles(data, size);
	const std::string run = forktail::fuzz::WriteRun("run", files);
	for (size_t i = 1; i < files.size(); i++)
		CheckFile(run + "/" + forktail::fuzz::RecordingName(i));
	Explain(run);
	return 0;
}
