// SPDX-License-Identifier: MIT
// See frame.h.
#include "frame.h"

#include <algorithm>

namespace forktail::live::watch
{

namespace
{

constexpr size_t kTakers = 3;
constexpr size_t kClients = 100;

// Places the shown second in the strip: at the right end while live, further left the older it is. When it
// would leave the strip, the strip scrolls.
void FillStrip(const History &history, size_t server, uint64_t last_ns, size_t seconds, Frame *f)
{
	const uint64_t shown_ns = f->second.start_ns;
	const uint64_t back = (last_ns - std::min(last_ns, shown_ns)) / kSecondNs;
	const uint64_t half = seconds / 2;
	const uint64_t end_ns = back < seconds ? last_ns : shown_ns + half * kSecondNs;
	for (size_t i = 0; i < seconds; i++) {
		const uint64_t ago_ns = (seconds - 1 - i) * kSecondNs;
		const uint64_t at_ns = end_ns - std::min(end_ns, ago_ns);
		const Figures *second = ago_ns <= end_ns ? history.Second(server, at_ns) : nullptr;
		f->strip.push_back(second && second->accounted ? second->max_ns : kNoIteration);
		if (at_ns == shown_ns)
			f->chosen = i;
	}
}

} // namespace

Frame MakeFrame(const History &history, const Choice &choice, size_t strip)
{
	Frame f;
	f.health = history.health;
	f.frozen = choice.frozen;
	f.show_clients = choice.clients;
	f.servers = history.servers().size();
	if (!f.servers)
		return f;
	f.server_index = std::min(choice.server, f.servers - 1);
	const ServerHistory &server = history.servers()[f.server_index];
	f.server = server.name;
	f.pid = server.pid;
	f.alive = server.alive;
	const uint64_t last_ns = history.last_ns();
	if (!last_ns)
		return f;
	f.has_second = true;
	f.second.start_ns = choice.frozen ? choice.second_ns : last_ns;
	if (const Figures *second = history.Second(f.server_index, f.second.start_ns))
		f.second = *second;
	f.second.taken.resize(std::min(f.second.taken.size(), kTakers));
	if (!f.second.realtime_ns)
		for (size_t other = 0; other < f.servers; other++)
			if (const Figures *second = history.Second(other, f.second.start_ns))
				f.second.realtime_ns = std::max(f.second.realtime_ns, second->realtime_ns);
	if (const Figures *worst = history.Worst(f.server_index, f.second.start_ns, kMinuteSeconds)) {
		f.worst = worst->worst;
		f.worst_realtime_ns = worst->realtime_ns;
		f.worst_age_ns = f.second.start_ns - worst->start_ns;
	}
	if (choice.clients) {
		size_t seconds = 0;
		std::vector<OfClient> clients =
		    history.Clients(f.server_index, f.second.start_ns, kMinuteSeconds, &seconds);
		f.clients = SlowestClients(std::move(clients),
					   static_cast<double>(std::max<size_t>(seconds, 1)), kClients);
	}
	FillStrip(history, f.server_index, last_ns, strip, &f);
	for (const Child &child : server.children)
		if (child.start_ns < f.second.end_ns() &&
		    (!child.end_ns || child.end_ns >= f.second.start_ns))
			f.children.push_back(child);
	f.event = history.EventAt(f.second.start_ns, !choice.frozen);
	return f;
}

} // namespace forktail::live::watch
