// SPDX-License-Identifier: MIT
// The parts of a report page that are readable without a script: the answer, the figures, the run, the
// causes, and the worst episodes. CI servers, mail and file viewers show pages without running their scripts.
// With a script, src/ adds the colours of the dark theme and what a click does. The page's policy forbids
// style attributes, so marks and bars are SVG.
#include <string>
#include <vector>

#include "analysis/report.h"
#include "analysis/text.h"
#include "common/format.h"
#include "common/json.h"
#include "page_data.h"

namespace forktail::analysis::report
{

std::string Escaped(const std::string &text)
{
	std::string out;
	for (char c : common::Visible(text))
		switch (c) {
		case '&':
			out += "&amp;";
			break;
		case '<':
			out += "&lt;";
			break;
		case '>':
			out += "&gt;";
			break;
		case '"':
			out += "&quot;";
			break;
		default:
			out += c;
		}
	return out;
}

namespace
{

constexpr size_t kWarningsShown = 3, kEpisodesShown = 5;

// "12.3 µs", as the rest of the page has it.
std::string Time(uint64_t ns)
{
	std::string text = common::FormatDuration(ns);
	if (text.ends_with(" us"))
		text.replace(text.size() - 2, 2, "\u00b5s");
	return text;
}

// src/shapes.js has the marks, build.mjs puts them into the page.
std::string Mark(Cause cause)
{
	const LaneCauseLook look = LaneCauseLookOf(Index(cause));
	return std::string(
		   "<svg class=\"mark\" viewBox=\"-10 -10 20 20\" aria-hidden=\"true\" data-cause=\"") +
	       std::to_string(Index(cause)) + "\" fill=\"" + look.light + "\"><use href=\"#mark-" +
	       look.family + "\"/></svg>";
}

std::string Bar(Cause cause, double share)
{
	return std::string("<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" "
			   "aria-hidden=\"true\""
			   " data-cause=\"") +
	       std::to_string(Index(cause)) + "\" fill=\"" + LaneCauseLookOf(Index(cause)).light +
	       "\"><rect width=\"" + std::to_string(100 * std::clamp(share, 0.0, 1.0)) +
	       "\" height=\"8\"/></svg>";
}

std::string Tile(const std::string &name, const std::string &value, const char *look = "tile")
{
	return std::string("<div class=\"") + look + "\"><span class=\"muted\">" + name + "</span><b>" +
	       value + "</b></div>\n";
}

// How much lower: "−70 %"; "" if hardly.
std::string Gain(uint64_t without, uint64_t measured)
{
	const double gain = measured ? 1 - static_cast<double>(without) / static_cast<double>(measured) : 0;
	if (gain < 0.01)
		return "";
	return " <span class=\"gain\">\u2212" + std::to_string(static_cast<int>(100 * gain + 0.5)) +
	       " %</span>";
}

// A percentile without the causes that the answer names.
std::string WithoutTile(const Explanation &e, const std::vector<Cause> &causes, uint64_t without_ns)
{
	std::string marks, names;
	for (size_t i = 0; i < causes.size(); i++) {
		marks += Mark(causes[i]);
		names += (i == 0		  ? ""
			  : i + 1 < causes.size() ? ", "
						  : " and ") +
			 std::string(CauseName(causes[i]));
	}
	return Tile(marks + e.lead.figure->name + " without " + names,
		    Time(without_ns) + Gain(without_ns, e.blame.latencies.*e.lead.figure->value),
		    "tile without");
}

std::string TilesHtml(const Explanation &e)
{
	const Blame &b = e.blame;
	std::string out = "<div class=\"tiles\">\n";
	out += Tile(b.from_iterations ? "iterations" : "requests", common::FormatCount(b.count));
	if (!b.from_iterations)
		out += Tile("errors", common::FormatCount(b.errors));
	for (const NamedLatency &n : kLatencies) {
		out += Tile(n.name, Time(b.latencies.*n.value));
		if (!e.lead.figure || e.lead.figure->value != n.value)
			continue;
		if (e.lead.without_ns)
			out += WithoutTile(e, e.lead.causes, e.lead.without_ns);
		if (e.lead.next)
			out += WithoutTile(e, {*e.lead.next}, e.lead.without_next_ns);
	}
	return out + "</div>\n";
}

std::string SlowText(const Explanation &e)
{
	const Blame &b = e.blame;
	const char *one = b.from_iterations ? "event-loop iteration" : "request";
	if (b.slow_count == 0)
		return std::string("No ") + one + " was slow.";
	return common::Plural(b.slow_count, one, (std::string(one) + "s").c_str()) + " took " +
	       Time(b.threshold_ns) + " or more, in " +
	       common::Plural(e.episodes.size(), "episode", "episodes") + "; " +
	       common::FormatPercent(1 - b.RowOf(Cause::Unknown).share) + " of their time has a known cause.";
}

std::string WarningsHtml(const std::vector<std::string> &warnings)
{
	if (warnings.empty())
		return "";
	std::string out = "<section class=\"warnings\" aria-label=\"Warnings\"><ul>\n";
	for (size_t i = 0; i < warnings.size(); i++) {
		if (i == kWarningsShown)
			out += "</ul><details><summary>" +
			       common::Plural(warnings.size() - i, "more note", "more notes") +
			       "</summary><ul>\n";
		out += "<li>" + Escaped(warnings[i]) + "</li>\n";
	}
	return out + (warnings.size() > kWarningsShown ? "</ul></details></section>\n" : "</ul></section>\n");
}

std::string FactsHtml(const std::vector<Fact> &facts)
{
	std::string rows, summary;
	for (const auto &[label, text] : facts) {
		rows += "<div><dt>" + Escaped(label) + "</dt><dd>" + Escaped(text) + "</dd></div>\n";
		if (label == "Length" || label == "Load")
			summary += (summary.empty() ? "" : ", ") + text;
	}
	return "<details class=\"about\"><summary>About this run: <span class=\"muted\">" + Escaped(summary) +
	       "</span></summary><dl class=\"facts\">\n" + rows + "</dl></details>\n";
}

} // namespace

std::string HeaderHtml(const Explanation &e, const std::string &title, const std::vector<Fact> &facts,
		       const std::vector<std::string> &warnings)
{
	const Answer answer = AnswerOf(e);
	const std::string remedy = RemedyText(e);
	return "<div class=\"brand\">forktail <span class=\"muted\">" FORKTAIL_VERSION "</span></div>\n<h1>" +
	       Escaped(title) + "</h1>\n<p class=\"answer\">" +
	       (answer.causes.empty() ? "" : Mark(answer.causes[0]) + " ") + Escaped(answer.text) + "</p>\n" +
	       (remedy.empty() ? "" : "<p class=\"remedy\">" + Escaped(remedy) + "</p>\n") + TilesHtml(e) +
	       "<p class=\"slow\">" + Escaped(SlowText(e)) + "</p>\n" + WarningsHtml(warnings) +
	       FactsHtml(facts);
}

std::string CausesHtml(const Explanation &e)
{
	const Blame &b = e.blame;
	if (b.causes.empty())
		return "";
	const std::string unit = b.from_iterations ? "iterations" : "requests";
	std::string head =
	    "<th scope=\"col\">Cause</th><th scope=\"col\">Share</th><th scope=\"col\" class=\"room\">Time"
	    "</th><th scope=\"col\" class=\"wide\">Slow " +
	    unit + "</th><th scope=\"col\" class=\"wide\">Queued</th>";
	std::string measured = "<th scope=\"row\">measured</th><td></td><td class=\"room\">" +
			       Time(b.slow_ns) + "</td><td class=\"wide\">" +
			       common::FormatCount(b.slow_count) + "</td><td class=\"wide\"></td>";
	// On a phone there is room for one percentile.
	auto look = [](const NamedLatency &n) {
		return std::string(n.value == &Latencies::p99_9 ? ""
				   : n.value == &Latencies::max ? " class=\"room\""
								: " class=\"wide\"");
	};
	for (const NamedLatency &n : kLatencies) {
		if (n.percentile < kLowestWithout)
			continue;
		head += "<th scope=\"col\"" + look(n) + ">" + n.name + " without</th>";
		measured += "<td" + look(n) + ">" + Time(b.latencies.*n.value) + "</td>";
	}
	std::string out = "<table id=\"causes\"><thead><tr>" + head +
			  "<th scope=\"col\" class=\"meaning\">What it is</th></tr></thead>\n<tbody><tr "
			  "class=\"measured\">" +
			  measured + "<td class=\"meaning\"></td></tr>\n";
	for (const CauseRow &row : b.causes) {
		const char *name = CauseName(row.cause), *meaning = InfoOf(row.cause).meaning;
		const uint64_t time_ns = row.total_ns();
		out +=
		    std::string(
			"<tr><th scope=\"row\"><button type=\"button\" class=\"cause-name\" data-name=\"") +
		    name + "\" title=\"" + Escaped(meaning) + "\">" + Mark(row.cause) + name +
		    "</button></th><td class=\"share\">" + Bar(row.cause, row.share) +
		    common::FormatPercent(row.share) + "</td><td class=\"room\">" + Time(time_ns) +
		    "</td><td class=\"wide\">" + common::FormatCount(row.requests) +
		    "</td><td class=\"wide\">" +
		    (time_ns ? common::FormatPercent(static_cast<double>(row.queued_ns) /
						     static_cast<double>(time_ns))
			     : "\u2013") +
		    "</td>";
		for (const NamedLatency &n : kLatencies)
			if (n.percentile >= kLowestWithout)
				out += "<td" + look(n) + ">" +
				       (row.cause == Cause::Unknown
					    ? "\u2013"
					    : Time(row.without.*n.value) +
						  Gain(row.without.*n.value, b.latencies.*n.value)) +
				       "</td>";
		out += "<td class=\"meaning\">" + Escaped(meaning) + "</td></tr>\n";
	}
	return out + "</tbody></table>";
}

std::string EpisodesHtml(const Explanation &e)
{
	std::string out;
	for (uint32_t i : WorstEpisodes(e.episodes, kEpisodesShown)) { // as src/data.js numbers them
		const Episode &episode = e.episodes[i];
		out += "<li><b>" + common::FormatOffset(episode.start_ns, e.zero_ns) + "</b> " +
		       Time(episode.end_ns - episode.start_ns) + "<br>" +
		       (e.blame.from_iterations ? common::Plural(episode.requests, "iteration", "iterations")
						: common::Plural(episode.requests, "request", "requests")) +
		       ", slowest " + Time(episode.worst_ns) + "<ul>\n";
		for (const std::string &sentence : episode.evidence)
			out += "<li>" + Escaped(sentence) + "</li>\n";
		out += "</ul></li>\n";
	}
	return out.empty() ? "" : "<h2>The worst episodes</h2>\n<ol>\n" + out + "</ol>\n";
}

} // namespace forktail::analysis::report
