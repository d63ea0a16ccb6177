// SPDX-License-Identifier: MIT
// Reading JSON that others wrote: a missing or mistyped member is its default, never an exception.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace forktail
{

using Json = nlohmann::json;

// An object; empty if the text is no JSON object.
inline Json ParseObject(const std::string &text)
{
	Json j = Json::parse(text, nullptr, false);
	return j.is_object() ? j : Json::object();
}

inline const Json *Member(const Json &j, const char *key)
{
	if (!j.is_object())
		return nullptr;
	auto found = j.find(key);
	return found == j.end() ? nullptr : &*found;
}

// A value as text: strings as they are, anything else as JSON.
inline std::string AsText(const Json &j)
{
	return j.is_string() ? j.get<std::string>() : j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

inline std::string Text(const Json &j, const char *key)
{
	const Json *m = Member(j, key);
	return m && m->is_string() ? m->get<std::string>() : std::string();
}

inline double Number(const Json &j, const char *key)
{
	const Json *m = Member(j, key);
	double value = m && m->is_number() ? m->get<double>() : 0;
	return std::isfinite(value) ? value : 0;
}

// A whole number from 0 up; anything else is 0.
inline uint64_t Whole(const Json &j, const char *key)
{
	const Json *m = Member(j, key);
	if (!m || !m->is_number())
		return 0;
	if (m->is_number_unsigned())
		return m->get<uint64_t>();
	double value = m->get<double>();
	return value >= 0 && value < 1.8e19 ? static_cast<uint64_t>(value) : 0;
}

inline bool Flag(const Json &j, const char *key)
{
	const Json *m = Member(j, key);
	return m && m->is_boolean() && m->get<bool>();
}

inline std::vector<std::string> Texts(const Json &j, const char *key)
{
	std::vector<std::string> texts;
	if (const Json *m = Member(j, key); m && m->is_array())
		for (const Json &item : *m)
			texts.push_back(AsText(item));
	return texts;
}

inline std::map<std::string, std::string> TextMap(const Json &j, const char *key)
{
	std::map<std::string, std::string> map;
	if (const Json *m = Member(j, key); m && m->is_object())
		for (const auto &[name, value] : m->items())
			map[name] = AsText(value);
	return map;
}

} // namespace forktail
