// SPDX-License-Identifier: MIT
// The terminal, by ncurses: what it can, its keys, and lines on it.
#pragma once

#include <string>
#include <vector>

#include "live/watch/layout.h"
#include "live/watch/view.h"

namespace forktail::live::watch
{

class Terminal
{
public:
	Terminal() = default;
	~Terminal();
	Terminal(const Terminal &) = delete;
	Terminal &operator=(const Terminal &) = delete;

	// False: *error is one sentence.
	bool Open(bool colour, bool utf8, std::string *error);
	size_t columns() const;
	size_t rows() const;
	void Draw(const std::vector<Line> &lines);
	// The next key, after `seconds` at most: None. *gone: there is no terminal any more.
	Key Wait(double seconds, bool *gone);
	// The terminal belongs to another program until it is taken back.
	void Lend();
	void TakeBack();

private:
	void MakeColours();
	int AttributesOf(const Words &words) const;

	void *screen_ = nullptr; // SCREEN
	bool colour_ = false, utf8_ = false;
};

} // namespace forktail::live::watch
