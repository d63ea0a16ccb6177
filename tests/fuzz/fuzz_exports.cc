// SPDX-License-Identifier: MIT
// A run in every format of forktail export, under libFuzzer. Nothing may crash, no format that is text may
// have a character that steers terminals, and no cell of CSV may begin a formula. run_input.h says what an
// input is.
#include <cstdint>
#include <filesystem>
#include <string>

#include "analysis/exports/formats/formats.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/run_input.h"
#include "tests/fuzz/scratch.h"

namespace
{

namespace fs = std::filesystem;

// Times and counts have a sign, texts have a ' before it.
void CheckFormulas(const std::string &csv, const std::string &where)
{
	bool begins = true;
	for (size_t i = 0; i < csv.size(); i++) {
		const size_t at = csv[i] == '"' ? i + 1 : i;
		const char c = at < csv.size() ? csv[at] : ' ',
			   next = at + 1 < csv.size() ? csv[at + 1] : ' ';
		if (begins && (c == '=' || c == '@' || c == '\t' || c == '\r' ||
			       ((c == '+' || c == '-') && !(next >= '0' && next <= '9'))))
			forktail::fuzz::Fail("a cell begins a formula", where + ": " + csv.substr(at, 80));
		begins = csv[i] == ',' || csv[i] == '\n';
	}
}

void CheckOutput(const fs::path &path, const std::string &format)
{
	std::string text = forktail::fuzz::Contents(path);
	if (format == "perfetto")
		return; // protocol buffers
	if (format == "csv") // lines end with CR LF
		for (size_t at = 0; (at = text.find("\r\n", at)) != text.npos;)
			text.erase(at, 1);
	forktail::fuzz::CheckVisible(text, path.c_str());
	// Texts are quoted if they contain a comma, so not every comma begins a cell.
	if (format == "csv" && text.find('"') == text.npos)
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
