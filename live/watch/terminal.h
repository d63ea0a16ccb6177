// SPDX-License-Identifier: MIT
// The terminal, through ncurses: capabilities, keys and output.
#pragma once

#include <string>
#include <vector>

#include "live/watch.h"

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
	// Waits up to `seconds` for a key, else returns None. *gone: the terminal was closed.
	Key Wait(double seconds, bool *gone);
	// Gives the terminal to another program until TakeBack().
	void Lend();
	void TakeBack();

private:
	void MakeColours();
	int AttributesOf(const Words &words) const;

	void *screen_ = nullptr; // SCREEN
	bool colour_ = false, utf8_ = false;
};

} // namespace forktail::live::watch
