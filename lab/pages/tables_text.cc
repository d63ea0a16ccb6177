// SPDX-License-Identifier: MIT
// Tables for a terminal. Titles are wrapped to the width of their figures, long texts are wrapped, and a
// table that is still too wide continues below with its key columns repeated.
#include <algorithm>

#include "tables.h"

namespace forktail::lab
{
namespace
{

constexpr size_t kTextWidth = 48; // of a column of texts
constexpr size_t kTitleWidth = 9; // minimum for any title: "published"
const char *const kGap = "  ";
constexpr size_t kGapWidth = 2;

using Lines = std::vector<std::string>;

// Counts characters, not bytes. Characters of two columns are not supported.
size_t WidthOf(const std::string &text)
{
	return static_cast<size_t>(
	    std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

size_t WidthOf(const Lines &lines)
{
	size_t width = 0;
	for (const std::string &line : lines)
		width = std::max(width, WidthOf(line));
	return width;
}

// Wraps between words only.
Lines Wrap(const std::string &text, size_t width)
{
	Lines lines = {""};
	for (size_t at = 0; at <= text.size();) {
		size_t end = std::min(text.find(' ', at), text.size());
		std::string word = text.substr(at, end - at);
		if (lines.back().empty())
			lines.back() = word;
		else if (WidthOf(lines.back()) + 1 + WidthOf(word) <= width)
			lines.back() += " " + word;
		else
			lines.push_back(word);
		at = end + 1;
	}
	return lines;
}

// A column, laid out as lines.
struct LaidOut {
	bool right = false;
	size_t width = 0;
	Lines head;
	std::vector<Lines> cells;
};

LaidOut LayOut(const MadeTable &table, size_t index)
{
	const Head &head = table.heads[index];
	LaidOut column;
	column.right = head.number;
	for (const std::vector<Cell> &row : table.rows) {
		const std::string &text = row[index].text;
		column.cells.push_back(head.number ? Lines{text} : Wrap(text, kTextWidth));
		column.width = std::max(column.width, WidthOf(column.cells.back()));
	}
	column.head = Wrap(head.title, std::max(column.width, kTitleWidth));
	column.width = std::max(column.width, WidthOf(column.head));
	return column;
}

void AppendLine(const std::vector<const LaidOut *> &columns, const std::vector<std::string> &texts,
		std::string *out)
{
	std::string line;
	for (size_t i = 0; i < columns.size(); i++) {
		std::string space(columns[i]->width - WidthOf(texts[i]), ' ');
		line += (i ? kGap : "") + (columns[i]->right ? space + texts[i] : texts[i] + space);
	}
	line.erase(line.find_last_not_of(' ') + 1);
	*out += line + "\n";
}

// Rows of several lines: titles are aligned to the bottom, cells to the top.
void AppendLines(const std::vector<const LaidOut *> &columns, const std::vector<const Lines *> &cells,
		 bool bottom, std::string *out)
{
	size_t height = 0;
	for (const Lines *lines : cells)
		height = std::max(height, lines->size());
	for (size_t i = 0; i < height; i++) {
		std::vector<std::string> texts;
		for (const Lines *lines : cells) {
			size_t above = bottom ? height - lines->size() : 0;
			texts.push_back(i >= above && i - above < lines->size() ? (*lines)[i - above] : "");
		}
		AppendLine(columns, texts, out);
	}
}

void AppendBlock(const std::vector<const LaidOut *> &columns, size_t rows, std::string *out)
{
	std::vector<const Lines *> cells;
	std::vector<std::string> rules;
	for (const LaidOut *column : columns) {
		cells.push_back(&column->head);
		rules.push_back(std::string(column->width, '-'));
	}
	AppendLines(columns, cells, true, out);
	AppendLine(columns, rules, out);
	for (size_t row = 0; row < rows; row++) {
		for (size_t i = 0; i < columns.size(); i++)
			cells[i] = &columns[i]->cells[row];
		AppendLines(columns, cells, false, out);
	}
}

} // namespace

std::string TableText(const MadeTable &table, size_t width)
{
	std::vector<LaidOut> columns;
	for (size_t i = 0; i < table.heads.size(); i++)
		columns.push_back(LayOut(table, i));
	std::vector<const LaidOut *> keys;
	size_t keys_width = 0, i = 0;
	for (; i < columns.size() && table.heads[i].key; i++) {
		keys.push_back(&columns[i]);
		keys_width += columns[i].width + kGapWidth;
	}
	std::string out;
	do {
		std::vector<const LaidOut *> block = keys;
		size_t used = keys_width;
		for (bool first = true; i < columns.size(); first = false) {
			// A published column stays next to ours.
			size_t together = i + 1 < columns.size() && table.heads[i + 1].published ? 2 : 1;
			size_t more = 0;
			for (size_t k = i; k < i + together; k++)
				more += columns[k].width + kGapWidth;
			if (width && !first && used + more > width + kGapWidth)
				break;
			for (size_t k = i; k < i + together; k++)
				block.push_back(&columns[k]);
			used += more;
			i += together;
		}
		AppendBlock(block, table.rows.size(), &out);
		if (i < columns.size())
			out += "\n";
	} while (i < columns.size());
	return out;
}

} // namespace forktail::lab
