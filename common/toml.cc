// SPDX-License-Identifier: MIT
// Tables of TOML files.
#include "common/toml.h"

#include "common/format.h"
#include "common/text.h"

namespace forktail::common
{

namespace
{

bool AsText(const toml::node &node, std::string *out)
{
	if (const auto *text = node.as_string()) {
		*out = text->get();
	} else if (const auto *whole = node.as_integer()) {
		*out = std::to_string(whole->get());
	} else if (const auto *number = node.as_floating_point()) {
		char digits[32];
		snprintf(digits, sizeof(digits), "%.15g", number->get());
		*out = digits;
	} else {
		return false;
	}
	return true;
}

bool AsTexts(const toml::node &node, std::vector<std::string> *out)
{
	std::string one;
	if (const toml::array *list = node.as_array()) {
		for (const toml::node &element : *list) {
			if (!AsText(element, &one))
				return false;
			out->push_back(one);
		}
		return true;
	}
	const bool good = AsText(node, &one);
	if (good)
		out->push_back(one);
	return good;
}

} // namespace

void Table::RefuseAt(const toml::node &at, const std::string &why)
{
	if (good())
		*file_.error = file_.path + ":" + std::to_string(at.source().begin.line) + ": " + why;
}

void Table::Refuse(const std::string &why, const char *key)
{
	const toml::node *node = key ? table_.get(key) : nullptr;
	RefuseAt(node ? *node : table_, why);
}

void Table::RefuseValue(const std::string &key, const toml::node &at, const std::string &wanted)
{
	RefuseAt(at, "`" + key + "` must be " + wanted);
}

void Table::Required(const char *key)
{
	if (!Has(key))
		Refuse(what_ + " needs `" + key + "`");
}

void Table::End()
{
	for (const auto &[key, node] : table_)
		if (opened_good_ && !asked_.count(std::string(key.str()))) {
			file_.error->clear();
			return RefuseAt(node, what_ + " has no `" + std::string(key.str()) + "`");
		}
}

const toml::node *Table::Find(const char *key)
{
	asked_.insert(key);
	return table_.get(key);
}

void Table::Value(const std::string &key, const toml::node &node, std::string *out)
{
	if (!node.is_string())
		RefuseValue(key, node, "a string");
	else
		*out = node.as_string()->get();
}

void Table::Text(const char *key, std::string *out)
{
	if (const toml::node *node = Find(key))
		Value(key, *node, out);
}

void Table::Flag(const char *key, bool *out)
{
	const toml::node *node = Find(key);
	if (node && !node->is_boolean())
		RefuseValue(key, *node, "true or false");
	else if (node)
		*out = node->as_boolean()->get();
}

void Table::TimeWithin(const char *key, uint64_t low_ns, uint64_t high_ns, uint64_t *ns)
{
	std::string text;
	uint64_t value = 0;
	Text(key, &text);
	if (!Has(key) || !good())
		return;
	if (!parse_duration(text.c_str(), TIME_ANY, 0, &value) || value < low_ns || value > high_ns)
		return Refuse("`" + std::string(key) + "` must be a time from " + FormatDuration(low_ns) +
				  " to " + FormatDuration(high_ns) + " such as \"30s\", not \"" + text + "\"",
			      key);
	*ns = value;
}

void Table::Count(const char *key, uint64_t low, uint64_t high, uint64_t *out)
{
	const toml::node *node = Find(key);
	if (!node)
		return;
	const auto *number = node->as_integer();
	if (!number || number->get() < 0 || static_cast<uint64_t>(number->get()) < low ||
	    static_cast<uint64_t>(number->get()) > high)
		return RefuseAt(*node, "`" + std::string(key) + "` must be a number from " +
					   FormatCount(low) + " to " + FormatCount(high));
	*out = static_cast<uint64_t>(number->get());
}

void Table::Size(const char *key, uint64_t *bytes)
{
	std::string text;
	Text(key, &text);
	if (Has(key) && good() && !parse_bytes(text.c_str(), bytes))
		Refuse("`" + std::string(key) + "` must be a size such as \"1GB\", not \"" + text + "\"",
		       key);
}

void Table::Words(const char *key, std::vector<std::string> *out)
{
	const toml::node *node = Find(key);
	if (node && !AsTexts(*node, out))
		RefuseValue(key, *node, "a string or a list of strings");
}

void Table::See(const std::string &key, const toml::node &node, const std::string &what,
		const std::function<void(Table *)> &see)
{
	if (!node.is_table())
		return RefuseAt(node, "[" + key + "] must be a table");
	Table table(*node.as_table(), what, file_);
	see(&table);
	table.End();
}

void Table::Inner(const char *key, const std::function<void(Table *)> &see)
{
	const std::string name(key);
	if (const toml::node *node = Find(key))
		See(name, *node, "[" + name + "]", see);
}

void Table::Each(const char *key, const std::string &what, const std::function<void(Table *)> &see)
{
	const toml::node *node = Find(key);
	const toml::array *list = node ? node->as_array() : nullptr;
	const std::string written = "[[" + std::string(key) + "]]";
	if (node && !(list && (list->empty() || list->is_array_of_tables())))
		RefuseAt(*node, written + " must be written with two brackets");
	else if (node)
		for (const toml::node &one : *list)
			See(key, one, what, see);
}

bool ReadTables(const std::string &text, const std::string &path, const std::string &what,
		const std::function<void(Table *)> &see, std::string *error)
{
	error->clear();
	try {
		const toml::table all = toml::parse(text, path);
		const TableFile file = {path, error};
		Table table(all, what, file);
		see(&table);
	} catch (const toml::parse_error &e) {
		*error =
		    path + ":" + std::to_string(e.source().begin.line) + ": " + std::string(e.description());
	}
	return error->empty();
}

} // namespace forktail::common
