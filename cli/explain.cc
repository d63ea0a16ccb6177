// SPDX-License-Identifier: MIT
// forktail explain.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <unistd.h>

#include "analysis/gate.h"
#include "analysis/text.h"
#include "command.h"
#include "common/confine.h"
#include "common/files.h"
#include "common/json.h"
#include "schemas.h"

namespace forktail::cli
{

namespace
{

constexpr std::array<const char *, analysis::kGroupings> kGroupNames = {"client", "command", "connection",
									"size"};

struct ExplainWords {
	bool json = false, features = false, requests = false, all = false, ascii = false, confined = false,
	     snapshots = false;
	std::string colour = "auto", format, cause_name, json_to, by;
	std::optional<size_t> episodes, episode;
	std::optional<uint64_t> request;
	analysis::Cause cause = analysis::Cause::Unknown;
	std::string run;
	analysis::ExplainOptions options;
	analysis::gate::AskedLimits fail_if;

	int Views() const
	{
		return json + features + all + snapshots + !format.empty() + !cause_name.empty() +
		       episode.has_value() + request.has_value();
	}
};

void AddOptions(CLI::App *app, ExplainWords *asked)
{
	app->add_flag("--all", asked->all,
		      "Print everything: all causes, hops, notes and the cost of recording");
	app->add_option("--episode", asked->episode,
			"Print one episode in full, by its number (1: the worst)")
	    ->type_name("N");
	app->add_option("--request", asked->request,
			"Print one slow request in full, by its id in --json --requests")
	    ->type_name("ID")
	    ->check(CLI::NonNegativeNumber);
	app->add_option("--cause", asked->cause_name, "Print one cause: its cost, episodes and evidence")
	    ->type_name("NAME");
	app->add_flag("--snapshots", asked->snapshots,
		      "Print what each snapshot, AOF rewrite and full synchronization cost: fork, copied "
		      "memory, slowed requests, peak memory");
	app->add_option("--episodes,--top", asked->episodes, "Print N episodes with all of their evidence")
	    ->type_name("N");
	app->add_option("--by", asked->by,
			"Add a table of the slowest clients, commands, connections, or sizes of request and "
			"reply: client, command, connection, size")
	    ->type_name("GROUP")
	    ->check(CLI::IsMember(kGroupNames));
	app->add_option("--format", asked->format,
			"Print one custom line: '{p99.9_ms} {cause} {fork.total_ms}'")
	    ->type_name("LINE");
	app->add_flag("--json", asked->json, "Print JSON (docs/reference/explain.md)");
	app->add_flag("--features", asked->features,
		      "Print the main figures as JSON of at most 20 kB, identical for the same recording, "
		      "for agents and "
		      "databases (docs/reference/explain.md)");
	AddJsonSchema(app, ft_explain_schema, &asked->features, ft_features_schema);
	app->add_option("--json-to", asked->json_to, "Also write the JSON to FILE")->type_name("FILE");
	app->add_flag("--requests", asked->requests, "Add every slow request and its parts to the JSON");
	app->add_option("--color,--colour", asked->colour,
			"Use colors: auto (only on a terminal), always or never (default: auto)")
	    ->type_name("WHEN")
	    ->check(CLI::IsMember({"auto", "always", "never"}));
	app->add_flag("--ascii", asked->ascii, "Use only ASCII characters");
	app->add_flag(
	    "--confined", asked->confined,
	    "For a stranger's recording: give up the rights to start programs, to use the network and to "
	    "write files, except below the directory of --json-to");
}

// True: the options contradict each other, and the error is printed.
bool Refused(ExplainWords *asked)
{
	std::string error;
	if (asked->requests && !asked->json && asked->json_to.empty())
		error = "--requests needs --json or --json-to";
	else if (asked->Views() > 1)
		error = "--json, --features, --all, --snapshots, --episode, --request, --cause and --format "
			"are mutually exclusive";
	else if (!asked->by.empty() && asked->Views() > asked->json + asked->all)
		error = "--by adds to the default output, --all or --json";
	else if (!asked->cause_name.empty() &&
		 !analysis::CauseByName(asked->cause_name.c_str(), &asked->cause))
		error = UnknownCause(asked->cause_name);
	else if (asked->format.empty() || analysis::CheckFormat(asked->format, &error))
		return false;
	fprintf(stderr, "forktail: %s\n", common::Visible(error).c_str());
	return true;
}

// The requested view. False: *error is one sentence.
bool Show(const analysis::Explanation &e, const ExplainWords &asked, std::string *text, std::string *error)
{
	const analysis::Style style = StyleOf(STDOUT_FILENO, asked.colour, asked.ascii);
	const size_t episodes = asked.episodes.value_or(analysis::kTextEpisodes);
	if (asked.episode)
		return analysis::EpisodeView(e, style, *asked.episode, text, error);
	if (asked.request)
		return analysis::RequestView(e, style, *asked.request, text, error);
	if (!asked.cause_name.empty())
		*text = analysis::CauseView(e, style, asked.cause, episodes);
	else if (!asked.format.empty())
		*text = analysis::FormatLine(e, asked.format);
	else if (asked.features)
		*text = analysis::FeaturesJson(e);
	else if (asked.snapshots)
		*text = analysis::SnapshotsView(e, style);
	else if (asked.all)
		*text = analysis::ExplainText(e, style, episodes);
	else
		*text = analysis::ExplainScreen(e, style, asked.episodes.value_or(0));
	if (asked.by.empty())
		return true;
	std::string table;
	if (!analysis::GroupTable(e, style, *asked.options.groups, &table, error))
		return false;
	*text += table;
	return true;
}

// --json-to. False: *error is one sentence.
bool WriteJson(const analysis::Explanation &e, const ExplainWords &asked, std::string *error)
{
	common::Pending file;
	if (!file.Begin(asked.json_to, common::Pending::kFile, error))
		return false;
	errno = 0;
	FILE *out = fopen(file.at().c_str(), "we");
	const bool written = out && analysis::WriteExplainJson(e, out, asked.requests);
	if (!out || fclose(out) || !written) {
		*error = "cannot write " + asked.json_to + ": " + strerror(errno);
		return false;
	}
	return file.Commit(error, e.run.shared_mode);
}

// Prints and writes the requested views. False: the error is printed.
bool Print(const analysis::Explanation &e, const ExplainWords &asked)
{
	std::string text, error;
	if ((!asked.json && !Show(e, asked, &text, &error)) ||
	    (!asked.json_to.empty() && !WriteJson(e, asked, &error))) {
		fprintf(stderr, "forktail: %s\n", common::Visible(error).c_str());
		return false;
	}
	const bool printed = asked.json ? analysis::WriteExplainJson(e, stdout, asked.requests)
					: fwrite(text.data(), 1, text.size(), stdout) == text.size();
	if (printed && !fflush(stdout))
		return true;
	fprintf(stderr, "forktail: cannot write the explanation: %s\n", strerror(errno));
	return false;
}

// --confined. False: the error is printed.
bool Confine(const ExplainWords &asked)
{
	std::string error;
	common::Allowed allowed;
	if (!asked.json_to.empty())
		allowed.writable = {common::PlaceOfOutput(asked.json_to)};
	if (common::Confine(allowed, &error))
		return true;
	fprintf(stderr, "forktail: %s\n", error.c_str());
	return false;
}

// --fail-if. False: the error is printed.
bool ParseFailIf(const std::vector<std::string> &texts, analysis::gate::AskedLimits *limits)
{
	std::string error;
	for (const std::string &text : texts) {
		if (!analysis::gate::AddLimit({text, ""}, LIMIT_FAILS_IF, limits, &error)) {
			fprintf(stderr, "forktail: %s\n", common::Visible(error).c_str());
			return false;
		}
		if (limits->limits.back().comparison == LIMIT_NO_WORSE) {
			fprintf(stderr, "forktail: --fail-if cannot compare with a base run. Use forktail "
					"gate --base RUN.\n");
			return false;
		}
	}
	return true;
}

// False: what was asked for is printed (--help), or the error is. *status is the exit status.
bool ParseWords(int argc, char **argv, ExplainWords *asked, int *status)
{
	CLI::App app("Explain what made the slow requests of a run slow (docs/reference/explain.md).",
		     "forktail explain");
	std::string slow;
	app.footer("  forktail explain monday\n  forktail explain monday --around +95s,20s\n"
		   "  forktail explain monday --json | jq .causes\n");
	app.add_option("RUN", asked->run, "Run directory, or one .forktail file")->required();
	AddSlow(&app, &slow);
	AddOptions(&app, asked);
	std::vector<std::string> fail_if;
	app.add_option(
	       "--fail-if", fail_if,
	       "Exit with status 1 if the condition is true: 'p99.9>5ms', 'fork.max>20ms', 'unknown>5%' "
	       "(what must not be, the opposite of forktail gate; docs/guides/ci.md); repeatable")
	    ->type_name("CONDITION")
	    ->allow_extra_args(false);
	AddMemory(&app, &asked->options);
	PartTexts part;
	AddPart(&app, &part);
	if (!Parse(&app, argc, argv, status))
		return false;
	*status = kUsage;
	if (!ParseSlow(slow, &asked->options.slow) || !ParsePart(part, &asked->options) || Refused(asked) ||
	    !ParseFailIf(fail_if, &asked->fail_if))
		return false;
	if (!asked->by.empty())
		asked->options.groups = static_cast<analysis::GroupBy>(
		    std::ranges::find(kGroupNames, asked->by) - kGroupNames.begin());
	if (asked->episode || !asked->cause_name.empty())
		asked->options.evidence = SIZE_MAX;
	return true;
}

// Prints the conditions that are true. Returns the exit status.
int SayFailed(const analysis::gate::AskedLimits &limits, const analysis::gate::RunFigures &figures)
{
	const std::vector<analysis::gate::Verdict> verdicts =
	    analysis::gate::Judge(limits, LIMIT_FAILS_IF, figures, nullptr);
	for (const analysis::gate::Verdict &v : verdicts)
		if (v.outcome != analysis::gate::Verdict::kKept)
			fprintf(stderr, "forktail: %s\n", common::Visible(v.text()).c_str());
	return analysis::gate::StatusOf(verdicts);
}

} // namespace

int ExplainCommand(int argc, char **argv)
{
	ExplainWords asked;
	int status = kDone;
	if (!ParseWords(argc, argv, &asked, &status))
		return status;
	if (asked.confined && !Confine(asked))
		return kCant;
	const bool judged = !asked.fail_if.limits.empty();
	analysis::gate::RunFigures figures(&asked.fail_if.limits);
	if (judged)
		figures.Watch(&asked.options);
	analysis::Reading reading;
	analysis::Explanation explanation(reading.run);
	std::string error;
	if (!Explain(asked.run, asked.options, &reading, &explanation, &error, &status)) {
		fprintf(stderr, "forktail: %s\n", error.c_str());
		return status;
	}
	if (!Print(explanation, asked))
		return kCant;
	if (!judged)
		return kDone;
	figures.Finish(explanation, &reading);
	return SayFailed(asked.fail_if, figures);
}

} // namespace forktail::cli
