// SPDX-License-Identifier: MIT
// Who serves the requests of a run.
#pragma once

#include "analysis/passes/count.h"
#include "explanation.h"

namespace forktail::analysis
{

// Fills serving, timelines and by_thread of a run with a request log, and notes what of it is not known: the
// first thread of each server, one of each server behind a proxy, then further threads of them, and those
// that any of all these waited for.
void FindServers(const LogFacts &facts, const Accounts &accounts, const Stretches &stretches,
		 Explanation *explanation);

// Makes the timelines of all these, and of load threads, of the stretch of the run that is there.
void MakeTimelines(Explanation *explanation);

} // namespace forktail::analysis
