// SPDX-License-Identifier: MIT
// Few of a run's threads are asked for, so none is built before.
#include "thread_timelines.h"

namespace forktail::analysis
{

const Timeline &ThreadTimelines::Of(uint32_t thread)
{
	auto found = built_.find(thread);
	if (found == built_.end())
		found = built_.emplace(thread, BuildTimeline(*run_, thread)).first;
	return found->second;
}

} // namespace forktail::analysis
