// SPDX-License-Identifier: MIT
// Texts of scenarios and servers are escaped where they are put in, and pages allow no scripts at all.
#include "page.h"

#include <algorithm>
#include <filesystem>

#include "markup.h"
#include "run_facts.h"
#include "style.h"

namespace forktail::lab
{
namespace
{

namespace fs = std::filesystem;

std::string PageHead(const std::string &title)
{
	return "<!doctype html>\n<!-- SPDX-License-Identifier: MIT -->\n<html lang=\"en\">\n<head>\n"
	       "<meta charset=\"utf-8\">\n"
	       // No scripts: a name out of a server can't become one.
	       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	       "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
	       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	       "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
	       EscapeHtml(title) + "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n" + lab_style +
	       "</style>\n</head>\n<body>\n";
}

// `code` is the only markup that scenarios' texts have; an empty line parts paragraphs.
std::string Paragraphs(const std::string &text, const std::string &classes)
{
	std::string html;
	for (const std::string &paragraph : ParagraphsOf(text)) {
		std::string escaped = EscapeHtml(paragraph), marked;
		bool code = false, paired = std::count(escaped.begin(), escaped.end(), '`') % 2 == 0;
		for (char c : escaped)
			if (c == '`' && paired) {
				code = !code;
				marked += code ? "<code>" : "</code>";
			} else {
				marked += c;
			}
		html += "<p class=\"" + classes + "\">" + marked + "</p>\n";
	}
	return html;
}

std::string FactsHtml(const std::vector<Fact> &facts)
{
	std::string html = "<dl class=\"facts\">\n";
	for (const Fact &fact : facts) {
		std::string text = EscapeHtml(fact.text);
		html += "<div><dt>" + EscapeHtml(fact.name) + "</dt><dd>" +
			(fact.code ? "<code>" + text + "</code>" : text) + "</dd></div>\n";
	}
	return html + "</dl>\n";
}

std::string NotesHtml(const std::vector<std::string> &notes)
{
	if (notes.empty())
		return "";
	std::string html = "<div class=\"notes\"><ul>\n";
	for (const std::string &note : notes)
		html += "<li>" + EscapeHtml(note) + "</li>\n";
	return html + "</ul></div>\n";
}

std::string MomentHtml(const Moment &moment, bool open, const std::string &directory)
{
	std::string html = std::string("<details") + (open ? " open" : "") + "><summary><b>" +
			   EscapeHtml(moment.title) + "</b>" + EscapeHtml(moment.causes) + "</summary>\n";
	for (const Episode &episode : moment.worst) {
		html += "<p>" + EscapeHtml(episode.what) + "</p>\n";
		if (!episode.evidence.empty())
			html += "<ul class=\"evidence\">\n";
		for (const std::string &sentence : episode.evidence)
			html += "<li>" + EscapeHtml(sentence) + "</li>\n";
		html += episode.evidence.empty() ? "" : "</ul>\n";
	}
	std::error_code ignored;
	std::string link = moment.run + "/report.html";
	if (!moment.run.empty() && fs::exists(fs::path(directory) / link, ignored))
		html += "<p><a href=\"" + EscapeHtml(LinkTo(link)) +
			"\">The recording: timeline, causes and percentiles</a></p>\n";
	return html + "</details>\n";
}

} // namespace

std::string PageOf(const Scenario &scenario, const Results &results, const Output &output,
		   const std::string &directory)
{
	std::string html = PageHead(scenario.title) +
			   "<header>\n<div class=\"brand muted\">forktail lab</div>\n<h1>" +
			   EscapeHtml(scenario.title) + "</h1>\n" + Paragraphs(scenario.about, "prose");
	if (!scenario.question.empty())
		html += "<div class=\"question prose\"><b>Open question:</b>\n" +
			Paragraphs(scenario.question, "prose") + "</div>\n";
	html += FactsHtml(FactsOf(results)) + NotesHtml(NotesOf(results, output)) + "</header>\n<main>\n";
	std::string published = PublishedBy(scenario, output);
	if (!output.tables.empty())
		html += "<h2>Figures</h2>\n";
	if (!published.empty())
		html += "<p class=\"muted small\"><i>published</i>: " + EscapeHtml(published) + "</p>\n";
	for (const MadeTable &table : output.tables)
		html += "<h3>" + EscapeHtml(table.title) + "</h3>\n<div class=\"table\">" + TableHtml(table) +
			"</div>\n" + Paragraphs(table.note, "muted small prose");
	if (!output.charts.empty()) {
		html += "<h2>Charts</h2>\n<div class=\"charts\">\n";
		for (const DrawnChart &chart : output.charts)
			html += "<figure>" +
				chart.svg.substr(std::min(chart.svg.find("<svg"), chart.svg.size())) +
				"</figure>\n";
		html += "</div>\n";
	}
	std::vector<Moment> moments = MomentsOf(scenario, results);
	if (!moments.empty())
		html +=
		    "<h2>The worst moments</h2>\n"
		    "<p class=\"muted small\">What delayed the slow requests of each recorded load, and the "
		    "longest of these delays.</p>\n";
	constexpr size_t kFew = 8;
	for (const Moment &moment : moments)
		html += MomentHtml(moment, moments.size() <= kFew, directory);
	return html + "</main>\n</body>\n</html>\n";
}

std::string IndexOf(const std::vector<IndexEntry> &entries, const Results &where)
{
	// Each scenario's page has its own time and notes.
	Results common = where;
	common.seconds = 0;
	common.started_unix = 0;
	std::string html =
	    PageHead("forktail lab: experiments") +
	    "<header>\n<div class=\"brand muted\">forktail lab</div>\n<h1>Experiments</h1>\n" +
	    FactsHtml(FactsOf(common)) +
	    "</header>\n<main>\n<div class=\"table\"><table>\n<thead><tr><th>scenario</th>"
	    "<th>what it is</th><th>state</th><th class=\"number\">took</th></tr></thead>\n<tbody>\n";
	for (const IndexEntry &entry : entries) {
		std::string name = EscapeHtml(entry.name);
		if (!entry.link.empty())
			name = "<a href=\"" + EscapeHtml(LinkTo(entry.link)) + "\">" + name + "</a>";
		html += "<tr><th scope=\"row\">" + name + "</th><td>" + EscapeHtml(entry.title) +
			"</td><td>" + EscapeHtml(entry.state) + "</td><td class=\"number\">" +
			(entry.seconds > 0 ? TimeTaken(entry.seconds) : "") + "</td></tr>\n";
	}
	return html + "</tbody>\n</table></div>\n</main>\n</body>\n</html>\n";
}

} // namespace forktail::lab
