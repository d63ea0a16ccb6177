// SPDX-License-Identifier: MIT
// Both functions escape more than a parser needs, so that the result is text in every context. The text is
// sanitized first.
#include "markup.h"

#include <cctype>

#include "common/json.h"

namespace forktail::lab
{
namespace
{

bool IsWord(const std::string &text, size_t at)
{
	return at < text.size() && isalnum(static_cast<unsigned char>(text[at]));
}

} // namespace

std::string EscapeHtml(const std::string &text)
{
	std::string html;
	for (char c : common::VisibleLines(text))
		switch (c) {
		case '&':
			html += "&amp;";
			break;
		case '<':
			html += "&lt;";
			break;
		case '>':
			html += "&gt;";
			break;
		case '"':
			html += "&quot;";
			break;
		case '\'':
			html += "&#39;";
			break;
		default:
			html += c;
		}
	return html;
}

std::string EscapeMarkdown(const std::string &any)
{
	std::string markdown, text = common::VisibleLines(any);
	for (size_t i = 0; i < text.size(); i++) {
		// LRANGE_100 needs no escape and is easier to read without it.
		bool inner = text[i] == '_' && i > 0 && IsWord(text, i - 1) && IsWord(text, i + 1);
		if (text[i] == '\n')
			markdown += ' ';
		else if (std::string("\\`*_[]<>|#~&").find(text[i]) != std::string::npos && !inner)
			markdown += std::string("\\") + text[i];
		else
			markdown += text[i];
	}
	return markdown;
}

} // namespace forktail::lab
