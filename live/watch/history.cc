// SPDX-License-Identifier: MIT
// The figures of each second.
//
// Events (iterations, stalls, forks) belong to the second in which they end. Late events still count.
#include <algorithm>
#include <cmath>

#include "analysis/source.h"
#include "common/format.h"
#include "common/json.h"
#include "live/watch.h"

namespace forktail::live::watch
{

namespace
{

constexpr size_t kNone = SIZE_MAX;
constexpr size_t kKeptTakers = 3;
constexpr size_t kMostEvents = 64;
constexpr uint64_t kSettledNs = 5 * kSecondNs; // after this a second gets no more iterations
constexpr uint64_t kEventNs = 60 * kSecondNs;

uint64_t SecondOf(uint64_t t_ns)
{
	return t_ns / kSecondNs * kSecondNs;
}

std::string ThreadName(const live::Follower &follower, uint32_t thread)
{
	return thread < follower.threads().size() ? common::Visible(follower.threads()[thread].name) : "";
}

std::vector<Part> PartsOf(const live::ThreadSecond &thread)
{
	std::vector<Part> parts;
	for (int c = 0; c < analysis::kTimelineCauses; c++)
		if (thread.by_cause[c] || thread.counts[c])
			parts.push_back(
			    {static_cast<analysis::Cause>(c), thread.by_cause[c], thread.counts[c]});
	return parts;
}

// Replaces the parts that stalls gave a thread by its accounts, and keeps the longest stalls.
void Merge(ThreadFigures *thread, std::vector<Part> parts)
{
	for (const Part &stall : thread->parts)
		for (Part &part : parts)
			if (part.cause == stall.cause)
				KeepLonger(stall.longest_ns, stall.detail, &part);
	thread->parts = std::move(parts);
}

ThreadFigures *ThreadAt(const std::string &name, Figures *second)
{
	for (ThreadFigures &thread : second->threads)
		if (thread.name == name)
			return &thread;
	second->threads.push_back({name, false, false, {}});
	return &second->threads.back();
}

void AddTaken(const std::string &comm, uint64_t ns, Figures *second)
{
	auto &taken = second->taken;
	auto same = std::find_if(taken.begin(), taken.end(), [&](const Taker &t) { return t.comm == comm; });
	if (same != taken.end())
		same->ns += ns;
	else
		taken.push_back({comm, ns});
	std::stable_sort(taken.begin(), taken.end(),
			 [](const Taker &a, const Taker &b) { return a.ns > b.ns; });
}

} // namespace

size_t History::ServerOf(uint32_t live_index, const live::Follower &follower)
{
	if (live_index >= follower.servers().size())
		return kNone;
	const live::Server &server = follower.servers()[live_index];
	const std::string name = common::Visible(server.name);
	for (size_t i = 0; i < servers_.size(); i++)
		if (servers_[i].name == name)
			return i;
	if (servers_.size() == kMostServers)
		return kNone;
	servers_.push_back({name, server.pid, server.alive, {}, {}});
	return servers_.size() - 1;
}

Figures *History::At(uint32_t live_index, uint64_t t_ns, const live::Follower &follower)
{
	const size_t server = ServerOf(live_index, follower);
	const uint64_t start_ns = SecondOf(t_ns);
	if (server == kNone || start_ns + seconds_ * kSecondNs <= last_ns_)
		return nullptr;
	Figures &second = servers_[server].seconds[start_ns];
	second.start_ns = start_ns;
	return &second;
}

void History::TakeIterations(const live::Batch &batch, const live::Follower &follower)
{
	for (const live::Iteration &iteration : batch.iterations) {
		Figures *second = At(iteration.server, iteration.start_ns + iteration.duration_ns, follower);
		if (!second)
			continue;
		second->iterations++;
		second->max_ns = std::max(second->max_ns, iteration.duration_ns);
		auto &durations = durations_[{ServerOf(iteration.server, follower), second->start_ns}];
		if (durations.size() < kMostDurations)
			durations.push_back(iteration.duration_ns);
		if (iteration.duration_ns <= second->worst.duration_ns)
			continue;
		WorstIteration &worst = second->worst;
		worst = {iteration, ThreadName(follower, iteration.thread)};
		for (std::string *text : {&worst.detail, &worst.stack, &worst.holder})
			*text = common::Visible(*text);
	}
}

void History::TakeRequests(const live::Batch &batch, const live::Follower &follower)
{
	for (const live::RequestSecond &from : batch.requests) {
		Figures *second = At(from.server, from.start_ns, follower);
		if (!second)
			continue;
		common::Histogram &times =
		    service_times_[{ServerOf(from.server, follower), second->start_ns}];
		times.Add(from.times);
		second->requests.count += from.times.count() * from.sample;
		second->requests.max_ns = std::max(second->requests.max_ns, from.times.max());
		second->requests.p50_ns = times.Percentile(50);
		second->requests.p99_ns = times.Percentile(99);
		AddClients(from.clients, from.sample, &second->requests.clients);
	}
	std::erase_if(service_times_,
		      [&](const auto &at) { return at.first.second + kSettledNs < last_ns_; });
	if (!batch.requests.empty())
		ForgetClients();
}

// Clients choose their addresses, so there may be any number. Beyond a limit, the oldest seconds lose their
// clients.
void History::ForgetClients()
{
	std::map<uint64_t, size_t> entries; // by second
	size_t all = 0;
	for (const ServerHistory &server : servers_)
		for (const auto &[start_ns, second] : server.seconds) {
			entries[start_ns] += second.requests.clients.size();
			all += second.requests.clients.size();
		}
	for (auto oldest = entries.begin(); all > kMostClientEntries; ++oldest) {
		for (ServerHistory &server : servers_)
			if (auto at = server.seconds.find(oldest->first); at != server.seconds.end())
				std::vector<OfClient>().swap(at->second.requests.clients);
		all -= oldest->second;
	}
}

void History::TakeStalls(const live::Batch &batch, const live::Follower &follower)
{
	for (const live::Stall &stall : batch.stalls) {
		Figures *second = At(stall.server, stall.start_ns + stall.duration_ns, follower);
		if (!second || !stall.serves)
			continue;
		const std::string thread = ThreadName(follower, stall.thread);
		const std::string detail = common::Visible(!stall.detail.empty()  ? stall.detail
							   : !stall.stack.empty() ? "in " + stall.stack
										  : stall.syscall);
		if (stall.open) {
			second->open.push_back(
			    {thread, stall.cause, stall.start_ns, stall.duration_ns, detail});
			continue;
		}
		Part part = {stall.cause, 0, 0, stall.duration_ns, detail};
		AddPart(part, &ThreadAt(thread, second)->parts);
	}
}

void History::TakeEvents(const live::Batch &batch, const live::Follower &follower)
{
	for (const live::Fork &fork : batch.forks)
		if (Figures *second = At(fork.server, fork.start_ns + fork.duration_ns, follower)) {
			second->forks++;
			second->fork_ns += fork.duration_ns;
		}
	for (const live::Fsync &fsync : batch.fsyncs)
		if (Figures *second = At(fsync.server, fsync.start_ns + fsync.duration_ns, follower)) {
			second->fsyncs++;
			second->fsync_ns += fsync.duration_ns;
			if (fsync.duration_ns <= second->fsync_longest_ns)
				continue;
			second->fsync_longest_ns = fsync.duration_ns;
			second->fsync_file = common::Visible(fsync.file);
		}
	for (const live::Taken &taken : batch.taken)
		if (Figures *second = At(taken.server, taken.t_ns, follower))
			AddTaken(common::Visible(taken.comm), taken.ns, second);
	// Disks belong to no server: every server gets their figures.
	for (const live::Disk &disk : batch.disk)
		for (uint32_t s = 0; s < follower.servers().size(); s++)
			if (Figures *second = At(s, disk.start_ns + disk.duration_ns, follower)) {
				(disk.write ? second->disk_writes : second->disk_reads)++;
				second->disk_bytes += disk.bytes;
				second->disk_longest_ns = std::max(second->disk_longest_ns, disk.duration_ns);
			}
	for (const ft_drop &drop : batch.drops)
		dropped_[SecondOf(drop.end_ns)] += drop.count;
}

void History::TakeChildren(const live::Batch &batch, const live::Follower &follower)
{
	for (const live::Child &child : batch.children) {
		const size_t server = ServerOf(child.server, follower);
		if (server == kNone)
			continue;
		std::deque<Child> &children = servers_[server].children;
		auto same = std::find_if(children.rbegin(), children.rend(), [&](const Child &c) {
			return c.pid == child.pid && c.start_ns == child.start_ns;
		});
		if (same != children.rend()) {
			same->end_ns = child.end_ns;
			same->role = common::Visible(child.role);
			continue;
		}
		Child seen = {child, 0, {}};
		seen.role = common::Visible(child.role);
		for (const Child &before : children)
			if (before.role == seen.role && before.end_ns)
				seen.last_took_ns = before.end_ns - std::min(before.start_ns, before.end_ns);
		children.push_back(seen);
		if (children.size() > kMostChildren)
			children.pop_front();
	}
}

void History::TakeSeconds(const live::Batch &batch, const live::Follower &follower)
{
	for (const live::Second &from : batch.seconds) {
		last_ns_ = std::max(last_ns_, from.start_ns);
		if (!first_ns_)
			first_ns_ = from.start_ns;
		for (const live::ThreadSecond &t : from.threads) {
			if (t.thread >= follower.threads().size())
				continue;
			const live::ThreadTotals &thread = follower.threads()[t.thread];
			Figures *second = At(thread.server, from.start_ns, follower);
			if (!second)
				continue;
			second->accounted = true;
			second->realtime_ns = follower.RealtimeNs(from.start_ns);
			ThreadFigures *to = ThreadAt(common::Visible(thread.name), second);
			to->child = thread.child;
			to->serves = (thread.has_loop || thread.main) && !thread.child;
			Merge(to, PartsOf(t));
		}
	}
	// Updates percentiles, also of seconds that may still get iterations.
	for (auto at = durations_.begin(); at != durations_.end();) {
		auto second = servers_[at->first.first].seconds.find(at->first.second);
		if (second != servers_[at->first.first].seconds.end()) {
			second->second.p50_ns = Percentile(&at->second, 0.5);
			second->second.p99_ns = Percentile(&at->second, 0.99);
		}
		at = at->first.second + kSettledNs < last_ns_ ? durations_.erase(at) : std::next(at);
	}
	for (const auto &[second_ns, records] : dropped_)
		for (ServerHistory &server : servers_)
			if (auto at = server.seconds.find(second_ns); at != server.seconds.end())
				at->second.dropped = records;
}

void History::TakeNotes(const live::Batch &batch, const live::Follower &follower)
{
	static const struct {
		const char *kind, *text;
	} known[] = {{"recorder-began", "a recorder started"},
		     {"recorder-ended", "the recorder ended"},
		     {"target-began", "started to record a process: "},
		     {"target-ended", "a process ended: "},
		     {"trigger", "triggered: "}};
	for (const live::Note &note : batch.notes) {
		if (note.kind == "requests-slice" || note.kind == "requests-ended")
			slices_.emplace_back(note.t_ns, note.on);
		if (note.kind == "softirqs-sampled")
			events_.push_back(
			    {note.t_ns, follower.RealtimeNs(note.t_ns),
			     note.on ? "soft interrupts are sampled: there are too many to time each"
				     : "each soft interrupt is timed"});
		for (const auto &k : known)
			if (note.kind == k.kind) {
				std::string text = k.text;
				if (!note.name.empty())
					text += common::Visible(note.name);
				else if (note.server < follower.servers().size())
					text += common::Visible(follower.servers()[note.server].name);
				events_.push_back({note.t_ns, follower.RealtimeNs(note.t_ns), text});
			}
	}
	while (slices_.size() > kMostEvents)
		slices_.pop_front();
	// The recorder's first note comes before its first clock reading.
	for (Event &event : events_)
		if (!event.realtime_ns)
			event.realtime_ns = follower.RealtimeNs(event.t_ns);
	std::stable_sort(events_.begin(), events_.end(),
			 [](const Event &a, const Event &b) { return a.t_ns < b.t_ns; });
	while (events_.size() > kMostEvents)
		events_.pop_front();
}

void History::TakeHealth(const live::Batch &, const live::Follower &follower)
{
	health.recording = follower.recording();
	health.dropped = follower.dropped();
	health.damaged = follower.damaged();
	const live::Follower::Buffer buffer = follower.buffer();
	health.span_ns = buffer.newest_ns - std::min(buffer.oldest_ns, buffer.newest_ns);
	health.bytes = buffer.bytes;
	health.segments = buffer.segments;
	health.request_sample = follower.request_sample();
	const live::RecorderCost cost = follower.cost();
	if (!cost.known || cost.t_ns == cost_before_.t_ns)
		return;
	// Another recorder starts its counters at 0.
	const bool bpf_known = cost.bpf_known && cost_before_.bpf_known;
	if (cost_before_.known && cost.t_ns > cost_before_.t_ns && cost.cpu_ns >= cost_before_.cpu_ns &&
	    (!bpf_known || cost.bpf_ns >= cost_before_.bpf_ns)) {
		const double ns = static_cast<double>(cost.t_ns - cost_before_.t_ns);
		health.cost_known = true;
		health.cpu = static_cast<double>(cost.cpu_ns - cost_before_.cpu_ns) / ns;
		health.bpf.reset();
		if (bpf_known)
			health.bpf = static_cast<double>(cost.bpf_ns - cost_before_.bpf_ns) / ns;
	}
	health.rss_bytes = cost.rss_bytes;
	cost_before_ = cost;
}

void History::Forget()
{
	const uint64_t keep_ns = last_ns_ - std::min(last_ns_, (seconds_ - 1) * kSecondNs);
	for (ServerHistory &server : servers_) {
		server.seconds.erase(server.seconds.begin(), server.seconds.lower_bound(keep_ns));
		for (auto &[start_ns, second] : server.seconds)
			if (second.taken.size() > kKeptTakers && start_ns + kSettledNs < last_ns_)
				second.taken.resize(kKeptTakers);
	}
	dropped_.erase(dropped_.begin(), dropped_.lower_bound(keep_ns));
	first_ns_ = std::max(first_ns_, std::min(keep_ns, last_ns_));
}

void History::Take(const live::Batch &batch, const live::Follower &follower)
{
	TakeIterations(batch, follower);
	TakeRequests(batch, follower);
	TakeStalls(batch, follower);
	TakeEvents(batch, follower);
	TakeChildren(batch, follower);
	TakeSeconds(batch, follower);
	TakeNotes(batch, follower);
	TakeHealth(batch, follower);
	for (size_t i = 0; i < follower.servers().size(); i++)
		if (size_t server = ServerOf(static_cast<uint32_t>(i), follower); server != kNone) {
			servers_[server].pid = follower.servers()[i].pid;
			servers_[server].alive = follower.servers()[i].alive;
		}
	Forget();
}

void History::PutBefore(const History &older)
{
	for (const ServerHistory &from : older.servers_) {
		auto to = std::find_if(servers_.begin(), servers_.end(),
				       [&](const ServerHistory &s) { return s.name == from.name; });
		if (to == servers_.end()) {
			if (servers_.size() == kMostServers)
				continue;
			servers_.push_back({from.name, from.pid, false, {}, {}});
			to = servers_.end() - 1;
		}
		for (const auto &[start_ns, second] : from.seconds)
			if (second.accounted && start_ns < first_ns_)
				to->seconds[start_ns] = second;
		for (const Child &child : from.children)
			if (child.end_ns && child.end_ns < first_ns_)
				to->children.push_back(child);
		std::stable_sort(to->children.begin(), to->children.end(),
				 [](const Child &a, const Child &b) { return a.start_ns < b.start_ns; });
	}
	for (const Event &event : older.events_)
		if (event.t_ns < first_ns_)
			events_.push_back(event);
	std::stable_sort(events_.begin(), events_.end(),
			 [](const Event &a, const Event &b) { return a.t_ns < b.t_ns; });
	if (older.first_ns_)
		first_ns_ = std::min(first_ns_, older.first_ns_);
	Forget();
}

uint64_t History::first_ns() const
{
	return first_ns_;
}
uint64_t History::last_ns() const
{
	return last_ns_;
}

const Figures *History::Second(size_t server, uint64_t start_ns) const
{
	if (server >= servers_.size())
		return nullptr;
	auto at = servers_[server].seconds.find(start_ns);
	return at == servers_[server].seconds.end() ? nullptr : &at->second;
}

const Figures *History::Worst(size_t server, uint64_t last_ns, uint64_t seconds) const
{
	const Figures *worst = nullptr;
	if (server >= servers_.size())
		return nullptr;
	const auto &all = servers_[server].seconds;
	const uint64_t first_ns = last_ns - std::min(last_ns, (seconds - 1) * kSecondNs);
	for (auto at = all.lower_bound(first_ns); at != all.end() && at->first <= last_ns; ++at)
		if (at->second.worst.duration_ns > (worst ? worst->worst.duration_ns : 0))
			worst = &at->second;
	return worst;
}

// At the end of a second.
bool History::RequestsRecorded(uint64_t second_ns) const
{
	bool recorded = slices_.empty() || !slices_.front().second;
	for (const auto &[t_ns, on] : slices_)
		if (t_ns < second_ns + kSecondNs)
			recorded = on;
	return recorded;
}

std::vector<OfClient> History::Clients(size_t server, uint64_t last_ns, uint64_t seconds,
				       size_t *complete) const
{
	std::vector<OfClient> clients;
	*complete = 0;
	if (server >= servers_.size())
		return clients;
	const auto &all = servers_[server].seconds;
	const uint64_t first_ns = last_ns - std::min(last_ns, (seconds - 1) * kSecondNs);
	for (auto at = all.lower_bound(first_ns); at != all.end() && at->first <= last_ns; ++at) {
		*complete += at->second.accounted && RequestsRecorded(at->first);
		AddClients(at->second.requests.clients, 1, &clients);
	}
	return clients;
}

void History::TakeMarks(const std::string &path, const live::Follower &follower)
{
	std::string text = analysis::ReadMarks(path);
	if (text == marks_text_)
		return;
	marks_.clear();
	size_t ignored = 0;
	for (const analysis::DatedMark &mark : analysis::MarksIn(text, &ignored)) {
		const auto t_ns = static_cast<int64_t>(follower.MonotonicNs(mark.realtime_ns));
		if (t_ns > 0) // not before this host's start
			marks_.push_back(
			    {static_cast<uint64_t>(t_ns), mark.realtime_ns, "mark: " + mark.text});
	}
	std::stable_sort(marks_.begin(), marks_.end(),
			 [](const Event &a, const Event &b) { return a.t_ns < b.t_ns; });
	if (last_ns_) // otherwise the clocks may not be known yet
		marks_text_ = std::move(text);
}

History::Event History::EventAt(uint64_t second_ns, bool latest) const
{
	Event last;
	const auto find = [&](const auto &events) {
		for (auto at = events.rbegin(); at != events.rend(); ++at)
			if (latest || at->t_ns < second_ns + kSecondNs) {
				if (at->t_ns > last.t_ns)
					last = *at;
				return;
			}
	};
	find(events_);
	find(marks_);
	return last.t_ns + kEventNs > second_ns ? last : Event();
}

void KeepLonger(uint64_t ns, const std::string &detail, Part *part)
{
	if (ns <= part->longest_ns)
		return;
	part->longest_ns = ns;
	part->detail = detail;
}

void AddPart(const Part &part, std::vector<Part> *to)
{
	auto same =
	    std::find_if(to->begin(), to->end(), [&](const Part &p) { return p.cause == part.cause; });
	if (same == to->end()) {
		to->push_back(part);
		return;
	}
	same->ns += part.ns;
	same->count += part.count;
	KeepLonger(part.longest_ns, part.detail, &*same);
}

std::vector<Part> ServingParts(const Figures &second, size_t *threads)
{
	std::vector<Part> parts;
	*threads = 0;
	for (const ThreadFigures &thread : second.threads) {
		if (!thread.serves)
			continue;
		++*threads;
		for (const Part &part : thread.parts)
			if (part.cause != analysis::Cause::Idle)
				AddPart(part, &parts);
	}
	std::stable_sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) {
		return analysis::IsStall(a.cause) != analysis::IsStall(b.cause) ? analysis::IsStall(a.cause)
										: a.ns > b.ns;
	});
	return parts;
}

