// SPDX-License-Identifier: MIT
// Signals that ask a program to stop. A program that supervises others notes them, and then ends those first.
#pragma once

namespace forktail::common
{

// SIGINT, SIGTERM and SIGHUP are counted from now on, and interrupt waits. SIGHUP stays ignored where it is.
void CatchStops();
// How many have come.
int Stops();
// The last of them, or 0.
int StopSignal();

} // namespace forktail::common
