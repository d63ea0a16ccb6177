// SPDX-License-Identifier: MIT
// Pages of scenarios as HTML; see page.h.
#include "lab/page.h"

#include <algorithm>
#include <filesystem>

#include "lab/markup.h"
#include "lab/page_parts.h"

namespace forktail
{
namespace
{

namespace fs = std::filesystem;

// The run page's colours and shapes (report/style.css).
const char *const kStyle = R"(
:root {
  --page: #f5f6f8; --surface: #ffffff; --text: #1b2330; --muted: #5a6575; --line: #d5dae1; --grid: #e9ecf0;
  --head: #f3f5f7; --accent: #1a56c4; --warn: #fff6dd; --warn-line: #e5b93c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1318; --surface: #171c23; --text: #e4e9ef; --muted: #9aa6b5; --line: #36404c; --grid: #232a33;
    --head: #1d232b; --accent: #7aa8ff; --warn: #2f2813; --warn-line: #8d6f1c;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font-variant-numeric: tabular-nums;
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", "Liberation Sans", sans-serif; }
header { padding: 14px 20px 12px; background: var(--surface); border-bottom: 1px solid var(--line); }
main { padding: 4px 20px 28px; }
header > *, main > * { max-width: 1320px; }
h1, h2, h3 { margin: 0; font-weight: 600; }
h1 { font-size: 20px; }
h2 { font-size: 16px; margin-top: 26px; }
h3 { font-size: 14px; margin-top: 18px; }
p { margin: 6px 0; }
.prose { max-width: 80ch; }
a { color: var(--accent); }
code { font-family: ui-monospace, "DejaVu Sans Mono", "Liberation Mono", monospace; font-size: 12.5px; }
.brand { font-weight: 600; font-size: 12px; letter-spacing: 0.04em; }
.muted { color: var(--muted); }
.small { font-size: 12.5px; }
.question { padding: 8px 12px; border-left: 3px solid var(--accent); background: var(--head); border-radius: 0 6px 6px 0; }
.facts { display: flex; flex-wrap: wrap; gap: 2px 22px; margin: 10px 0 0; font-size: 13px; }
.facts div { display: flex; gap: 6px; min-width: 0; }
.facts dt { color: var(--muted); flex: none; }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.notes { margin-top: 10px; padding: 6px 12px; background: var(--warn); border: 1px solid var(--warn-line); border-radius: 6px; font-size: 13px; }
.notes ul { margin: 0; padding-left: 18px; }
.table { width: fit-content; max-width: 100%; overflow-x: auto; margin: 8px 0 0; background: var(--surface); border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: 4px 9px; text-align: left; vertical-align: top; border-top: 1px solid var(--grid); }
thead th { border-top: 0; font-weight: 500; font-size: 12px; color: var(--muted); vertical-align: bottom; background: var(--head); }
tbody th { font-weight: 500; white-space: nowrap; }
td { max-width: 60ch; }
td:not(.number) { min-width: 24ch; }
.number { text-align: right; white-space: nowrap; }
thead .number { white-space: normal; }
.range { display: block; font-size: 11px; color: var(--muted); }
.published { color: var(--muted); font-style: italic; padding-left: 0; }
tbody tr:hover { background: var(--head); }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 460px), 640px)); gap: 12px; margin-top: 10px; align-items: start; }
.charts figure { margin: 0; padding: 6px; background: #ffffff; border: 1px solid var(--line); border-radius: 8px; }
.charts svg { display: block; width: 100%; height: auto; }
details { margin-top: 8px; padding: 6px 12px; background: var(--surface); border: 1px solid var(--line); border-radius: 8px; }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary b { margin-right: 8px; }
.evidence { margin: 2px 0 8px; padding-left: 18px; font-size: 13px; overflow-wrap: anywhere; }
@media print {
  @page { size: A4; margin: 12mm; }
  body { background: none; zoom: 0.75; }
  .charts figure, tr, details { break-inside: avoid; }
}
)";

std::string PageHead(const std::string &title)
{
	return "<!doctype html>\n<!-- SPDX-License-Identifier: MIT -->\n<html lang=\"en\">\n<head>\n"
	       "<meta charset=\"utf-8\">\n"
	       // No scripts: a name out of a server can't become one.
	       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	       "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
	       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	       "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
	       EscapeHtml(title) + "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>" + kStyle +
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
		html += "<div class=\"question prose\"><b>Left open:</b>\n" +
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

} // namespace forktail
