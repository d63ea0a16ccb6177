// SPDX-License-Identifier: MIT
// The main figures of an explanation as one small JSON document, for agents and regression databases: each
// part has a limit, so that any run fits, and nothing depends on where or when it is explained.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "analysis/blame.h"
#include "analysis/explain.h"
#include "analysis/run.h"
#include "analysis/text.h"
#include "common/format.h"
#include "common/json.h"
#include "sentences.h"

namespace forktail::analysis
{

namespace
{

using Out = nlohmann::ordered_json;

// Together at most about 17 kB: texts are sanitized, so JSON at most doubles their bytes.
constexpr size_t kAnswerBytes = 1200, kTextBytes = 240, kNameBytes = 80;
constexpr size_t kCauses = 24, kWorst = 5, kCausesOfEpisode = 3, kActivities = 8, kRecordings = 8,
		 kServers = 8, kNotes = 6;

Out VerdictOf(const Answer &answer)
{
	Out causes = Out::array();
	for (Cause cause : answer.causes)
		causes.push_back(CauseName(cause));
	return {{"kind", answer.kind}, {"causes", causes}, {"sure", answer.sure}};
}

Out RequestsOf(const Explanation &e)
{
	Out latencies = LatenciesJson<Out>(e.blame.latencies);
	latencies["mean"] = e.blame.latencies.mean;
	return {{"from", e.blame.from_iterations ? "iterations" : "request-log"},
		{"count", e.blame.count},
		{"errors", e.blame.errors},
		{"duration_ns", e.measured_ns},
		{"latency_ns", latencies}};
}

Out CausesOf(const Blame &b)
{
	Out causes = Out::array();
	for (size_t i = 0; i < std::min(b.causes.size(), kCauses); i++) {
		const CauseRow &row = b.causes[i];
		causes.push_back({{"cause", CauseName(row.cause)},
				  {"requests", row.requests},
				  {"time_ns", row.total_ns()},
				  {"share", row.share},
				  {"what_if", {{"p99", row.without.p99}, {"p99.9", row.without.p99_9}}}});
	}
	return causes;
}

Out ActivitiesOf(const OwnCode &own)
{
	Out activities = Out::array();
	for (size_t i = 0; i < std::min(own.activities.size(), kActivities); i++)
		activities.push_back({{"name", common::Cut(own.activities[i].name, kNameBytes)},
				      {"share", own.activities[i].share}});
	return activities;
}

Out EpisodesOf(const Explanation &e)
{
	Out worst = Out::array();
	for (uint32_t index : WorstEpisodes(e.episodes, kWorst)) {
		const Episode &episode = e.episodes[index];
		Out causes = Out::array();
		for (size_t i = 0; i < std::min(episode.causes.size(), kCausesOfEpisode); i++)
			causes.push_back({{"cause", CauseName(episode.causes[i].cause)},
					  {"share", episode.causes[i].share}});
		worst.push_back(
		    {{"number", worst.size() + 1},
		     {"t_s", SecondsAfter(episode.start_ns, e.zero_ns)},
		     {"duration_ns", episode.end_ns - episode.start_ns},
		     {"requests", episode.requests},
		     {"worst_ns", episode.worst_ns},
		     {"causes", causes},
		     {"evidence",
		      episode.evidence.empty() ? "" : common::Cut(episode.evidence[0], kTextBytes)}});
	}
	return {{"count", e.episodes.size()}, {"worst", worst}};
}

Out RecordingsOf(const Run &run)
{
	std::set<std::vector<std::string>> all; // in an order of their own
	for (const RecordingFile *file : OverlaidFiles(run))
		all.insert({file->program, file->version, file->kernel});
	Out recordings = Out::array();
	for (const std::vector<std::string> &one : all)
		if (recordings.size() < kRecordings)
			recordings.push_back({{"program", common::Cut(one[0], kNameBytes)},
					      {"version", common::Cut(one[1], kNameBytes)},
					      {"kernel", common::Cut(one[2], kNameBytes)}});
	return recordings;
}

// The recorded servers by their process names, and their versions where the load generator or the lab asked
// them.
Out ServersOf(const Run &run)
{
	std::set<std::pair<std::string, std::string>> all;
	std::string version;
	for (const RecordingFile *file : OverlaidFiles(run)) {
		const common::Json manifest = common::ParseVisibleObject(file->manifest);
		const common::Json *infos = common::Member(manifest, "server_info");
		if (infos && infos->is_array() && !infos->empty())
			version = common::Text((*infos)[0], "version");
	}
	for (const Target &t : run.targets) {
		const auto known = run.info.versions.find(t.comm);
		// The load generator's word is about the only server.
		all.emplace(t.comm, known != run.info.versions.end() ? known->second
				    : run.targets.size() == 1	     ? version
								     : "");
	}
	Out servers = Out::array();
	for (const auto &[program, of] : all)
		if (servers.size() < kServers)
			servers.push_back({{"program", common::Cut(program, kNameBytes)},
					   {"version", common::Cut(of, kNameBytes)}});
	return servers;
}

Out Shortened(const std::vector<std::string> &texts)
{
	Out all = Out::array();
	for (size_t i = 0; i < std::min(texts.size(), kNotes); i++)
		all.push_back(common::Cut(texts[i], kTextBytes));
	return all;
}

} // namespace

std::string FeaturesJson(const Explanation &e)
{
	const Answer answer = AnswerOf(e);
	std::vector<std::string> missing, warnings = e.run.warnings;
	for (const Missing &m : e.run.missing)
		missing.push_back(m.Text());
	warnings.insert(warnings.end(), e.notes.begin(), e.notes.end());
	const Out out = {{"format", 1},
			 {"forktail", FORKTAIL_VERSION},
			 {"answer", common::Cut(answer.text, kAnswerBytes)},
			 {"verdict", VerdictOf(answer)},
			 {"remedy", common::Cut(RemedyText(e), kAnswerBytes)},
			 {"requests", RequestsOf(e)},
			 {"slow",
			  {{"threshold_ns", e.blame.threshold_ns},
			   {"count", e.blame.slow_count},
			   {"time_ns", e.blame.slow_ns}}},
			 {"causes", CausesOf(e.blame)},
			 {"own_code", ActivitiesOf(e.own_code)},
			 {"episodes", EpisodesOf(e)},
			 {"recordings", RecordingsOf(e.run)},
			 {"servers", ServersOf(e.run)},
			 {"drops", DropCount(e.run)},
			 {"process_ends", e.run.ended.size()},
			 {"overloaded", e.overload.has_value()},
			 {"missing", Shortened(missing)},
			 {"warnings", Shortened(warnings)}};
	return out.dump(1, ' ', false, Out::error_handler_t::replace) + "\n";
}

} // namespace forktail::analysis
