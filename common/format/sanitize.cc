// SPDX-License-Identifier: MIT
// Nearly all text is plain, which a scan of its bytes shows. Only other text is rewritten.
#include "sanitize.h"

#include <algorithm>
#include <utility>

#include "common/text/visible.h"

namespace forktail::common
{

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
