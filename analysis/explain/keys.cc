// SPDX-License-Identifier: MIT
// The keys of slow requests.
//
// The recorder notes when which thread read the request, and the load generator when it was sent on which
// connection. Which of them took long is known of a recorded server by its event-loop iterations
// (commands.cc). Without one, requests are divided as by a server that answers one after the other: a request
// took from the answer before it, or from when it was sent, to its answer. The rest of its time it waited.
#include <algorithm>
#include <map>

#include "analysis/blame.h"
#include "analysis/explain.h"
#include "analysis/run.h"
#include "common/format.h"

namespace forktail::analysis
{

const SlowKey *FindKey(const Run &run, uint64_t t_ns, uint32_t id, bool of_load)
{
	const auto place = std::make_tuple(t_ns, of_load, id);
	const auto found = std::ranges::lower_bound(run.keys, place, {}, &SlowKey::place);
	return found != run.keys.end() && found->place() == place ? &*found : nullptr;
}

const SlowKey *KeyOf(const Run &run, const SlowRequest &r)
{
	auto at = [](const SlowKey &key) { return std::make_tuple(key.t_ns, key.of_load); };
	if (r.read_ns) // when a thread read it, to the nanosecond: two threads that did at once are neither
		if (const auto same =
			std::ranges::equal_range(run.keys, std::make_tuple(r.read_ns, false), {}, at);
		    same.size() == 1)
			return &same.front();
	return FindKey(run, r.sent_ns, r.connection, true);
}

std::string KeyText(const SlowKey &key)
{
	return (key.begin ? "a key that begins with \"" : "the key \"") + key.text + "\"";
}

std::string LeadingKeyText(const Explanation &e)
{
	constexpr double most = 0.5;	 // of the time
	constexpr double stands_out = 2; // its part of the time is larger than that of the requests by this
	struct ByKey {
		uint64_t ns = 0, count = 0;
	};
	std::vector<const SlowKey *> by_end;
	for (const SlowKey &key : e.run.keys)
		if (key.of_load &&
		    (!e.in_part || (key.t_ns >= e.part.since_ns && key.t_ns < e.part.until_ns)))
			by_end.push_back(&key);
	auto end_ns = [](const SlowKey *key) { return key->t_ns + key->took_ns; };
	std::ranges::stable_sort(by_end, {}, end_ns);
	std::map<std::string, ByKey> by_key;
	std::map<uint32_t, uint64_t> answered_ns; // by server: its last answer
	uint64_t all_ns = 0, took_ns = 0;
	for (const SlowKey *key : by_end) {
		const uint32_t server =
		    key->id < e.run.connections.size() ? e.run.connections[key->id].server : 0;
		uint64_t &before_ns = answered_ns[server];
		const uint64_t ns = end_ns(key) - std::max(key->t_ns, before_ns);
		before_ns = end_ns(key);
		ByKey &sum = by_key[KeyText(*key)];
		sum.ns += ns;
		sum.count++;
		all_ns += ns;
		took_ns += key->took_ns;
	}
	const auto lead = std::ranges::max_element(by_key, {}, [](const auto &k) { return k.second.ns; });
	if (lead == by_key.end())
		return "";
	auto share = [](uint64_t part, uint64_t of) {
		return static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(of, 1));
	};
	const double of_time = share(lead->second.ns, all_ns);
	// A key that all have tells nothing if most only waited.
	const bool alone = by_key.size() == 1 && share(all_ns, took_ns) >= most;
	if (of_time < most || (!alone && of_time < stands_out * share(lead->second.count, by_end.size())))
		return "";
	return " If the server answered one request after the other, " +
	       common::Plural(lead->second.count, "request", "requests") + " of " + lead->first + " took " +
	       common::FormatDuration(lead->second.ns) + ", " + common::FormatPercent(of_time) +
	       " of the time of those whose keys were recorded.";
}

} // namespace forktail::analysis
