// SPDX-License-Identifier: MIT
// The parser and the access to members, compiled once for all programs that read JSON.
#include "common/json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/text.h"

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

// Nearly all text is plain, which a scan of its bytes shows. Only other text is rewritten.

namespace
{

constexpr int kDeepest = 64;

bool IsPlain(const std::string &text)
{
	return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

void MakeVisible(Json *j, int depth)
{
	if (j->is_string()) {
		std::string &text = j->get_ref<std::string &>();
		if (!IsPlain(text))
			text = Visible(text);
		return;
	}
	if (!j->is_structured())
		return;
	if (depth == kDeepest) {
		*j = nullptr;
		return;
	}
	for (Json &inner : *j)
		MakeVisible(&inner, depth + 1);
	if (!j->is_object() ||
	    std::all_of(j->items().begin(), j->items().end(), [](const auto &m) { return IsPlain(m.key()); }))
		return;
	Json renamed = Json::object();
	for (auto &[name, value] : j->items())
		renamed[Visible(name)] = std::move(value);
	*j = std::move(renamed);
}

} // namespace

std::string Visible(const std::string &text)
{
	if (IsPlain(text))
		return text;
	std::string visible(VISIBLE_MOST * text.size() + 1, '\0');
	visible.resize(visible_text(visible.data(), visible.size(), text.data(), text.size()));
	return visible;
}

std::string VisibleLines(const std::string &text)
{
	std::string visible;
	for (size_t at = 0, end; at < text.size(); at = end + 1) {
		end = std::min(text.find('\n', at), text.size());
		visible += Visible(text.substr(at, end - at));
		if (end < text.size())
			visible += '\n';
	}
	return visible;
}

Json ParseVisible(const Raw &text)
{
	Json j = ParseJson(text.bytes);
	MakeVisible(&j, 0);
	return j;
}

Json ParseVisibleObject(const Raw &text)
{
	Json j = ParseVisible(text);
	return j.is_object() ? j : Json::object();
}

} // namespace forktail::common
