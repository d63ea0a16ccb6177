// SPDX-License-Identifier: MIT
// Reads a table of a TOML file (limits, the flight recorder's configuration):
// the caller requests each key with its type. The first mistake is reported, with its line. An unknown key
// takes precedence over other mistakes of its table, because it explains why another key is missing.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <toml++/toml.h>
#include <vector>

namespace forktail::common
{

// Shared by all tables of a file.
struct TableFile {
	std::string path; // precedes the line number
	std::string *error;
};

class Table
{
public:
	// Messages call it `what`.
	Table(const toml::table &table, const std::string &what, const TableFile &file)
	    : table_(table), what_(what), file_(file), opened_good_(good())
	{
	}
	bool good() const { return file_.error->empty(); }
	bool Has(const char *key) const { return table_.contains(key); }
	const toml::table &nodes() const { return table_; }
	// At the line of the table or of a key.
	void Refuse(const std::string &why, const char *key = nullptr);
	void RefuseAt(const toml::node &at, const std::string &why);
	void Required(const char *key);

	// The variable stays unchanged if the key is missing.
	void Text(const char *key, std::string *out);
	void Flag(const char *key, bool *out);
	// A time has a unit.
	void TimeWithin(const char *key, uint64_t low_ns, uint64_t high_ns, uint64_t *ns);
	void Count(const char *key, uint64_t low, uint64_t high, uint64_t *out);
	void Size(const char *key, uint64_t *bytes);
	// A string, a number, or a list of them.
	void Words(const char *key, std::vector<std::string> *out);

	// [key], if present; and each [[key]]. Messages call them `what`.
	void Inner(const char *key, const std::function<void(Table *)> &see);
	void Each(const char *key, const std::string &what, const std::function<void(Table *)> &see);
	// Refuses keys that were not read. The functions above do this for inner tables.
	void End();

private:
	const toml::node *Find(const char *key);
	void RefuseValue(const std::string &key, const toml::node &at, const std::string &wanted);
	void Value(const std::string &key, const toml::node &node, std::string *out);
	void See(const std::string &key, const toml::node &node, const std::string &what,
		 const std::function<void(Table *)> &see);

	const toml::table &table_;
	const std::string what_;
	const TableFile &file_;
	const bool opened_good_;
	std::set<std::string> asked_;
};

// Reads a file's text as one table with `see`. False, and one line in *error: what TOML itself or `see`
// refused.
bool ReadTables(const std::string &text, const std::string &path, const std::string &what,
		const std::function<void(Table *)> &see, std::string *error);

} // namespace forktail::common
