// SPDX-License-Identifier: MIT
// What TCP did with the load generator's connections while their requests were slow, by its own sockets.
#include <algorithm>
#include <map>
#include <set>

#include "analysis/evidence.h"
#include "analysis/run.h"
#include "common/format.h"
#include "scene.h"

namespace forktail::analysis
{

std::string LoadTcpSentence(const Run &run, const std::map<uint32_t, uint64_t> &connections,
			    uint64_t start_ns, uint64_t end_ns, uint64_t worst_ns)
{
	uint64_t segments = 0, window_us = 0, buffer_us = 0, since_ns = UINT64_MAX, until_ns = 0;
	constexpr uint64_t looks_ns = 1'000'000; // it looks at a connection at most so often
	bool looked = false;
	std::set<uint32_t> retransmitted, looked_after; // all that its slow requests waited for
	auto first = std::ranges::lower_bound(run.load_tcp, start_ns, {}, &ft_load_tcp::t_ns);
	for (; first != run.load_tcp.end() && first->t_ns <= end_ns; ++first) {
		const ft_load_tcp &t = *first;
		const auto last = connections.find(t.connection);
		if (last == connections.end())
			continue;
		looked = true;
		if (t.t_ns + looks_ns >= last->second)
			looked_after.insert(t.connection);
		if (!t.retransmitted && !t.receiver_limited_us && !t.sender_limited_us)
			continue;
		segments += t.retransmitted;
		window_us += t.receiver_limited_us;
		buffer_us += t.sender_limited_us;
		if (t.retransmitted)
			retransmitted.insert(t.connection);
		since_ns = std::min(since_ns, t.before_ns);
		until_ns = std::max(until_ns, t.t_ns);
	}
	if (!looked)
		return "";
	std::string text;
	if (segments)
		text = "retransmitted " + common::Plural(segments, "segment", "segments") + " on " +
		       common::Plural(retransmitted.size(), "connection", "connections");
	if (window_us)
		text += (text.empty() ? "" : "; they ") + std::string("waited ") +
			common::FormatDuration(window_us * 1000) + " for the server's receive window";
	if (buffer_us)
		text += (text.empty() ? "" : "; they ") + std::string("waited ") +
			common::FormatDuration(buffer_us * 1000) + " for space in their send buffers";
	if (text.empty()) {
		if (looked_after.size() < connections.size())
			return "";
		text = "retransmitted nothing: none of these requests was lost on its way";
	} else if (until_ns - since_ns > 2 * worst_ns) {
		// The look before was not at the begin of these requests.
		text += " within " + common::FormatDuration(until_ns - since_ns);
	}
	return "the load generator's sockets " + text;
}

} // namespace forktail::analysis