uint64_t StalledNs(const Figures &second)
{
	uint64_t ns = 0;
	for (const ThreadFigures &thread : second.threads)
		for (const Part &part : thread.parts)
			if (thread.serves && analysis::IsStall(part.cause))
				ns += part.ns;
	return ns;
}

uint64_t Percentile(std::vector<uint64_t> *durations, double p)
{
	if (durations->empty())
		return 0;
	const double rank = std::ceil(p * static_cast<double>(durations->size()));
	const size_t at = std::clamp<size_t>(static_cast<size_t>(rank), 1, durations->size()) - 1;
	std::nth_element(durations->begin(), durations->begin() + static_cast<ptrdiff_t>(at),
			 durations->end());
	return (*durations)[at];
}

// Clients are ranked by their longest request: with a percentile, one that sends few requests would never be
// among them, and its average would hide a spike.

namespace
{

void AddTo(const OfClient &more, OfClient *to)
{
	to->count += more.count;
	to->sum_ns += more.sum_ns;
	to->max_ns = std::max(to->max_ns, more.max_ns);
}

// Leaves the `most` clients with the longest requests, in this order, and adds the others as one.
void KeepSlowest(size_t most, std::vector<OfClient> *all)
{
	OfClient other;
	std::erase_if(*all, [&](const OfClient &c) {
		const bool is_other = c.client.kind == live::Client::Kind::Other;
		if (is_other)
			AddTo(c, &other);
		return is_other;
	});
	std::stable_sort(all->begin(), all->end(),
			 [](const OfClient &a, const OfClient &b) { return a.max_ns > b.max_ns; });
	for (size_t i = most; i < all->size(); i++)
		AddTo((*all)[i], &other);
	all->resize(std::min(all->size(), most));
	if (other.count)
		all->push_back(other);
}

} // namespace

