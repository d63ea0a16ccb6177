// SPDX-License-Identifier: MIT
// How keys change the view: the server, the second, frozen or live. Independent of the terminal, for tests.
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
	Clients,
	Help,
};

struct View {
	Choice choice;
	bool help = false;
	bool quit = false;
};

// `strip`: seconds on the screen. The caller handles Explain and Snapshot.
void Press(Key key, const History &history, size_t strip, View *view);
// The earliest second of the ring that the view can show, at most ten minutes back.
uint64_t EarliestNs(const History &history);
// The shown second; 0: none.
uint64_t ShownNs(const History &history, const View &view);

} // namespace forktail::live::watch
