// SPDX-License-Identifier: MIT
// See command.h.
#include "command.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

#include "analysis/passes.h"
#include "common/json.h"
#include "common/process.h"
#include "progress_line.h"

namespace forktail::cli
{

// Parses into `app`'s variables. True: go on; false: *status is what to exit with.
int Refuse(const std::string &why, int status)
{
	fprintf(stderr, "forktail: %s\n", common::Visible(why).c_str());
	return status;
}

bool WriteText(const std::string &path, const std::string &text, std::string *error)
{
	common::Pending pending;
	if (!pending.Begin(path, common::Pending::kFile, error))
		return false;
	FILE *file = fopen(pending.at().c_str(), "w");
	const bool written = file && fwrite(text.data(), 1, text.size(), file) == text.size();
	if ((file && fclose(file)) || !written) {
		*error = "cannot write " + path + ": " + strerror(errno);
		return false;
	}
	return pending.Commit(error);
}

size_t Columns()
{
	constexpr size_t least = 40, most = 500, usual = 100;
	struct winsize size = {};
	size_t columns = usual;
	if (const char *text = getenv("COLUMNS"); text && atoi(text) > 0)
		columns = static_cast<size_t>(atoi(text));
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		columns = size.ws_col;
	return std::clamp(columns, least, most);
}

bool Parse(CLI::App *app, int argc, char **argv, int *status)
{
	try {
		std::vector<std::string> args(argv, argv + argc);
		std::reverse(args.begin(), args.end());
		app->parse(args);
		return true;
	} catch (const CLI::ParseError &e) {
		if (e.get_exit_code() == 0) { // --help
			app->exit(e);
			*status = kDone;
			return false;
		}
		fprintf(stderr, "%s: %s; see %s --help\n", app->get_name().c_str(), e.what(),
			app->get_name().c_str());
		*status = kUsage;
		return false;
	}
}

bool ParseSlow(const std::string &text, analysis::Threshold *slow)
{
	std::string error;
	if (text.empty() || analysis::ParseThreshold(text, slow, &error))
		return true;
	fprintf(stderr, "forktail: %s\n", error.c_str());
	return false;
}

void AddSlow(CLI::App *app, std::string *slow)
{
	app->add_option(
	       "--slow", *slow,
	       "Treat requests at or above this duration (1ms) or percentile (p99.9) as slow (default: p99)")
	    ->type_name("THRESHOLD");
}

void AddMemory(CLI::App *app, analysis::ExplainOptions *options)
{
	app->add_option("--memory", options->memory_bytes,
			"Use approximately SIZE of memory, independent of the run's length (16M to 16T, "
			"default: 256M)")
	    ->type_name("SIZE")
	    ->transform(CLI::AsSizeValue(false).description(""))
	    ->check(CLI::Range(uint64_t{16} << 20, uint64_t{1} << 44).description(""));
}

void AddPart(CLI::App *app, PartTexts *texts)
{
	app->add_option("--since", texts->since,
			"Explain only requests due at or after TIME: +12.5s after the first request, -5m "
			"before the end, "
			"20:15:03 or 2026-11-22T20:15:03 in UTC, or seconds since 1970")
	    ->type_name("TIME");
	app->add_option("--until", texts->until, "Explain only requests due before TIME")->type_name("TIME");
	app->add_option(
	       "--around", texts->around,
	       "Explain only requests due around TIME: TIME or TIME,WIDTH (+12.5s,2s; default width: 10s)")
	    ->type_name("TIME");
}
bool ParsePart(const PartTexts &texts, analysis::ExplainOptions *options)
{
	std::string error;
	if (ParsePart(texts.since, texts.until, texts.around, &options->part, &error))
		return true;
	fprintf(stderr, "forktail: %s\n", common::Visible(error).c_str());
	return false;
}

bool Explain(const std::string &run, analysis::ExplainOptions options, analysis::Reading *reading,
	     analysis::Explanation *explanation, std::string *error, int *status)
{
	ProgressLine line("reading " + common::Visible(run));
	options.progress = [&](double done) { line.Show(done); };
	bool explained = analysis::ExplainRun(run, options, reading, explanation, error, status);
	reading->progress = analysis::Progress(); // the line goes
	return explained;
}

std::filesystem::path OwnDirectory()
{
	std::error_code ec;
	return std::filesystem::read_symlink("/proc/self/exe", ec).parent_path();
}

std::filesystem::path Tree()
{
	std::error_code ec;
	const std::filesystem::path above = OwnDirectory().parent_path(),
				    link = above / "share/forktail/tree";
	if (std::filesystem::exists(link, ec))
		return link;
	return std::filesystem::exists(above / "CMakeCache.txt", ec) ? above.parent_path() : "";
}

int RunProgram(const char *program, const char *first, int argc, char **argv)
{
	const std::string path = common::FindProgram(program);
	if (path.empty()) {
		fprintf(stderr,
			"forktail: cannot find %s: install it in the directory of forktail or on PATH\n",
			program);
		return kCant;
	}
	std::vector<std::string> words = {program};
	if (first)
		words.push_back(first);
	return Become(path, words, argc, argv);
}

int Become(const std::string &path, std::vector<std::string> words, int argc, char **argv)
{
	std::vector<char *> args;
	for (std::string &word : words)
		args.push_back(word.data());
	args.insert(args.end(), argv, argv + argc);
	args.push_back(nullptr);
	execv(path.c_str(), args.data());
	fprintf(stderr, "forktail: cannot run %s: %s\n", path.c_str(), strerror(errno));
	return kCant;
}

} // namespace forktail::cli
