// SPDX-License-Identifier: MIT
// What the screen shows: the present or an earlier second, frozen or not, and the same as JSON.
//
// It uses a second follower, so the first one keeps its position.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/json.h"
#include "live/watch.h"

namespace forktail::live::watch
{

namespace
{

void Freeze(uint64_t second_ns, View *view)
{
	view->choice.frozen = true;
	view->choice.second_ns = second_ns;
}

void GoTo(const History &history, uint64_t second_ns, View *view)
{
	Freeze(std::clamp(second_ns, EarliestNs(history), history.last_ns()), view);
}

} // namespace

uint64_t EarliestNs(const History &history)
{
	const uint64_t last_ns = history.last_ns();
	const uint64_t span_ns =
	    std::min(history.health.span_ns / kSecondNs, kHistorySeconds - 1) * kSecondNs;
	const uint64_t on_disk_ns = last_ns - std::min(last_ns, span_ns);
	return history.first_ns() ? std::min(history.first_ns(), on_disk_ns) : on_disk_ns;
}

uint64_t ShownNs(const History &history, const View &view)
{
	return view.choice.frozen ? view.choice.second_ns : history.last_ns();
}

void Press(Key key, const History &history, size_t strip, View *view)
{
	if (key == Key::None)
		return;
	if (view->help && key != Key::Quit) {
		view->help = false;
		return;
	}
	const uint64_t shown_ns = ShownNs(history, *view);
	const uint64_t page_ns = std::max<uint64_t>(strip / 2, 1) * kSecondNs;
	if (key == Key::Quit)
		view->quit = true;
	else if (key == Key::Help)
		view->help = true;
	else if (key == Key::Clients)
		view->choice.clients = !view->choice.clients;
	else if (key == Key::NextServer && !history.servers().empty())
		view->choice.server = (view->choice.server + 1) % history.servers().size();
	if (!shown_ns)
		return; // no data yet
	if (key == Key::Freeze && view->choice.frozen)
		view->choice.frozen = false;
	else if (key == Key::Freeze)
		Freeze(shown_ns, view);
	else if (key == Key::Back || key == Key::PageBack)
		GoTo(history, shown_ns - std::min(shown_ns, key == Key::Back ? kSecondNs : page_ns), view);
	else if (key == Key::On || key == Key::PageOn)
		GoTo(history, shown_ns + (key == Key::On ? kSecondNs : page_ns), view);
	else if (key == Key::First)
		GoTo(history, 0, view);
	else if (key == Key::Live)
		view->choice.frozen = false;
	else if (key == Key::Worst)
		if (const Figures *worst = history.Worst(view->choice.server, shown_ns, kMinuteSeconds))
			Freeze(worst->start_ns, view);
}

namespace
{

live::Options OptionsFrom(uint64_t from_ns)
{
	live::Options options;
	options.from_ns = std::max<uint64_t>(from_ns, 1);
	options.request_seconds = true;
	return options;
}

} // namespace

Backlog::Backlog(const std::string &path, uint64_t from_ns, uint64_t to_ns)
    : from_ns_(from_ns), to_ns_(to_ns), follower_(path, OptionsFrom(from_ns))
{
}

bool Backlog::Step()
{
	std::string error;
	if (!follower_.Poll(&batch_, &error))
		return true;
	history_.Take(batch_, follower_);
	if (batch_.more && follower_.accounted_to_ns() < to_ns_)
		return false;
	// Iterations are reported one Poll() after they are read.
	if (follower_.Poll(&batch_, &error))
		history_.Take(batch_, follower_);
	return true;
}

double Backlog::done() const
{
	const uint64_t at_ns = std::clamp(follower_.accounted_to_ns(), from_ns_, std::max(from_ns_, to_ns_));
	return to_ns_ <= from_ns_
		   ? 1
		   : static_cast<double>(at_ns - from_ns_) / static_cast<double>(to_ns_ - from_ns_);
}

// Members may be added but are never renamed. Durations are nanoseconds, instants are seconds since 1970.

namespace
{

double Instant(uint64_t realtime_ns)
{
	return static_cast<double>(realtime_ns / 1000) / 1e6;
}

common::Json PartsJson(const std::vector<Part> &parts)
{
	common::Json list = common::Json::array();
	for (const Part &part : parts) {
		common::Json j = {{"cause", analysis::AccountName(part.cause)},
				  {"ns", part.ns},
				  {"stall", analysis::IsStall(part.cause)}};
		if (part.count)
			j["count"] = part.count;
		if (part.longest_ns) {
			j["longest_ns"] = part.longest_ns;
			j["detail"] = part.detail;
		}
		list.push_back(j);
	}
	return list;
}

common::Json WorstJson(const Frame &f)
{
	const WorstIteration &w = f.worst;
	if (!w.duration_ns)
		return nullptr;
	return {{"at", Instant(f.worst_realtime_ns)},
		{"ns", w.duration_ns},
		{"thread", w.thread_name},
		{"sampled", w.sampled},
		{"reads", w.reads},
		{"writes", w.writes},
		{"parts", PartsJson(w.parts)},
		{"detail", w.detail},
		{"stack", w.stack},
		{"cpu_had", w.holder}};
}

common::Json RequestsJson(const Frame &f)
{
	const RequestFigures &r = f.second.requests;
	if (!f.health.request_sample)
		return nullptr;
	return {{"sample", f.health.request_sample},
		{"count", r.count},
		{"p50_ns", r.p50_ns},
		{"p99_ns", r.p99_ns},
		{"max_ns", r.max_ns}};
}

common::Json ClientsJson(const Frame &f)
{
	common::Json list = common::Json::array();
	for (const ClientFigures &c : f.clients)
		list.push_back({{"client", c.name},
				{"per_second", c.per_second},
				{"count", c.count},
				{"mean_ns", c.mean_ns},
				{"max_ns", c.max_ns},
				{"share", c.share}});
	return list;
}

common::Json ServerJson(const Frame &f)
{
	const Figures &s = f.second;
	size_t threads = 0;
	common::Json server = {
	    {"name", f.server},
	    {"pid", f.pid},
	    {"alive", f.alive},
	    {"accounted", s.accounted},
	    {"turns",
	     {{"count", s.iterations}, {"p50_ns", s.p50_ns}, {"p99_ns", s.p99_ns}, {"max_ns", s.max_ns}}},
	    {"causes", PartsJson(ServingParts(s, &threads))},
	    {"stalled_ns", StalledNs(s)},
	    {"worst_of_minute", WorstJson(f)},
	    {"forks", {{"count", s.forks}, {"ns", s.fork_ns}}},
	    {"fsync",
	     {{"count", s.fsyncs},
	      {"ns", s.fsync_ns},
	      {"longest_ns", s.fsync_longest_ns},
	      {"file", s.fsync_file}}},
	    {"disk",
	     {{"reads", s.disk_reads},
	      {"writes", s.disk_writes},
	      {"bytes", s.disk_bytes},
	      {"longest_ns", s.disk_longest_ns}}}};
	server["serving_threads"] = threads;
	server["threads"] = common::Json::array();
	for (const ThreadFigures &t : s.threads)
		server["threads"].push_back({{"name", t.name},
					     {"serves", t.serves},
					     {"child", t.child},
					     {"parts", PartsJson(t.parts)}});
	server["cpu_taken"] = common::Json::array();
	for (const Taker &t : s.taken)
		server["cpu_taken"].push_back({{"by", t.comm}, {"ns", t.ns}});
	server["children"] = common::Json::array();
	for (const Child &c : f.children)
		server["children"].push_back(
		    {{"pid", c.pid},
		     {"role", c.role},
		     {"ns", (c.end_ns ? c.end_ns : s.end_ns()) - c.start_ns},
		     {"ended", c.end_ns != 0},
		     {"last_took_ns", c.last_took_ns},
		     {"copied_bytes", c.copied_bytes ? common::Json(*c.copied_bytes) : common::Json()}});
	server["requests"] = RequestsJson(f);
	server["clients"] = ClientsJson(f);
	server["open"] = common::Json::array();
	for (const Open &o : s.open)
		server["open"].push_back({{"thread", o.thread},
					  {"cause", analysis::AccountName(o.cause)},
					  {"so_far_ns", o.so_far_ns},
					  {"detail", o.detail}});
	return server;
}

} // namespace

std::string OnceJson(const std::vector<Frame> &frames)
{
	common::Json j = {{"format", 1}, {"servers", common::Json::array()}};
	for (const Frame &f : frames) {
		const Health &h = f.health;
		j["at"] = Instant(f.second.realtime_ns);
		j["age_ns"] = f.age_ns;
		j["dropped_in_second"] = f.second.dropped;
		j["recorder"] = {{"recording", h.recording},
				 {"cpu", h.cost_known ? common::Json(h.cpu) : common::Json()},
				 {"bpf", h.bpf ? common::Json(*h.bpf) : common::Json()},
				 {"rss_bytes", h.rss_bytes},
				 {"dropped", h.dropped},
				 {"damaged", h.damaged}};
		j["ring"] = {{"span_ns", h.span_ns}, {"bytes", h.bytes}, {"files", h.segments}};
		j["servers"].push_back(ServerJson(f));
	}
	return j.dump() + "\n";
}

} // namespace forktail::live::watch
