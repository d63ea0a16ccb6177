// SPDX-License-Identifier: MIT
// Most outages come from the load generator's records, because only it saw the last answer before and the
// first one after. Times alone decide which requests waited in one: the log has no keys, so it does not say
// whose key was without a server.
#include "outages.h"

#include <algorithm>

#include "common/json/json_read.h"

namespace forktail::analysis
{
namespace
{

// An answer is read a little after it arrived. By then the next request may also have been answered.
constexpr uint64_t kReadNs = 1'000'000;

} // namespace

std::vector<Outage> OutagesOf(const Run &run)
{
	std::vector<Outage> outages;
	for (const ServerReport &report : run.reports) {
		if (report.kind != "outage")
			continue;
		common::Json j = common::ParseJson(report.text);
		uint64_t last = common::Whole(j, "last_ok_ns"), first = common::Whole(j, "first_ok_ns");
		uint64_t begin = last ? last : common::Whole(j, "noticed_ns");
		if (begin && (!first || first > begin))
			outages.push_back({begin, first ? first : UINT64_MAX});
	}
	return outages;
}

uint64_t WithoutServer(const std::vector<Outage> &outages, uint64_t due_ns, uint64_t end_ns, bool failed,
		       int server)
{
	uint64_t longest = 0;
	for (const Outage &o : outages) {
		if (o.server != kAnyServer && server != kAnyServer && o.server != server)
			continue;
		uint64_t from = std::max(due_ns, o.begin_ns), to = std::min(end_ns, o.end_ns);
		bool waited_out = failed || (o.end_ns != UINT64_MAX && end_ns + kReadNs >= o.end_ns);
		if (waited_out && to > from)
			longest = std::max(longest, to - from);
	}
	return longest;
}

} // namespace forktail::analysis