void AddClients(const std::vector<OfClient> &more, uint64_t sample, std::vector<OfClient> *to)
{
	auto before = [](const OfClient &a, const OfClient &b) { return a.client < b.client; };
	for (OfClient c : more) {
		c.count *= sample;
		c.sum_ns *= sample;
		to->push_back(c);
	}
	std::sort(to->begin(), to->end(), before);
	size_t kept = 0;
	for (size_t i = 0; i < to->size(); i++)
		if (kept && (*to)[kept - 1].client == (*to)[i].client)
			AddTo((*to)[i], &(*to)[kept - 1]);
		else
			(*to)[kept++] = (*to)[i];
	to->resize(kept);
	if (to->size() <= live::kMostClients + 1)
		return;
	KeepSlowest(live::kMostClients, to);
	std::sort(to->begin(), to->end(), before);
}

std::vector<ClientFigures> SlowestClients(std::vector<OfClient> all, double seconds, size_t most)
{
	std::vector<ClientFigures> figures;
	double whole_ns = 0;
	for (const OfClient &c : all)
		whole_ns += static_cast<double>(c.sum_ns);
	KeepSlowest(most, &all);
	for (const OfClient &c : all)
		figures.push_back({c.client.Name(), seconds > 0 ? static_cast<double>(c.count) / seconds : 0,
				   c.count, c.count ? c.sum_ns / c.count : 0, c.max_ns,
				   whole_ns > 0 ? static_cast<double>(c.sum_ns) / whole_ns : 0});
	return figures;
}

} // namespace forktail::live::watch
