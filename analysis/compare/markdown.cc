// SPDX-License-Identifier: MIT
// A comparison as a pull-request comment. Names of runs and settings are untrusted text: they must not become
// markup.
#include "compare.h"
#include "table.h"

namespace forktail::analysis::compare
{

namespace
{

std::string Escaped(const std::string &text)
{
	std::string out;
	for (char c : text) {
		if (c == '<' || c == '>' || c == '&') {
			out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
			continue;
		}
		if (std::string("\\`*_[]()#|!~@").find(c) != std::string::npos)
			out += '\\';
		out += c == '\n' ? ' ' : c;
	}
	return out;
}

std::string Row(const std::vector<std::string> &cells)
{
	std::string out = "|";
	for (const std::string &cell : cells)
		out += " " + Escaped(cell) + " |";
	return out + "\n";
}

std::string TableText(const ComparisonTable &table)
{
	std::string out = Row(table.head) + "|";
	for (size_t i = 0; i < table.head.size(); i++)
		out += i ? "---:|" : "---|";
	out += "\n";
	for (const auto &row : table.rows)
		out += Row(row);
	return out;
}

} // namespace

std::string ComparisonMarkdown(const Comparison &c)
{
	std::string out = "**forktail diff: " + std::string(VerdictName(c.verdict)) + "** - " +
			  Escaped(c.reason) + ".\n\nA: " + Escaped(SideText(c.a)) +
			  "  \nB: " + Escaped(SideText(c.b)) + "\n";
	if (ComparisonTable facts = FactsOf(c); !facts.rows.empty())
		out += "\n**" + facts.title + "**\n\n" + TableText(facts);
	if (!c.changes.empty())
		out += "\n";
	for (const std::string &change : c.changes)
		out += "- " + Escaped(change) + "\n";
	bool first = true;
	for (const ComparisonTable &table : TablesOf(c)) {
		std::string text = TableText(table);
		out += first ? "\n" + text
			     : "\n<details><summary>" + Escaped(table.title) + "</summary>\n\n" + text +
				   "\n</details>\n";
		first = false;
	}
	for (const std::string &note : c.notes)
		out += "\nNote: " + Escaped(note) + "\n";
	return out;
}

} // namespace forktail::analysis::compare
