// SPDX-License-Identifier: MIT
// See about.h.
#include "about.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "analysis/exports/tables/schema.h"
#include "analysis/timeline/causes.h"
#include "common/json/json_read.h"

namespace forktail::analysis::exports
{

namespace
{

const char *TypeName(ColumnType type)
{
	switch (type) {
	case ColumnType::Small:
		return "int32";
	case ColumnType::Double:
		return "double";
	case ColumnType::Bool:
		return "bool";
	case ColumnType::Time:
		return "time";
	case ColumnType::Name:
	case ColumnType::Text:
		return "text";
	default:
		return "int64";
	}
}

const TableKind *FindTable(const std::string &name)
{
	for (const TableKind &kind : Tables())
		if (name == kind.name)
			return &kind;
	return nullptr;
}

std::string Joined(const std::vector<std::string> &names)
{
	std::string all;
	for (const std::string &n : names)
		all += (all.empty() ? "" : ",") + n;
	return all;
}

// Adds what is missing. Columns that a newer forktail added to a table stay.
void AddOurs(const std::vector<std::string> &tables, common::Json *about)
{
	for (const std::string &name : tables) {
		common::Json &columns = (*about)["tables"][name];
		const TableKind *kind = FindTable(name);
		if (!kind || (columns.is_array() && columns.size() >= kind->columns.size()))
			continue;
		columns = common::Json::array();
		for (const TableColumn &c : kind->columns)
			columns.push_back({c.name, TypeName(c.type)});
	}
	for (const CauseInfo &info : kCauseTable)
		if (common::Json &cause = (*about)["causes"][info.name]; cause.is_null())
			cause = {{"family", FamilyName(info.family)},
				 {"light", info.light},
				 {"dark", info.dark},
				 {"meaning", info.meaning}};
}

bool Write(const std::string &path, const common::Json &about, std::string *error)
{
	const std::string at = path + "." + std::to_string(getpid());
	std::ofstream out(at);
	out << about.dump(1) << "\n";
	out.close();
	if (out.good() && rename(at.c_str(), path.c_str()) == 0)
		return true;
	*error = "cannot write " + path + ": " + strerror(errno);
	unlink(at.c_str());
	return false;
}

} // namespace

bool CheckTables(const std::vector<std::string> &tables, std::string *error)
{
	for (const std::string &name : tables)
		if (!FindTable(name)) {
			*error = "unknown table '" + name +
				 "'. docs/reference/exports-and-sql.md lists the tables";
			return false;
		}
	return true;
}

bool UpdateAbout(const std::string &path, const std::vector<std::string> &asked,
		 std::vector<std::string> *tables, std::string *error)
{
	std::vector<std::string> wanted = asked;
	if (!asked.empty() && std::find(asked.begin(), asked.end(), "runs") == asked.end())
		wanted.insert(wanted.begin(), "runs"); // it identifies the rows of all other tables
	common::Json about = {{"format", "forktail data set"}, {"schema", kTablesSchema}};
	if (std::ifstream in(path); in) {
		std::ostringstream text;
		text << in.rdbuf();
		about = common::ParseObject(text.str());
		if (common::Text(about, "format") != "forktail data set") {
			*error = path + " was not written by forktail";
			return false;
		}
		if (common::Whole(about, "schema") != kTablesSchema) {
			*error = path + ": the data set has schema " + common::AsText(about["schema"]) +
				 ", and this forktail writes " + std::to_string(kTablesSchema) +
				 ". Create another data set";
			return false;
		}
	}
	const common::Json before = about;
	std::vector<std::string> has;
	if (const common::Json *there = common::Member(about, "tables"); there && there->is_object())
		for (const auto &[name, columns] : there->items())
			has.push_back(name);
	std::sort(wanted.begin(), wanted.end());
	wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
	if (!has.empty() && !wanted.empty() && has != wanted) {
		*error = "the data set has the tables " + Joined(has) + ", not " + Joined(wanted) +
			 ". Omit --tables, or create another data set";
		return false;
	}
	*tables = !has.empty() ? has : wanted;
	if (tables->empty())
		for (const TableKind &kind : Tables())
			tables->push_back(kind.name);
	AddOurs(*tables, &about);
	return about == before || Write(path, about, error);
}

} // namespace forktail::analysis::exports
