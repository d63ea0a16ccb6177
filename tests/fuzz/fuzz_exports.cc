// SPDX-License-Identifier: MIT
// A run in every format of forktail export, under libFuzzer. Nothing may crash, no format that is text may
// have a character that steers terminals, and no cell of CSV may begin a formula. run_input.h says what an
// input is.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "analysis/exports.h"
#include "common/text.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/run_input.h"
#include "tests/fuzz/scratch.h"

namespace
{

namespace fs = std::filesystem;

// Times and counts have a sign, texts have a ' before it.
void CheckFormulas(const std::string &csv, const std::string &where)
{
	const char *at = csv.data(), *const end = at + csv.size();
	std::string cell(csv.size(), '\0');
	for (uint64_t lines = 0; at < end;) {
		size_t length = 0;
		const csv_end ended = csv_read(&at, end, ',', cell.data(), &length, &lines);
		if (ended == CSV_OPEN_QUOTE || ended == CSV_AFTER_QUOTE)
			forktail::fuzz::Fail("no CSV", where);
		const std::string text = cell.substr(0, length);
		char *rest = nullptr;
		strtod(text.c_str(), &rest); // also -inf
		const bool number = *rest == '\0';
		if (!number && !text.empty() && std::string("=+-@\t\r").find(text[0]) != std::string::npos)
			forktail::fuzz::Fail("a cell begins a formula", where + ": " + text);
	}
}

void CheckOutput(const fs::path &path, const std::string &format)
{
	std::string text = forktail::fuzz::Contents(path);
	if (format == "perfetto")
		return;	     // protocol buffers
	if (format == "csv") // lines end with CR LF
		for (size_t at = 0; (at = text.find("\r\n", at)) != text.npos;)
			text.erase(at, 1);
	forktail::fuzz::CheckVisible(text, path.c_str());
	if (format == "csv")
		CheckFormulas(text, path);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	using namespace forktail;
	const std::string run = fuzz::WriteRun("run", fuzz::RunFiles(data, size));
	for (const analysis::exports::ExportFormat &format : analysis::exports::ExportFormats()) {
		if (!format.make)
			continue;
		char out[SCRATCH_PATH];
		std::string error;
		int status = 0;
		std::error_code ec;
		scratch_path(out, "out");
		fs::remove_all(out, ec);
		if (!analysis::exports::ExportRun(run, {}, format, out, &error, &status))
			fuzz::CheckVisible(error, "the error steers terminals");
		else if (!fs::is_directory(out))
			CheckOutput(out, format.name);
		else
			for (const auto &file : fs::directory_iterator(out))
				CheckOutput(file.path(), format.name);
	}
	return 0;
}
