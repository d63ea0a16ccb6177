// SPDX-License-Identifier: MIT
// The facts of a run: machine, time, notes, and worst moments.
#include "run_facts.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <sstream>

namespace forktail::lab
{
namespace
{

std::string TimeText(long unix_s)
{
	time_t t = unix_s;
	struct tm utc;
	char text[64] = "";
	if (gmtime_r(&t, &utc))
		strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
	return text;
}

std::string Trimmed(const std::string &text)
{
	size_t begin = text.find_first_not_of(" \n\t"), end = text.find_last_not_of(" \n\t");
	return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::string TextAt(const Point &point, const std::string &name)
{
	auto text = point.texts.find(name);
	return text == point.texts.end() ? "" : Trimmed(text->second);
}

// Explain's text has one line per episode, followed by indented lines of evidence.
std::vector<Episode> EpisodesOf(const std::string &text)
{
	std::vector<Episode> episodes;
	std::istringstream in(text);
	for (std::string line; std::getline(in, line);) {
		std::string words = Trimmed(line);
		if (words.empty())
			continue;
		if (episodes.empty() || line[0] != ' ')
			episodes.push_back({words, {}});
		else
			episodes.back().evidence.push_back(words);
	}
	return episodes;
}

// "connections: 20; listen: unix": the variables with more than one value.
std::string PointTitle(const Scenario &scenario, const Results &results, const Point &point)
{
	std::string title;
	for (const Sweep &sweep : scenario.sweeps) {
		auto value = point.values.find(sweep.name);
		if (value == point.values.end())
			continue;
		bool varies = std::any_of(results.points.begin(), results.points.end(), [&](const Point &p) {
			auto other = p.values.find(sweep.name);
			return other != p.values.end() && other->second != value->second;
		});
		if (varies)
			title += (title.empty() ? "" : "; ") +
				 (sweep.title.empty() ? sweep.name : sweep.title) + ": " + value->second;
	}
	return title;
}

} // namespace

std::vector<Fact> FactsOf(const Results &results)
{
	std::string versions;
	for (const auto &[name, version] : results.versions)
		versions += (versions.empty() ? "" : ", ") + name + " " + version;
	std::vector<Fact> facts = {
	    {"host", results.host},
	    {"CPU", results.cpu},
	    {"kernel", results.kernel},
	    {"versions", versions},
	    {"scale", results.scale},
	    {"began", results.started_unix ? TimeText(results.started_unix) : ""},
	    {"took", results.seconds > 0 ? TimeTaken(results.seconds) : ""},
	    {"command", results.command, true},
	};
	facts.erase(
	    std::remove_if(facts.begin(), facts.end(), [](const Fact &fact) { return fact.text.empty(); }),
	    facts.end());
	return facts;
}

std::vector<std::string> NotesOf(const Results &results, const Output &output)
{
	std::vector<std::string> notes = results.notes;
	if (!output.note.empty())
		notes.push_back(output.note);
	return notes;
}

std::string PublishedBy(const Scenario &scenario, const Output &output)
{
	bool any = false;
	for (const MadeTable &table : output.tables)
		any = any || std::any_of(table.heads.begin(), table.heads.end(),
					 [](const Head &head) { return head.published; });
	for (const Chart &chart : scenario.charts)
		any = any || std::any_of(chart.series.begin(), chart.series.end(),
					 [](const Column &column) { return !column.published.empty(); });
	if (!any)
		return "";
	std::string report = scenario.report.empty() ? "" : "report " + scenario.report;
	return report + (report.empty() || scenario.source.empty() ? "" : ", ") + scenario.source;
}

std::vector<Moment> MomentsOf(const Scenario &scenario, const Results &results)
{
	size_t recorded_steps = static_cast<size_t>(std::count_if(
	    scenario.steps.begin(), scenario.steps.end(), [](const StepSpec &s) { return s.record; }));
	std::vector<Moment> moments;
	for (const Point &point : results.points) {
		std::string title = PointTitle(scenario, results, point);
		size_t run = 0;
		for (const StepSpec &step : scenario.steps) {
			if (!step.record || !Matches(step.only, point.values))
				continue;
			Moment moment;
			moment.title = title;
			if (recorded_steps > 1 || title.empty())
				moment.title += (title.empty() ? "" : "; ") + step.name;
			moment.causes = TextAt(point, step.name + ".causes");
			moment.worst = EpisodesOf(TextAt(point, step.name + ".worst"));
			if (run < point.recorded.size())
				moment.run = point.recorded[run++];
			if (!moment.causes.empty() || !moment.worst.empty() || !moment.run.empty())
				moments.push_back(moment);
		}
	}
	return moments;
}

std::vector<std::string> ParagraphsOf(const std::string &text)
{
	std::vector<std::string> paragraphs;
	for (size_t at = 0; at < text.size();) {
		size_t end = std::min(text.find("\n\n", at), text.size());
		std::string paragraph = Trimmed(text.substr(at, end - at));
		if (!paragraph.empty())
			paragraphs.push_back(paragraph);
		at = end + 2;
	}
	return paragraphs;
}

std::string TimeTaken(double seconds)
{
	char text[64];
	long whole = std::lround(seconds);
	if (seconds < 99.95)
		snprintf(text, sizeof text, "%.1f s", seconds);
	else if (whole < 3600)
		snprintf(text, sizeof text, "%ld min %ld s", whole / 60, whole % 60);
	else
		snprintf(text, sizeof text, "%ld h %ld min", whole / 3600, whole % 3600 / 60);
	return text;
}

std::string LinkTo(const std::string &path)
{
	std::string link;
	for (char c : path) {
		char code[8];
		snprintf(code, sizeof code, "%%%02X", static_cast<unsigned char>(c));
		bool plain = isalnum(static_cast<unsigned char>(c)) ||
			     std::string("/-_.~").find(c) != std::string::npos;
		link += plain ? std::string(1, c) : code;
	}
	return link;
}

} // namespace forktail::lab
