// SPDX-License-Identifier: MIT
// See command.h.
#include "command.h"

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <langinfo.h>
#include <regex>
#include <unistd.h>
#include <vector>

#include "analysis/passes.h"
#include "common/interrupted.h"
#include "common/json.h"
#include "common/process.h"
#include "common/text.h"
#include "progress_line.h"

namespace forktail::cli
{

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

size_t Columns(int fd)
{
	return terminal_columns(fd, 100);
}

std::string Wrapped(const std::string &text, size_t columns)
{
	constexpr size_t column = 30; // of descriptions
	std::string out;
	for (const std::string &line : analysis::Lines(text)) {
		const size_t gap = line.find("  ", line.find_first_not_of(' '));
		const bool described = line.starts_with("  ") && gap != std::string::npos && gap < column;
		const size_t begin =
		    described ? line.find_first_not_of(' ', gap) : line.find_first_not_of(' ');
		if (line.size() <= columns || begin == std::string::npos) {
			out += line + "\n";
			continue;
		}
		out += line.substr(0, begin) + analysis::Wrap(line.substr(begin), begin, begin, columns);
	}
	return out;
}

analysis::Style StyleOf(int fd, const std::string &colour, bool ascii)
{
	setlocale(LC_CTYPE, "");
	const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
	analysis::Style style;
	style.columns = Columns(fd);
	style.unicode = !ascii && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	style.colour = colour == "always" || (colour == "auto" && isatty(fd) && !(no_colour && *no_colour) &&
					      !(terminal && strcmp(terminal, "dumb") == 0));
	return style;
}

std::string DidYouMean(const std::string &text, const std::vector<const char *> &names)
{
	const char *closest = closest_name(text.c_str(), names.data(), names.size());
	return closest ? std::string(" Did you mean ") + closest + "?" : "";
}

std::string UnknownCause(const std::string &name)
{
	std::vector<const char *> names;
	for (const analysis::CauseInfo &info : analysis::kCauseTable)
		if (info.kind != analysis::Kind::Timeline)
			names.push_back(info.name);
	const std::string closest = DidYouMean(name, names);
	return "unknown cause '" + name + "'." + (closest.empty() ? " forktail causes lists them" : closest);
}

namespace
{

// What CLI11 says, in our words.
std::string InOurWords(const CLI::App &app, const CLI::ParseError &error)
{
	static const struct {
		const char *pattern, *words;
	} kWords[] = {
	    {"Could not convert: (\\S+) = (.*)", "$1: expected a number, got \"$2\""},
	    {"(\\S+): \\d+ required (\\S+) missing", "$1 needs a value: $2"},
	    {"(\\S+): At Most (\\d+) required but received (\\d+)",
	     "$1 is given $3 times; at most $2 is allowed"},
	    {"(\\S+): At Least (\\d+) required but received (\\d+)",
	     "$1 is given $3 times; at least $2 is required"},
	    {"(\\S+): Value (\\S+) not in range (\\S+) to (\\S+)",
	     "$1: expected a number from $3 to $4, got \"$2\""},
	    {"(\\S+): (\\S+) not in \\{(.*)\\}", "$1: expected one of $3, got \"$2\""},
	    {"(\\S+): Number less than 0: (\\S+)", "$1: expected a number of at least 0, got \"$2\""},
	};
	const std::vector<std::string> extra = app.remaining();
	if (dynamic_cast<const CLI::ExtrasError *>(&error) && !extra.empty()) {
		const auto option = std::find_if(extra.begin(), extra.end(), [](const std::string &word) {
			return word.starts_with("-");
		});
		if (option == extra.end())
			return "unexpected argument \"" + extra[0] + "\"";
		std::vector<std::string> names;
		std::vector<const char *> all;
		for (const CLI::Option *o : app.get_options())
			for (const std::string &name : o->get_lnames())
				names.push_back("--" + name);
		for (const std::string &name : names)
			all.push_back(name.c_str());
		const std::string word = option->substr(0, option->find('='));
		return "unknown option " + word + "." + DidYouMean(word, all);
	}
	for (const auto &[pattern, words] : kWords)
		if (const std::string said = error.what(); std::regex_match(said, std::regex(pattern)))
			return std::regex_replace(said, std::regex(pattern), words);
	return error.what();
}

} // namespace

void AddJsonSchema(CLI::App *app, const char *schema, const bool *chosen, const char *other)
{
	app->add_flag_callback(
	    "--json-schema",
	    [=] {
		    fputs(chosen && *chosen ? other : schema, stdout);
		    throw CLI::Success();
	    },
	    "Print the JSON Schema (draft 2020-12) of the JSON output, and exit");
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
			const std::string examples = app->get_footer();
			app->footer("");
			std::string text = app->help();
			if (!examples.empty())
				text.insert(text.find("Usage:"), "\nExamples:\n" + examples + "\n");
			if (e.get_name() == "CallForHelp") // --json-schema has printed its answer
				fputs(Wrapped(text, Columns()).c_str(), stdout);
			*status = fflush(stdout) ? kCant : kDone;
			return false;
		}
		std::string why = common::Visible(InOurWords(*app, e));
		while (why.ends_with("."))
			why.pop_back();
		fprintf(stderr, "%s: %s%s %s --help\n", app->get_name().c_str(), why.c_str(),
			why.ends_with("?") ? " See" : ". See", app->get_name().c_str());
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
	app->add_option("--memory",
			"Use approximately SIZE of memory, independent of the run's length (16M to 16T, "
			"default: 256M)")
	    ->type_name("SIZE")
	    ->each([options](const std::string &text) {
		    constexpr uint64_t least = 16'000'000, most = uint64_t{1} << 44;
		    if (!parse_bytes(text.c_str(), &options->memory_bytes) || options->memory_bytes < least ||
			options->memory_bytes > most)
			    throw CLI::ValidationError( // CLI11 adds the option's name
				"expected a size from 16M to 16T such as 256M, got \"" + text + "\"");
	    });
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

int PrintExplanation(const std::string &run, int fd, bool first_line)
{
	common::RemovePendingOnSignals(); // in place of counting them: reading may take long
	analysis::Reading reading;
	analysis::Explanation explanation(reading.run);
	std::string error;
	int status = kDone;
	if (!Explain(run, {}, &reading, &explanation, &error, &status))
		return Refuse(error, status);
	const analysis::Style style = StyleOf(fd, "auto", false);
	const std::string text = first_line
				     ? analysis::Wrap(analysis::AnswerText(explanation), 0, 0, style.columns)
				     : analysis::ExplainScreen(explanation, style, 0);
	FILE *out = fd == STDOUT_FILENO ? stdout : stderr;
	if (fputs(text.c_str(), out) >= 0 &&
	    (!first_line ||
	     fprintf(out, "forktail explain %s has the details\n", common::Visible(run).c_str()) > 0) &&
	    !fflush(out))
		return kDone;
	return Refuse(std::string("cannot write the explanation: ") + strerror(errno), kCant);
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
