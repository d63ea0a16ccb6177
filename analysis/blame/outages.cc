// SPDX-License-Identifier: MIT
// Reading outages out of the load generator's notes; see outages.h.
#include "analysis/outages.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace forktail
{
namespace
{

using Json = nlohmann::json;

// An answer is read a little after it came, by which time the next request may have been answered too.
constexpr uint64_t kReadNs = 1'000'000;

uint64_t Number(const Json &j, const char *name)
{
	auto found = j.find(name);
	return found != j.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

} // namespace

std::vector<Outage> OutagesOf(const Run &run)
{
	std::vector<Outage> outages;
	for (const ServerReport &report : run.reports) {
		if (report.kind != "outage")
			continue;
		Json j = Json::parse(report.text, nullptr, false);
		uint64_t last = Number(j, "last_ok_ns"), first = Number(j, "first_ok_ns");
		uint64_t begin = last ? last : Number(j, "noticed_ns");
		if (begin && (!first || first > begin))
			outages.push_back({begin, first ? first : UINT64_MAX});
	}
	return outages;
}

uint64_t WithoutServer(const std::vector<Outage> &outages, uint64_t due_ns, uint64_t end_ns, bool failed)
{
	uint64_t longest = 0;
	for (const Outage &o : outages) {
		uint64_t from = std::max(due_ns, o.begin_ns), to = std::min(end_ns, o.end_ns);
		bool waited_out = failed || (o.end_ns != UINT64_MAX && end_ns + kReadNs >= o.end_ns);
		if (waited_out && to > from)
			longest = std::max(longest, to - from);
	}
	return longest;
}

} // namespace forktail
