// SPDX-License-Identifier: MIT
// See limits_file.h. An unknown key is an error: a misspelled limit must not count as met.
#include "limits_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <strings.h>

#include "analysis/timeline/causes.h"
#include "common/toml/table.h"

namespace forktail::analysis::gate
{

namespace
{

using common::Table;

void ReadOne(Table *file, const toml::node &node, AskedLimits *limits)
{
	AskedLimit asked;
	std::string why;
	if (const auto *text = node.as_string())
		asked.text = text->get();
	else if (const toml::table *table = node.as_table()) {
		for (const auto &[key, value] : *table) {
			const auto *string = value.as_string();
			if (!string || (key.str() != "limit" && key.str() != "name"))
				return file->RefuseAt(
				    value, "`" + std::string(key.str()) +
					       "`: a limit takes only `limit` and `name`, both strings");
			(key.str() == "limit" ? asked.text : asked.name) = string->get();
		}
	} else {
		return file->RefuseAt(node,
				      "a limit must be a string or { limit = \"...\", name = \"...\" }");
	}
	if (!AddLimit(asked, LIMIT_HAS_TO_HOLD, limits, &why))
		file->RefuseAt(node, why);
}

void ReadAll(Table *file, AskedLimits *limits)
{
	for (const auto &[key, node] : file->nodes()) {
		const toml::array *list = key.str() == "limits" ? node.as_array() : nullptr;
		if (key.str() == "slow" && node.is_string())
			limits->slow = node.as_string()->get();
		else if (!list)
			file->RefuseAt(node,
				       "`" + std::string(key.str()) +
					   "`: only `limits` (a list) and `slow` (a string) are allowed");
		else
			for (const toml::node &one : *list)
				ReadOne(file, one, limits);
	}
}

} // namespace

bool AddLimit(const AskedLimit &asked, limit_reading reading, AskedLimits *limits, std::string *error)
{
	if (strncasecmp(asked.text.c_str(), "no worse than ", 14) == 0) {
		for (const char *figure : {"p50 ", "p99 ", "p99.9 "})
			if (!AddLimit({figure + asked.text, asked.name}, reading, limits, error))
				return false;
		return true;
	}
	limit l;
	char why[700];
	if (!limit_parse(asked.text.c_str(), &l, why, sizeof why) ||
	    (reading == LIMIT_HAS_TO_HOLD && !limit_can_hold(&l, asked.text.c_str(), why, sizeof why))) {
		*error = why;
		return false;
	}
	Cause cause;
	if (l.cause && !CauseByName(l.of, &cause)) {
		*error = "unknown cause \"" + std::string(l.of) + "\" in \"" + asked.text +
			 "\". docs/reference/causes.md lists the causes";
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
		*error = "cannot read " + path + ": " + (errno ? strerror(errno) : "the file is empty");
		return false;
	}
	return common::ReadTables(
	    text.str(), path, "a limits file", [&](Table *all) { ReadAll(all, limits); }, error);
}

} // namespace forktail::analysis::gate
