// SPDX-License-Identifier: MIT
// See view.h.
#include "view.h"

#include <algorithm>

#include "history.h"

namespace forktail::live::watch
{

namespace
{

void Freeze(uint64_t second_ns, View *view)
{
	view->choice.frozen = true;
	view->choice.second_ns = second_ns;
}

void GoTo(const History &history, uint64_t second_ns, View *view)
{
	Freeze(std::clamp(second_ns, EarliestNs(history), history.last_ns()), view);
}

} // namespace

uint64_t EarliestNs(const History &history)
{
	const uint64_t last_ns = history.last_ns();
	const uint64_t span_ns =
	    std::min(history.health.span_ns / kSecondNs, kHistorySeconds - 1) * kSecondNs;
	const uint64_t on_disk_ns = last_ns - std::min(last_ns, span_ns);
	return history.first_ns() ? std::min(history.first_ns(), on_disk_ns) : on_disk_ns;
}

uint64_t ShownNs(const History &history, const View &view)
{
	return view.choice.frozen ? view.choice.second_ns : history.last_ns();
}

void Press(Key key, const History &history, size_t strip, View *view)
{
	if (key == Key::None)
		return;
	if (view->help && key != Key::Quit) {
		view->help = false;
		return;
	}
	const uint64_t shown_ns = ShownNs(history, *view);
	const uint64_t page_ns = std::max<uint64_t>(strip / 2, 1) * kSecondNs;
	if (key == Key::Quit)
		view->quit = true;
	else if (key == Key::Help)
		view->help = true;
	else if (key == Key::Clients)
		view->choice.clients = !view->choice.clients;
	else if (key == Key::NextServer && !history.servers().empty())
		view->choice.server = (view->choice.server + 1) % history.servers().size();
	if (!shown_ns)
		return; // no data yet
	if (key == Key::Freeze && view->choice.frozen)
		view->choice.frozen = false;
	else if (key == Key::Freeze)
		Freeze(shown_ns, view);
	else if (key == Key::Back || key == Key::PageBack)
		GoTo(history, shown_ns - std::min(shown_ns, key == Key::Back ? kSecondNs : page_ns), view);
	else if (key == Key::On || key == Key::PageOn)
		GoTo(history, shown_ns + (key == Key::On ? kSecondNs : page_ns), view);
	else if (key == Key::First)
		GoTo(history, 0, view);
	else if (key == Key::Live)
		view->choice.frozen = false;
	else if (key == Key::Worst)
		if (const Figures *worst = history.Worst(view->choice.server, shown_ns, kMinuteSeconds))
			Freeze(worst->start_ns, view);
}

} // namespace forktail::live::watch
