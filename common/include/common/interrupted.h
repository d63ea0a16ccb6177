// SPDX-License-Identifier: MIT
// Unfinished output of a program that a signal ends.
#pragma once

namespace forktail::common
{

// From now on SIGINT, SIGTERM and SIGHUP first remove what Pending (files.h) has not committed; then the
// program ends by the signal, as without this. Call it before the program has other threads.
void RemovePendingOnSignals();

} // namespace forktail::common
