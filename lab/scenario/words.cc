// SPDX-License-Identifier: MIT
// Both are stricter than a shell or strtoull, so that an error in a scenario is reported with its line.
#include "words.h"

#include <array>
#include <cctype>
#include <charconv>
#include <utility>

namespace forktail::lab
{

bool ParseBytes(const std::string &text, uint64_t *bytes)
{
	static constexpr std::array<std::pair<const char *, int>, 5> kUnits = {
	    {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};
	uint64_t number;
	auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
	if (failure != std::errc())
		return false;
	std::string unit(rest, text.data() + text.size());
	for (auto [name, shift] : kUnits)
		if (unit == name && number <= UINT64_MAX >> shift) {
			*bytes = number << shift;
			return true;
		}
	return false;
}

bool SplitWords(const std::string &text, std::vector<std::string> *words)
{
	words->clear();
	bool in_word = false;
	char quote = 0;
	for (char c : text) {
		if (quote ? c == quote : c == '\'' || c == '"') {
			quote = quote ? 0 : c;
			if (!in_word)
				words->emplace_back();
			in_word = true;
		} else if (!quote && isspace(static_cast<unsigned char>(c))) {
			in_word = false;
		} else {
			if (!in_word)
				words->emplace_back();
			in_word = true;
			words->back() += c;
		}
	}
	return !quote;
}

} // namespace forktail::lab
