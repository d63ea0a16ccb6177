// SPDX-License-Identifier: MIT
// See table.h.
#include "table.h"

#include <algorithm>

#include "common/format/units.h"
#include "common/text/parse.h"

namespace forktail::common
{

void Table::RefuseAt(const toml::node &at, const std::string &why)
{
	if (good())
		*error_ = path_ + ":" + std::to_string(at.source().begin.line) + ": " + why;
}

void Table::Refuse(const std::string &why, const char *key)
{
	const toml::node *node = key ? table_.get(key) : nullptr;
	RefuseAt(node ? *node : table_, why);
}

void Table::Known(std::initializer_list<const char *> keys)
{
	for (const auto &[key, node] : table_)
		if (std::none_of(keys.begin(), keys.end(), [&](const char *k) { return key.str() == k; }))
			RefuseAt(node, what_ + " has no `" + std::string(key.str()) + "`");
}

void Table::Text(const char *key, std::string *out)
{
	const toml::node *node = table_.get(key);
	if (node && !node->is_string())
		RefuseAt(*node, "`" + std::string(key) + "` is a text");
	else if (node)
		*out = node->as_string()->get();
}

void Table::Flag(const char *key, bool *out)
{
	const toml::node *node = table_.get(key);
	if (node && !node->is_boolean())
		RefuseAt(*node, "`" + std::string(key) + "` is true or false");
	else if (node)
		*out = node->as_boolean()->get();
}

void Table::Time(const char *key, uint64_t *ns)
{
	std::string text;
	Text(key, &text);
	if (Has(key) && good() && !parse_duration(text.c_str(), TIME_ANY, 0, ns))
		Refuse("`" + std::string(key) + "` is a time such as \"30s\", not \"" + text + "\"", key);
}

void Table::TimeWithin(const char *key, uint64_t low_ns, uint64_t high_ns, uint64_t *ns)
{
	std::string text;
	uint64_t value = 0;
	Text(key, &text);
	if (!Has(key) || !good())
		return;
	if (!parse_duration(text.c_str(), TIME_ANY, 0, &value) || value < low_ns || value > high_ns)
		return Refuse("`" + std::string(key) + "` is a time from " + FormatDuration(low_ns) + " to " +
				  FormatDuration(high_ns) + " such as \"30s\", not \"" + text + "\"",
			      key);
	*ns = value;
}

void Table::Count(const char *key, uint64_t low, uint64_t high, uint64_t *out)
{
	const toml::node *node = table_.get(key);
	if (!node)
		return;
	const auto *number = node->as_integer();
	if (!number || number->get() < 0 || static_cast<uint64_t>(number->get()) < low ||
	    static_cast<uint64_t>(number->get()) > high)
		return RefuseAt(*node, "`" + std::string(key) + "` is a number from " + FormatCount(low) +
					   " to " + FormatCount(high));
	*out = static_cast<uint64_t>(number->get());
}

void Table::Size(const char *key, uint64_t *bytes)
{
	std::string text;
	Text(key, &text);
	if (Has(key) && good() && !parse_bytes(text.c_str(), bytes))
		Refuse("`" + std::string(key) + "` is a size such as \"1GB\", not \"" + text + "\"", key);
}

void Table::Word(const char *key, const toml::node &node, std::vector<std::string> *out)
{
	if (const auto *text = node.as_string())
		out->push_back(text->get());
	else if (const auto *number = node.as_integer())
		out->push_back(std::to_string(number->get()));
	else
		RefuseAt(node, "`" + std::string(key) + "` is a text or a list of texts");
}

void Table::Words(const char *key, std::vector<std::string> *out)
{
	const toml::node *node = table_.get(key);
	if (!node)
		return;
	if (const toml::array *list = node->as_array())
		for (const toml::node &one : *list)
			Word(key, one, out);
	else
		Word(key, *node, out);
}

void Table::Inner(const char *key, const std::function<void(Table *)> &see)
{
	const toml::node *node = table_.get(key);
	if (!node)
		return;
	if (!node->is_table())
		return RefuseAt(*node, "[" + std::string(key) + "] is a table of its own");
	Table table(*node->as_table(), "[" + std::string(key) + "]", path_, error_);
	see(&table);
}

void Table::Each(const char *key, const std::string &what, const std::function<void(Table *)> &see)
{
	const toml::node *node = table_.get(key);
	const toml::array *list = node ? node->as_array() : nullptr;
	const std::string written = "[[" + std::string(key) + "]]";
	if (node && !list)
		return RefuseAt(*node, written + " is written with two brackets");
	for (size_t i = 0; list && i < list->size() && good(); i++) {
		const toml::table *one = (*list)[i].as_table();
		if (!one)
			return RefuseAt(*node, written + " is written with two brackets");
		Table table(*one, what, path_, error_);
		see(&table);
	}
}

bool ReadTables(const std::string &text, const std::string &path, const std::string &what,
		const std::function<void(Table *)> &see, std::string *error)
{
	error->clear();
	try {
		const toml::table all = toml::parse(text, path);
		Table table(all, what, path, error);
		see(&table);
	} catch (const toml::parse_error &e) {
		*error =
		    path + ":" + std::to_string(e.source().begin.line) + ": " + std::string(e.description());
	}
	return error->empty();
}

} // namespace forktail::common
