// SPDX-License-Identifier: MIT
// forktail: the one command a user types. What needs root or a load goes to the C programs that sit beside
// this one, so that a server needs no analysis and a client no privileges; the rest is done here.
//
// Exit status: 0 done, 1 the answer is "no", 2 usage, 3 the environment or the input can't.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

#include "analysis/output/explain.h"
#include "analysis/outside.h"
#include "lab/lab.h"
#include "progress_line.h"
#include "report/report.h"

namespace
{

enum { kDone = 0, kUsage = 2, kCant = 3 };

const char kHelp[] =
    "forktail names the kernel event behind every Redis latency spike.\n"
    "\n"
    "  forktail record --pid PID -o RUN/server.forktail   record where a server's time goes (root)\n"
    "  forktail load -o RUN/load.forktail ...             put load on a server and log every request\n"
    "  forktail explain RUN                               say what made the slow requests slow\n"
    "  forktail report RUN -o FILE.html                   the same as a page with a timeline\n"
    "  forktail lab demo                                  all of it, on a server of its own\n"
    "  forktail lab run NAME                              an experiment: tables, charts, causes\n"
    "  forktail doctor                                    what this host lets forktail record\n"
    "\n"
    "forktail COMMAND --help tells a command's options.\n";

// Runs one of the C programs in place of this one: the one beside this program, else the one on PATH.
int Exec(const char *program, const char *first, int argc, char **argv)
{
	std::vector<char *> args = {const_cast<char *>(program)};
	if (first)
		args.push_back(const_cast<char *>(first));
	for (int i = 0; i < argc; i++)
		args.push_back(argv[i]);
	args.push_back(nullptr);

	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	if (length > 0) {
		std::string path(self, static_cast<size_t>(length));
		path = path.substr(0, path.rfind('/') + 1) + program;
		execv(path.c_str(), args.data());
		if (errno != ENOENT) {
			fprintf(stderr, "forktail: can't run %s: %s\n", path.c_str(), strerror(errno));
			return kCant;
		}
	}
	execvp(program, args.data());
	fprintf(stderr, "forktail: can't run %s, which should lie beside forktail or on PATH: %s\n", program,
		strerror(errno));
	return kCant;
}

// Parses into `app`'s variables. True: go on; false: *status is what to exit with.
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

bool ParseSlow(const std::string &text, forktail::Threshold *slow)
{
	std::string error;
	if (text.empty() || forktail::ParseThreshold(text, slow, &error))
		return true;
	fprintf(stderr, "forktail: %s\n", error.c_str());
	return false;
}

// How much memory the explanation of a run may take, however long that is.
void AddMemory(CLI::App *app, forktail::ExplainOptions *options)
{
	app->add_option("--memory", options->memory_bytes,
			"memory to take, about, however long the run is: 64M, 2G; default 256M")
	    ->transform(CLI::AsSizeValue(false))
	    ->check(CLI::Range(uint64_t{16} << 20, uint64_t{1} << 44));
}

// Explains, and shows how far that is.
bool Read(const std::string &run, forktail::ExplainOptions options, forktail::Explanation *explanation,
	  std::string *error, int *status)
{
	forktail::ProgressLine line("reading " + forktail::Visible(run));
	options.progress = [&](double done) { line.Show(done); };
	bool read = forktail::ExplainRun(run, options, explanation, error, status);
	explanation->progress = forktail::Progress(); // the line goes
	return read;
}

bool Print(const forktail::Explanation &explanation, const forktail::ExplainOptions &options, bool json)
{
	if (json)
		return forktail::WriteExplainJson(explanation, options, stdout);
	std::string text = forktail::ExplainText(explanation, options);
	return fwrite(text.data(), 1, text.size(), stdout) == text.size();
}

// Which part of a run is meant.
struct PartTexts {
	std::string since, until, around;
};
void AddPart(CLI::App *app, PartTexts *texts)
{
	app->add_option(
	    "--since", texts->since,
	    "only requests due from then on: +12.5s after the first, -5m before the end, 20:15:03 or "
	    "2026-11-22T20:15:03 in UTC, or seconds since 1970");
	app->add_option("--until", texts->until, "only requests due before then");
	app->add_option("--around", texts->around,
			"only requests due around then: T, or T,WIDTH (+12.5s,2s); default width 10s");
}
bool ParsePart(const PartTexts &texts, forktail::ExplainOptions *options)
{
	std::string error;
	if (forktail::ParsePart(texts.since, texts.until, texts.around, &options->part, &error))
		return true;
	fprintf(stderr, "forktail: %s\n", forktail::Visible(error).c_str());
	return false;
}

int Explain(int argc, char **argv)
{
	CLI::App app("Says what made the slow requests of a run slow.", "forktail explain");
	std::string run, slow;
	bool json = false;
	forktail::ExplainOptions options;
	app.add_option("RUN", run, "run directory, or one .forktail file")->required();
	app.add_option("--slow", slow, "what is slow: a duration (1ms) or a percentile (p99.9); default p99");
	app.add_option("--episodes", options.episodes, "episodes to show")->capture_default_str();
	app.add_flag("--json", json, "print JSON (docs/explain-json.md)");
	app.add_flag("--requests", options.requests, "with --json: list every slow request and its parts");
	AddMemory(&app, &options);
	PartTexts part;
	AddPart(&app, &part);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	if (!ParseSlow(slow, &options.slow) || !ParsePart(part, &options))
		return kUsage;
	if (options.requests && !json) {
		fprintf(stderr, "forktail: --requests needs --json\n");
		return kUsage;
	}
	options.colour = !json && isatty(STDOUT_FILENO) && !getenv("NO_COLOR");

	forktail::Explanation explanation;
	std::string error;
	if (!Read(run, options, &explanation, &error, &status)) {
		fprintf(stderr, "forktail: %s\n", error.c_str());
		return status;
	}
	if (!Print(explanation, options, json) || fflush(stdout)) {
		fprintf(stderr, "forktail: can't write the explanation: %s\n", strerror(errno));
		return kCant;
	}
	return kDone;
}

int Report(int argc, char **argv)
{
	CLI::App app("Writes a run as one HTML page that opens offline.", "forktail report");
	std::string run, slow, out;
	forktail::ExplainOptions options;
	app.add_option("RUN", run, "run directory, or one .forktail file")->required();
	app.add_option("-o,--output", out, "the page")->required();
	AddMemory(&app, &options);
	app.add_option("--slow", slow, "what is slow: a duration (1ms) or a percentile (p99.9); default p99");
	PartTexts part;
	AddPart(&app, &part);
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	if (!ParseSlow(slow, &options.slow) || !ParsePart(part, &options))
		return kUsage;
	options.page = true;
	forktail::Explanation explanation;
	std::string error;
	if (!Read(run, options, &explanation, &error, &status)) {
		fprintf(stderr, "forktail: %s\n", error.c_str());
		return status;
	}
	if (!forktail::WriteReport(explanation, out, &error)) {
		fprintf(stderr, "forktail: %s\n", error.c_str());
		return kCant;
	}
	return kDone;
}

} // namespace

int main(int argc, char **argv)
{
	std::string command = argc > 1 ? argv[1] : "";
	int rest = argc - 2;
	char **args = argv + 2;
	if (command == "explain")
		return Explain(rest, args);
	if (command == "report")
		return Report(rest, args);
	if (command == "record")
		return Exec("forktail-record", nullptr, rest, args);
	if (command == "doctor")
		return Exec("forktail-record", "--doctor", rest, args);
	if (command == "load")
		return Exec("forktail-load", nullptr, rest, args);
	if (command == "lab")
		return forktail::LabMain(argc - 1, argv + 1);
	if (command == "--version" || command == "version") {
		printf("forktail %s\n", FORKTAIL_VERSION);
		return kDone;
	}
	if (command == "help" || command == "--help" || command == "-h") {
		fputs(kHelp, stdout);
		return kDone;
	}
	if (command.empty())
		fprintf(stderr, "forktail: a command is missing; forktail help lists them\n");
	else
		fprintf(stderr, "forktail: there is no command '%s'; forktail help lists them\n",
			command.c_str());
	return kUsage;
}
