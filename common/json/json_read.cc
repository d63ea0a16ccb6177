// SPDX-License-Identifier: MIT
// The parser and the access to members, compiled once for all programs that read JSON.
#include "json_read.h"

#include <cmath>

namespace forktail::common
{

Json ParseJson(const std::string &text)
{
	return Json::parse(text, nullptr, false);
}

Json ParseMember(std::istream &text, const std::string &key)
{
	return Json::parse(
	    text,
	    [&](int depth, Json::parse_event_t event, const Json &parsed) {
		    return depth != 1 || event != Json::parse_event_t::key || parsed == key;
	    },
	    false);
}

Json ParseObject(const std::string &text)
{
	Json j = ParseJson(text);
	return j.is_object() ? j : Json::object();
}

const Json *Member(const Json &j, const char *key)
{
	if (!j.is_object())
		return nullptr;
	auto found = j.find(key);
	return found == j.end() ? nullptr : &*found;
}

std::string AsText(const Json &j)
{
	return j.is_string() ? j.get<std::string>() : j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Text(const Json &j, const char *key)
{
	const Json *m = Member(j, key);
	return m && m->is_string() ? m->get<std::string>() : std::string();
}

double Number(const Json &j, const char *key)
{
	const Json *m = Member(j, key);
	double value = m && m->is_number() ? m->get<double>() : 0;
	return std::isfinite(value) ? value : 0;
}

uint64_t Whole(const Json &j, const char *key)
{
	const Json *m = Member(j, key);
	if (!m || !m->is_number())
		return 0;
	if (m->is_number_unsigned())
		return m->get<uint64_t>();
	double value = m->get<double>();
	return value >= 0 && value < 1.8e19 ? static_cast<uint64_t>(value) : 0;
}

bool Flag(const Json &j, const char *key)
{
	const Json *m = Member(j, key);
	return m && m->is_boolean() && m->get<bool>();
}

std::vector<std::string> Texts(const Json &j, const char *key)
{
	std::vector<std::string> texts;
	if (const Json *m = Member(j, key); m && m->is_array())
		for (const Json &item : *m)
			texts.push_back(AsText(item));
	return texts;
}

std::map<std::string, std::string> TextMap(const Json &j, const char *key)
{
	std::map<std::string, std::string> map;
	if (const Json *m = Member(j, key); m && m->is_object())
		for (const auto &[name, value] : m->items())
			map[name] = AsText(value);
	return map;
}

} // namespace forktail::common
