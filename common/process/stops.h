// SPDX-License-Identifier: MIT
// Signals that ask a program to stop. A program that supervises others records them and ends those first.
#pragma once

namespace forktail::common
{

// Counts SIGINT, SIGTERM and SIGHUP from now on; they interrupt waits. SIGHUP stays ignored if it is.
void CatchStops();
// Number of signals received.
int Stops();
// The last of them, or 0.
int StopSignal();

} // namespace forktail::common
