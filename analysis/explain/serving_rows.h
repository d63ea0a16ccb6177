// SPDX-License-Identifier: MIT
// Finds the serving threads of a run's requests.
#pragma once

#include "analysis/passes/count.h"
#include "explanation.h"

namespace forktail::analysis
{

// Fills serving, timelines and by_thread of a run with a request log: the first thread of each server, one
// thread of each server behind a proxy, further serving threads, then the threads that any of these waited
// for. Adds notes on unknown ones.
void FindServers(const LogFacts &facts, const Accounts &accounts, const Stretches &stretches,
		 Explanation *explanation);

// Makes the timelines of these threads and of load threads for the loaded stretch of the run.
void MakeTimelines(Explanation *explanation);

} // namespace forktail::analysis
