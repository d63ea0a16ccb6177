// SPDX-License-Identifier: MIT
// Tables as Markdown, HTML and CSV; as text in tables_text.cc.
#include <algorithm>
#include <cstdio>

#include "markup.h"
#include "tables.h"

namespace forktail::lab
{
namespace
{

std::string CsvField(const std::string &text)
{
	if (text.find_first_of(",\"\r\n") == std::string::npos)
		return text;
	std::string quoted = "\"";
	for (char c : text)
		quoted += c == '"' ? "\"\"" : std::string(1, c);
	return quoted + "\"";
}

// The range of repeats is shown below the median to save width.
std::string CellHtml(const Cell &cell)
{
	size_t range = cell.least ? cell.text.find(" (") : std::string::npos;
	if (range == std::string::npos)
		return EscapeHtml(cell.text);
	return EscapeHtml(cell.text.substr(0, range)) + " <span class=\"range\">" +
	       EscapeHtml(cell.text.substr(range + 1)) + "</span>";
}

std::string CsvNumber(const std::optional<double> &number)
{
	char text[32] = "";
	if (number)
		snprintf(text, sizeof text, "%.10g", *number);
	return text;
}

bool HasRange(const MadeTable &table, size_t column)
{
	return std::any_of(table.rows.begin(), table.rows.end(),
			   [&](const std::vector<Cell> &row) { return row[column].least.has_value(); });
}

} // namespace

std::string TableMarkdown(const MadeTable &table)
{
	std::string names = "|", rules = "|", body;
	for (const Head &head : table.heads) {
		names += " " + (head.published ? "*" + head.title + "*" : EscapeMarkdown(head.title)) + " |";
		rules += head.number ? " ---: |" : " --- |";
	}
	for (const std::vector<Cell> &row : table.rows) {
		body += "|";
		for (const Cell &cell : row)
			body += " " + EscapeMarkdown(cell.text) + " |";
		body += "\n";
	}
	return names + "\n" + rules + "\n" + body;
}

std::string TableHtml(const MadeTable &table)
{
	auto classes = [](const Head &head) {
		std::string names = std::string(head.number ? "number" : "") +
				    (head.published ? std::string(head.number ? " " : "") + "published" : "");
		return names.empty() ? names : " class=\"" + names + "\"";
	};
	std::string html = "<table>\n<thead><tr>";
	for (const Head &head : table.heads)
		html += "<th scope=\"col\"" + classes(head) + ">" + EscapeHtml(head.title) + "</th>";
	html += "</tr></thead>\n<tbody>\n";
	for (const std::vector<Cell> &row : table.rows) {
		html += "<tr>";
		for (size_t i = 0; i < row.size(); i++) {
			const Head &head = table.heads[i];
			std::string open = head.key ? "<th scope=\"row\"" : "<td";
			html +=
			    open + classes(head) + ">" + CellHtml(row[i]) + (head.key ? "</th>" : "</td>");
		}
		html += "</tr>\n";
	}
	return html + "</tbody>\n</table>\n";
}

std::string TableCsv(const MadeTable &table)
{
	std::vector<bool> ranges;
	std::string csv;
	for (size_t i = 0; i < table.heads.size(); i++) {
		// Columns must have different titles for CSV readers.
		std::string title = table.heads[i].title;
		if (table.heads[i].published)
			title = table.heads[i - 1].title + " (published)";
		ranges.push_back(HasRange(table, i));
		csv += (i ? "," : "") + CsvField(title);
		if (ranges[i])
			csv += "," + CsvField(title + " (least)") + "," + CsvField(title + " (most)");
	}
	csv += "\n";
	for (const std::vector<Cell> &row : table.rows) {
		for (size_t i = 0; i < row.size(); i++) {
			const Cell &cell = row[i];
			csv += (i ? "," : "") + (table.heads[i].number && !table.heads[i].key
						     ? CsvNumber(cell.value)
						     : CsvField(cell.text));
			if (ranges[i])
				csv += "," + CsvNumber(cell.least) + "," + CsvNumber(cell.most);
		}
		csv += "\n";
	}
	return csv;
}

} // namespace forktail::lab
