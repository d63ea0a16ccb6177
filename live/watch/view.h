// SPDX-License-Identifier: MIT
// What keys do to what is shown: which server, which second, frozen or live. Without a terminal, so that it
// is tested without one.
#pragma once

#include "frame.h"

namespace forktail::live::watch
{

enum class Key : uint8_t {
	None,
	Other,
	Quit,
	Freeze,
	Back,
	On,
	PageBack,
	PageOn,
	First,
	Live,
	Worst,
	NextServer,
	Explain,
	Snapshot,
	Help,
};

struct View {
	Choice choice;
	bool help = false;
	bool quit = false;
};

// `strip`: seconds that are shown at once. What explaining and snapshots need is the caller's.
void Press(Key key, const History &history, size_t strip, View *view);
// The earliest second that can be scrolled to: of the ring, ten minutes back at most.
uint64_t EarliestNs(const History &history);
// The second that is shown; 0: none.
uint64_t ShownNs(const History &history, const View &view);

} // namespace forktail::live::watch
