// SPDX-License-Identifier: MIT
// Few of a run's threads are needed, so none is built in advance.
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

const std::vector<LockWait> &ThreadTimelines::LockWaitsOf(uint32_t thread)
{
	if (!finder_)
		finder_.emplace(run_->threads);
	auto found = lock_waits_.find(thread);
	if (found == lock_waits_.end())
		found = lock_waits_.emplace(thread, FindLockWaits(*run_, *finder_, thread)).first;
	return found->second;
}

} // namespace forktail::analysis
