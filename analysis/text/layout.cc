// SPDX-License-Identifier: MIT
// Lays out text for a terminal: width, line breaks, bars and colours.
#include "layout.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cwchar>
#include <iterator>

namespace forktail::analysis
{

namespace
{

std::string Coloured(bool colour, const char *code, const std::string &text)
{
	return colour && !text.empty() ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
}

// The number of bytes of the UTF-8 character at `at`, at most up to the end of the text.
size_t LetterBytes(const std::string &text, size_t at)
{
	unsigned char first = static_cast<unsigned char>(text[at]);
	size_t bytes = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	return std::min(bytes, text.size() - at);
}

// By the locale's table; in an ASCII locale, one column per character.
size_t LetterWidth(const std::string &text, size_t at, size_t bytes)
{
	if (bytes == 1)
		return 1;
	uint32_t letter = static_cast<unsigned char>(text[at]) & (0x7fu >> bytes);
	for (size_t i = 1; i < bytes; i++)
		letter = letter << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3f);
	int width = wcwidth(static_cast<wchar_t>(letter));
	return width < 0 ? 1 : static_cast<size_t>(width);
}

// The number of bytes that fit into `columns`.
size_t Fitting(const std::string &text, size_t columns)
{
	size_t at = 0;
	for (size_t width = 0; at < text.size();) {
		size_t bytes = LetterBytes(text, at);
		width += LetterWidth(text, at, bytes);
		if (width > columns)
			break;
		at += bytes;
	}
	return at;
}

} // namespace

std::string Style::Strong(const std::string &text) const
{
	return Coloured(colour, "1", text);
}
std::string Style::Dim(const std::string &text) const
{
	return Coloured(colour, "2", text);
}
std::string Style::Alarming(const std::string &text) const
{
	return Coloured(colour, "31", text);
}
std::string Style::Tinted(Cause cause, const std::string &text) const
{
	switch (InfoOf(cause).family) {
	case Family::Memory:
		return Coloured(colour, "31", text);
	case Family::Files:
		return Coloured(colour, "34", text);
	case Family::Cpu:
		return Coloured(colour, "33", text);
	case Family::Interrupts:
		return Coloured(colour, "35", text);
	default:
		return Coloured(colour, "36", text);
	}
}

std::string Format(const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return text;
}

size_t DisplayWidth(const std::string &text)
{
	size_t width = 0;
	for (size_t at = 0; at < text.size();) {
		size_t bytes = LetterBytes(text, at);
		width += LetterWidth(text, at, bytes);
		at += bytes;
	}
	return width;
}

std::string Ellipsized(const std::string &text, size_t columns, const Style &style)
{
	if (DisplayWidth(text) <= columns)
		return text;
	const std::string end = style.Ellipsis();
	size_t width = DisplayWidth(end);
	if (columns < width)
		return text.substr(0, Fitting(text, columns));
	return text.substr(0, Fitting(text, columns - width)) + end;
}

std::string PadRight(const std::string &text, size_t columns)
{
	size_t width = DisplayWidth(text);
	return text + std::string(columns - std::min(width, columns), ' ');
}
std::string PadLeft(const std::string &text, size_t columns)
{
	size_t width = DisplayWidth(text);
	return std::string(columns - std::min(width, columns), ' ') + text;
}

namespace
{

// The end of the word that begins at `at`. A number and its unit are one word.
size_t EndOfWord(const std::string &text, size_t at)
{
	static constexpr const char *kUnits[] = {"%", "B", "GB", "MB", "kB", "ms", "ns", "s", "us"};
	const size_t end = std::min(text.find(' ', at), text.size());
	if (end == text.size() || text[at] < '0' || text[at] > '9')
		return end;
	const size_t next = std::min(text.find(' ', end + 1), text.size());
	std::string unit = text.substr(end + 1, next - end - 1);
	unit.erase(unit.find_last_not_of(".,:;)") + 1);
	const bool is_unit =
	    std::any_of(std::begin(kUnits), std::end(kUnits), [&](const char *u) { return unit == u; });
	return is_unit ? next : end;
}

} // namespace

std::string Wrap(const std::string &text, size_t first, size_t indent, size_t columns)
{
	std::string out;
	size_t column = first;
	bool starts_line = true;
	auto next_line = [&] {
		out += "\n" + std::string(indent, ' ');
		column = indent;
		starts_line = true;
	};
	for (size_t at = 0; at < text.size();) {
		size_t end = EndOfWord(text, at);
		std::string word = text.substr(at, end - at);
		size_t width = DisplayWidth(word);
		if (!starts_line && column + 1 + width > columns)
			next_line();
		if (!starts_line) {
			out += ' ';
			column++;
		}
		while (column + width > columns && columns > indent + 1) {
			size_t fits = std::max<size_t>(Fitting(word, columns - column), 1);
			if (fits >= word.size())
				break;
			out += word.substr(0, fits);
			word.erase(0, fits);
			width = DisplayWidth(word);
			next_line();
		}
		out += word;
		column += width;
		starts_line = false;
		at = end + 1;
	}
	return out + "\n";
}

std::vector<std::string> Lines(const std::string &text)
{
	std::vector<std::string> lines;
	for (size_t at = 0; at < text.size();) {
		size_t end = std::min(text.find('\n', at), text.size());
		lines.push_back(text.substr(at, end - at));
		at = end + 1;
	}
	return lines;
}

std::string Bar(double fraction, size_t columns, const Style &style)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	const size_t steps = style.unicode ? 8 : 1;
	double exact = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(columns * steps);
	size_t length = static_cast<size_t>(std::lround(exact));
	if (length == 0 && fraction > 0 && columns)
		length = 1;
	std::string bar;
	for (size_t i = 0; i < length / steps; i++)
		bar += style.unicode ? "█" : "#";
	if (length % steps)
		bar += eighths[length % steps];
	return PadRight(bar, columns);
}

} // namespace forktail::analysis
