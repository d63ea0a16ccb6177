// SPDX-License-Identifier: MIT
// The content of the page for a terminal and for Markdown.
#include "common/json.h"
#include "markup.h"
#include "run_facts.h"

namespace forktail::lab
{
namespace
{

std::string ChartsMarkdown(const Scenario &scenario, const Output &output, const std::string &charts)
{
	std::string text;
	for (size_t i = 0; i < output.charts.size(); i++)
		text += "\n![" + EscapeMarkdown(output.charts[i].title) + "](" + LinkTo(charts) + "/" +
			LinkTo(scenario.name) + "-" + std::to_string(i + 1) + ".svg)\n";
	return text;
}

} // namespace

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
	text += ChartsMarkdown(scenario, output, charts);
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

std::string ShortMarkdownOf(const Scenario &scenario, const Results &results, const Output &output,
			    const std::string &charts)
{
	std::string text, published = PublishedBy(scenario, output), facts;
	if (!published.empty())
		text += "*published*: " + published + ".\n";
	for (const Fact &fact : FactsOf(results)) {
		bool named = fact.name == "kernel" || fact.name == "scale";
		if (named || fact.name == "CPU" || fact.name == "versions" || fact.name == "began")
			facts += (facts.empty() ? "" : "; ") + (named ? fact.name + " " : "") +
				 EscapeMarkdown(fact.text);
	}
	text += "*here*: " + facts + ".\n";
	for (const MadeTable &table : output.tables)
		text += "\n" + TableMarkdown(table);
	return text + ChartsMarkdown(scenario, output, charts);
}

} // namespace forktail::lab
