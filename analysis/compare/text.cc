// SPDX-License-Identifier: MIT
// A comparison for a terminal: the verdict, other differences, the changes as sentences, then tables.
#include <algorithm>

#include "compare.h"
#include "table.h"

namespace forktail::analysis::compare
{

namespace
{

// Columns as wide as their longest cell; numbers are right-aligned.
std::string Columns(const ComparisonTable &table, bool numbers)
{
	std::vector<size_t> widths(table.head.size());
	auto see = [&](const std::vector<std::string> &row) {
		for (size_t i = 0; i < row.size(); i++)
			widths[i] = std::max(widths[i], row[i].size());
	};
	see(table.head);
	for (const auto &row : table.rows)
		see(row);
	std::string out;
	auto add = [&](const std::vector<std::string> &row) {
		std::string line = " ";
		for (size_t i = 0; i < row.size(); i++) {
			std::string space(widths[i] - row[i].size(), ' ');
			bool right = numbers && i > 0 && i + 1 < row.size();
			line += " " + (right ? space + row[i] : row[i] + space) + (widths[i] ? " " : "");
		}
		out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
	};
	add(table.head);
	for (const auto &row : table.rows)
		add(row);
	return out;
}

} // namespace

std::string ComparisonText(const Comparison &c, bool colour)
{
	auto strong = [&](const std::string &text) { return colour ? "\033[1m" + text + "\033[0m" : text; };
	std::string out = strong(std::string(VerdictName(c.verdict)) + ": ") + c.reason + ".\n";
	out += "  A: " + SideText(c.a) + "\n  B: " + SideText(c.b) + "\n";
	if (ComparisonTable facts = FactsOf(c); !facts.rows.empty())
		out += "\n" + strong(facts.title) + "\n" + Columns(facts, false);
	if (!c.changes.empty())
		out += "\n" + strong("What changed") + "\n";
	for (const std::string &change : c.changes)
		out += "  " + change + "\n";
	for (const ComparisonTable &table : TablesOf(c))
		out += "\n" + strong(table.title) + "\n" + Columns(table, true);
	for (const std::string &note : c.notes)
		out += "\nnote: " + note + "\n";
	return out;
}

} // namespace forktail::analysis::compare
