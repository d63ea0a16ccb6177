// SPDX-License-Identifier: MIT
// See limits_file.h. A key that nobody knows is a mistake: a limit that is misspelled must not be one that
// holds.
#include "limits_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <strings.h>
#include <toml++/toml.h>

#include "analysis/timeline/causes.h"

namespace forktail::analysis::gate
{

namespace
{

// Where a mistake is: "limits.toml:3".
struct Place {
	const std::string &path;
	std::string At(const toml::node &node) const
	{
		return path + ":" + std::to_string(node.source().begin.line) + ": ";
	}
};

bool ReadOne(const toml::node &node, const Place &place, AskedLimits *limits, std::string *error)
{
	AskedLimit asked;
	if (const auto *text = node.as_string())
		asked.text = text->get();
	else if (const toml::table *table = node.as_table()) {
		for (const auto &[key, value] : *table) {
			const auto *said = value.as_string();
			if (!said || (key.str() != "limit" && key.str() != "name")) {
				*error = place.At(value) +
					 "a limit has `limit` and `name`, which are texts, not `" +
					 std::string(key.str()) + "`";
				return false;
			}
			(key.str() == "limit" ? asked.text : asked.name) = said->get();
		}
	} else {
		*error = place.At(node) + "a limit is a text, or { limit = \"...\", name = \"...\" }";
		return false;
	}
	if (AddLimit(asked, limits, error))
		return true;
	*error = place.At(node) + *error;
	return false;
}

bool ReadTable(const toml::table &table, const Place &place, AskedLimits *limits, std::string *error)
{
	for (const auto &[key, node] : table) {
		if (key.str() == "slow" && node.is_string()) {
			limits->slow = node.as_string()->get();
			continue;
		}
		const toml::array *list = key.str() == "limits" ? node.as_array() : nullptr;
		if (!list) {
			*error = place.At(node) + "there are `limits`, a list, and `slow`, a text, not `" +
				 std::string(key.str()) + "`";
			return false;
		}
		for (const toml::node &one : *list)
			if (!ReadOne(one, place, limits, error))
				return false;
	}
	return true;
}

} // namespace

bool AddLimit(const AskedLimit &asked, AskedLimits *limits, std::string *error)
{
	if (strncasecmp(asked.text.c_str(), "no worse than ", 14) == 0) {
		for (const char *figure : {"p50 ", "p99 ", "p99.9 "})
			if (!AddLimit({figure + asked.text, asked.name}, limits, error))
				return false;
		return true;
	}
	limit l;
	char why[700];
	if (!limit_parse(asked.text.c_str(), &l, why, sizeof why)) {
		*error = why;
		return false;
	}
	Cause cause;
	if (l.cause && !CauseByName(l.of, &cause)) {
		*error = "there is no cause \"" + std::string(l.of) + "\" (docs/causes.md has all), so \"" +
			 asked.text + "\" can't be held";
		return false;
	}
	limits->asked.push_back(asked);
	limits->limits.push_back(l);
	return true;
}

bool ReadLimitsFile(const std::string &path, AskedLimits *limits, std::string *error)
{
	errno = 0;
	std::ifstream file(path);
	std::stringstream text;
	if (!file || !(text << file.rdbuf())) {
		*error = "can't read " + path + ": " + (errno ? strerror(errno) : "it is empty");
		return false;
	}
	try {
		return ReadTable(toml::parse(text.str(), path), {path}, limits, error);
	} catch (const toml::parse_error &e) {
		*error =
		    path + ":" + std::to_string(e.source().begin.line) + ": " + std::string(e.description());
		return false;
	}
}

} // namespace forktail::analysis::gate
