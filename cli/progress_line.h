// SPDX-License-Identifier: MIT
// "reading RUN: 43 %" on a terminal, updated four times a second if the work takes longer than two seconds.
// It is never written to a file or a pipe, and never longer than the terminal's line.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <unistd.h>

#include "common/text.h"

namespace forktail::cli
{

class ProgressLine
{
public:
	explicit ProgressLine(std::string what) : what_(std::move(what)), terminal_(can_rewrite_line()) {}
	~ProgressLine() { Wipe(); }
	void Show(double done)
	{
		using namespace std::chrono_literals;
		if (!terminal_)
			return;
		Clock::time_point now = Clock::now();
		if (now < next_)
			return;
		next_ = now + 250ms;
		shown_ = true;
		constexpr size_t percent = 7; // columns of ": 100 %" and the cursor's
		fprintf(stderr, "\r%s: %d %%\033[K",
			what_.substr(0, terminal_columns(STDERR_FILENO, 80) - percent - 1).c_str(),
			static_cast<int>(done * 100));
		fflush(stderr);
	}
	// Call it before any other output.
	void Wipe()
	{
		if (shown_)
			fputs("\r\033[K", stderr);
		shown_ = false;
	}

private:
	using Clock = std::chrono::steady_clock;
	std::string what_;
	bool terminal_, shown_ = false;
	Clock::time_point next_ = Clock::now() + std::chrono::seconds(2);
};

} // namespace forktail::cli
