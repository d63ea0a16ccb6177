// SPDX-License-Identifier: MIT
// A table of a TOML file (a plan of hosts, the configuration of what is always on) as it is read: each key is
// asked for once, by what it is to be; what was wrong first is kept, with its line. A key that nobody knows
// is a mistake: what is misspelled must not be as if it weren't there.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <toml++/toml.h>
#include <vector>

namespace forktail::common
{

class Table
{
public:
	Table(const toml::table &table, const std::string &what, const std::string &path, std::string *error)
	    : table_(table), what_(what), path_(path), error_(error)
	{
	}
	bool good() const { return error_->empty(); }
	bool Has(const char *key) const { return table_.contains(key); }
	// At the table's line, or a key's.
	void Refuse(const std::string &why, const char *key = nullptr);
	void Known(std::initializer_list<const char *> keys);

	// What is read stays as it is where the key is missing.
	void Text(const char *key, std::string *out);
	void Flag(const char *key, bool *out);
	// A time has a unit.
	void Time(const char *key, uint64_t *ns);
	void TimeWithin(const char *key, uint64_t low_ns, uint64_t high_ns, uint64_t *ns);
	void Count(const char *key, uint64_t low, uint64_t high, uint64_t *out);
	void Size(const char *key, uint64_t *bytes);
	// A text, a number, or a list of them.
	void Words(const char *key, std::vector<std::string> *out);

	// [key], if it is there; [[key]], each, which refusals call `what`.
	void Inner(const char *key, const std::function<void(Table *)> &see);
	void Each(const char *key, const std::string &what, const std::function<void(Table *)> &see);

private:
	void RefuseAt(const toml::node &at, const std::string &why);
	void Word(const char *key, const toml::node &node, std::vector<std::string> *out);

	const toml::table &table_;
	const std::string what_, &path_;
	std::string *error_;
};

// Has a file's text seen as one table, which refusals call `what`; `path` stands before the line. False, and
// one line in *error: what TOML itself refuses, or what `see` refused first.
bool ReadTables(const std::string &text, const std::string &path, const std::string &what,
		const std::function<void(Table *)> &see, std::string *error);

} // namespace forktail::common
