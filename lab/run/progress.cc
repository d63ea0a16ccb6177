// SPDX-License-Identifier: MIT
// On a terminal a progress line replaces the previous one.
#include "progress.h"

#include <cstdio>
#include <unistd.h>

#include "common/json.h"
#include "recording/recording.h"

namespace forktail::lab
{
namespace
{

// A replaceable line leaves the cursor at its start.
void Line(const std::string &text, bool replaceable)
{
	static const bool terminal = isatty(2);
	const char *clear = terminal ? "\033[K" : "";
	fprintf(stderr, "%s%s%s", clear, common::VisibleLines(text).c_str(),
		terminal && replaceable ? "\r" : "\n");
	fflush(stderr);
}

} // namespace

void Say(const std::string &text)
{
	static const uint64_t start_ns = ft_now_ns();
	char when[32];
	snprintf(when, sizeof(when), "[%5.1f s] ", static_cast<double>(ft_now_ns() - start_ns) / 1e9);
	Line(when + text, false);
}

void SayMeanwhile(const std::string &text)
{
	Line("          " + text, true);
}

} // namespace forktail::lab
