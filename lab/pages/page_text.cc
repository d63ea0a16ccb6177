// SPDX-License-Identifier: MIT
// The content of the page for a terminal and for Markdown.
#include "common/format/sanitize.h"
#include "markup.h"
#include "run_facts.h"

namespace forktail::lab
{
std::string TextOf(const Results &results, const Output &output, size_t width)
{
	std::string text;
	for (const MadeTable &table : output.tables) {
		text += (text.empty() ? "" : "\n") + table.title + "\n\n" + TableText(table, width);
		for (const std::string &paragraph : ParagraphsOf(table.note))
			text += paragraph + "\n";
	}
	std::vector<std::string> notes = NotesOf(results, output);
	if (!notes.empty())
		text += "\n";
	for (const std::string &note : notes)
		text += "note: " + note + "\n";
	return common::VisibleLines(text);
}

std::string MarkdownOf(const Scenario &scenario, const Results &results, const Output &output,
		       const std::string &charts)
{
	std::string text = "## " + EscapeMarkdown(scenario.title) + "\n";
	for (const std::string &paragraph : ParagraphsOf(scenario.about))
		text += "\n" + paragraph + "\n";
	std::string left_open = "\n**Open question:** ";
	for (const std::string &paragraph : ParagraphsOf(scenario.question)) {
		text += left_open + paragraph + "\n";
		left_open = "\n";
	}
	std::string facts;
	for (const Fact &fact : FactsOf(results))
		facts += (facts.empty() ? "\n" : "; ") + fact.name + " " +
			 (fact.code ? "`" + fact.text + "`" : EscapeMarkdown(fact.text));
	text += facts + (facts.empty() ? "" : ".\n");
	std::string published = PublishedBy(scenario, output);
	if (!published.empty())
		text += "\n*published*: " + published + "\n";
	for (const MadeTable &table : output.tables) {
		text += "\n### " + EscapeMarkdown(table.title) + "\n\n" + TableMarkdown(table);
		for (const std::string &paragraph : ParagraphsOf(table.note))
			text += "\n" + paragraph + "\n";
	}
	for (size_t i = 0; i < output.charts.size(); i++)
		text += "\n![" + EscapeMarkdown(output.charts[i].title) + "](" + LinkTo(charts) + "/" +
			LinkTo(scenario.name) + "-" + std::to_string(i + 1) + ".svg)\n";
	std::string moments;
	for (const Moment &moment : MomentsOf(scenario, results)) {
		if (moment.causes.empty() && moment.worst.empty())
			continue;
		moments += "- **" + EscapeMarkdown(moment.title) + "**" +
			   (moment.causes.empty() ? "" : ": " + EscapeMarkdown(moment.causes)) + "\n";
		if (moment.worst.empty())
			continue;
		// The others are on the page.
		moments += "  - worst: " + EscapeMarkdown(moment.worst[0].what) + "\n";
		for (const std::string &sentence : moment.worst[0].evidence)
			moments += "  - " + EscapeMarkdown(sentence) + "\n";
	}
	if (!moments.empty())
		text += "\n### The worst moments\n\n" + moments;
	std::string notes;
	for (const std::string &note : NotesOf(results, output))
		notes += "- " + EscapeMarkdown(note) + "\n";
	return text + (notes.empty() ? "" : "\nNotes:\n\n" + notes);
}

} // namespace forktail::lab
