// SPDX-License-Identifier: MIT
// Writes JSON to a file piece by piece, so that a document with hundreds of thousands of entries is never
// whole in memory. The output equals dump(2) of the whole document.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace forktail::analysis
{

// Calls follow the document's order. After a failed write all further writes fail, with the same errno.
class JsonWriter
{
public:
	using Out = nlohmann::ordered_json;

	explicit JsonWriter(FILE *file) : file_(file) {}
	// Containers written in pieces. An empty key: the document itself, or an entry of a list.
	void BeginObject(const char *key) { Begin(key, '{', '}'); }
	void BeginList(const char *key) { Begin(key, '[', ']'); }
	void End()
	{
		bool empty = !open_.back().entries;
		char close = open_.back().close;
		open_.pop_back();
		if (!empty)
			NewLine();
		Put({&close, 1});
		if (open_.empty())
			Put("\n");
	}
	// An entry of the open object or list (whose entries have an empty key).
	void Add(const char *key, const Out &value)
	{
		Key(key);
		std::string text = value.dump(2, ' ', false, Out::error_handler_t::replace);
		// No line ends within strings: there they are escaped.
		for (size_t at = 0; at < text.size();) {
			size_t end = std::min(text.find('\n', at), text.size());
			Put({text.data() + at, end - at});
			if (end < text.size())
				NewLine();
			at = end + 1;
		}
	}
	// Adds all members of an object.
	void AddMembers(const Out &object)
	{
		for (const auto &[key, value] : object.items())
			Add(key.c_str(), value);
	}
	bool ok() const { return ok_; }

private:
	struct Open {
		char close;
		bool entries;
	};

	void Begin(const char *key, char open, char close)
	{
		if (!open_.empty())
			Key(key);
		Put({&open, 1});
		open_.push_back({close, false});
	}
	void Key(const char *key)
	{
		if (open_.back().entries)
			Put(",");
		open_.back().entries = true;
		NewLine();
		if (*key)
			Put(Out(key).dump() + ": ");
	}
	void NewLine()
	{
		static const std::string spaces(64, ' ');
		Put("\n");
		Put({spaces.data(), std::min(spaces.size(), open_.size() * 2)});
	}
	void Put(std::string_view text)
	{
		ok_ = ok_ && fwrite(text.data(), 1, text.size(), file_) == text.size();
	}

	FILE *file_;
	std::vector<Open> open_;
	bool ok_ = true;
};

} // namespace forktail::analysis
