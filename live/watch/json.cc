// SPDX-License-Identifier: MIT
// See json.h. Members may be added but are never renamed. Durations are nanoseconds, instants are seconds
// since 1970.
#include "json.h"

#include <nlohmann/json.hpp>

#include "common/json/json_read.h"

namespace forktail::live::watch
{

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
		server["children"].push_back({{"pid", c.pid},
					      {"role", c.role},
					      {"ns", (c.end_ns ? c.end_ns : s.end_ns()) - c.start_ns},
					      {"ended", c.end_ns != 0},
					      {"last_took_ns", c.last_took_ns}});
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
				 {"bpf", h.cost_known ? common::Json(h.bpf) : common::Json()},
				 {"rss_bytes", h.rss_bytes},
				 {"dropped", h.dropped},
				 {"damaged", h.damaged}};
		j["ring"] = {{"span_ns", h.span_ns}, {"bytes", h.bytes}, {"files", h.segments}};
		j["servers"].push_back(ServerJson(f));
	}
	return j.dump() + "\n";
}

} // namespace forktail::live::watch
