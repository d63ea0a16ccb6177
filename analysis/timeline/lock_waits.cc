// SPDX-License-Identifier: MIT
// Only a thread of the same process that lived at that time counts as lock holder or waker. Shared memory of
// processes may hold locks too, but another process is not the server.
#include "lock_waits.h"

namespace forktail::analysis
{

namespace
{

// The thread of `waiting`'s process that had this id then, or kNobody. A thread does not wait for itself.
uint32_t MateAt(const Run &run, const ThreadFinder &finder, const Thread &waiting, uint32_t tid,
		uint64_t t_ns)
{
	int64_t found = tid && tid != waiting.tid ? finder.Find(run.threads, tid, t_ns) : -1;
	if (found < 0)
		return LockWait::kNobody;
	const Thread &t = run.threads[static_cast<size_t>(found)];
	bool lived = t.start_ns <= t_ns && (t.end_ns == 0 || t_ns <= t.end_ns);
	return lived && t.tgid == waiting.tgid ? static_cast<uint32_t>(found) : LockWait::kNobody;
}

} // namespace

std::vector<LockWait> FindLockWaits(const Run &run, const ThreadFinder &finder, uint32_t thread)
{
	std::vector<LockWait> waits;
	const Thread &t = run.threads[thread];
	for (size_t i = t.first_span; i < t.first_span + t.span_count; i++) {
		const ft_span &s = run.spans[i];
		if (!IsLockWait(s))
			continue;
		const uint64_t end_ns = s.start_ns + s.blocked_ns;
		waits.push_back({s.start_ns, end_ns, s.arg[0], static_cast<uint32_t>(i),
				 MateAt(run, finder, t, static_cast<uint32_t>(s.arg[1]), s.start_ns),
				 MateAt(run, finder, t, static_cast<uint32_t>(s.arg[1] >> 32), end_ns)});
	}
	return waits;
}

} // namespace forktail::analysis
