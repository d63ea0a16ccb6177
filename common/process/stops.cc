// SPDX-License-Identifier: MIT
// See stops.h.
#include "stops.h"

#include <csignal>

namespace forktail::common
{
namespace
{

volatile sig_atomic_t stops, stop_signal;

void OnStop(int signal)
{
	stops = stops + 1;
	stop_signal = signal;
}

} // namespace

void CatchStops()
{
	struct sigaction action = {};
	action.sa_handler = OnStop;
	for (const int s : {SIGINT, SIGTERM, SIGHUP}) {
		struct sigaction old;
		// Under nohup we outlive our terminal, as usual.
		if (s == SIGHUP && sigaction(s, nullptr, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		sigaction(s, &action, nullptr);
	}
}

int Stops()
{
	return stops;
}

int StopSignal()
{
	return stop_signal;
}

} // namespace forktail::common
