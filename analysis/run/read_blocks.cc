// SPDX-License-Identifier: MIT
// Copies the content of blocks to the run, record by record.
#include "read_blocks.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <unistd.h>
#include <utility>

#include "analysis/run.h"
#include "common/json.h"
#include "log_reader.h"
#include "recording/owners.h"

namespace forktail::analysis
{

namespace
{

// Calls each(record) for the block's records of type T, in the run's clock.
template <typename T, typename Each> void ForRecords(const OpenFile *f, const ft_block &block, Each each)
{
	T record;
	for (uint32_t i = 0; i < block.count; i++) {
		ft_block_record(&block, i, &record, sizeof record);
		if (!f->clock.same())
			MapTimes(f->clock, &record);
		each(record);
	}
}

// Records of a thread on a CPU.
template <typename T> void ReadSamples(const OpenFile *f, const ft_block &block, Column<T> *to)
{
	ForRecords<T>(f, block, [&](T s) {
		s.tid = f->space.Id(s.tid);
		s.cpu = f->space.Cpu(s.cpu);
		to->push_back(s);
	});
}

// A server that is not in the manifest's list joined later. It must not be mistaken for another.
uint32_t ServerIndex(const OpenFile *f, Run *run, uint32_t server)
{
	static const std::string later = "a server that joined later";
	if (server < f->servers.size())
		return f->servers[server];
	if (f->servers.empty())
		return 0;
	auto known = std::find(run->servers.begin(), run->servers.end(), later);
	uint32_t index = static_cast<uint32_t>(known - run->servers.begin());
	if (known == run->servers.end()) {
		run->servers.push_back(later);
		run->server_pids.push_back(0);
		run->server_proxies.push_back(0);
		run->server_hosts.push_back("");
	}
	return index;
}

void ReadConnection(OpenFile *f, Run *run, const ft_connection &c)
{
	const uint32_t index = f->connections->Make(c.id, run);
	if (c.client_flags & FT_CLIENT_UNSAMPLED) {
		f->session->unsampled.resize(std::max<size_t>(f->session->unsampled.size(), index + 1));
		f->session->unsampled[index] = 1;
	}
	Connection &connection = run->connections[index];
	if (connection.opened_ns && connection.opened_ns < c.opened_ns) { // it was opened again
		std::vector<Connection> earlier = std::move(connection.earlier);
		connection.earlier = {};
		earlier.push_back(connection);
		connection.earlier = std::move(earlier);
	}
	connection.opened_ns = c.opened_ns;
	connection.closed_ns = c.closed_ns;
	connection.thread = c.thread;
	connection.local_port = c.local_port;
	connection.inode = f->space.Inode(c.inode);
	connection.server = ServerIndex(f, run, c.server);
	if (c.reader_changes == FT_READER_CHANGES)
		connection.readers.clear();
	else if (c.reader && (connection.readers.empty() || connection.readers.back().since_ns < c.reader_ns))
		connection.readers.push_back({c.reader_ns, f->space.Id(c.reader)});
	connection.client = f->clients->Of(c, f->space.Id(c.client_pid), c.client_pid,
					   SeveralHosts(*run) ? OnHost(f->about.host) : "", run);
}

// The start of the file recorder's data; 0: it is complete.
uint64_t CutNs(const OpenFile *f)
{
	return f->session->cut() ? f->session->first_ns : 0;
}

// Cuts the part of a record before the first segment that still exists, because all else of that time is
// missing.
void Cut(uint64_t from_ns, ft_span *s)
{
	const uint64_t was_ns = s->duration_ns, end_ns = s->start_ns + was_ns;
	if (s->start_ns >= from_ns || end_ns < from_ns || end_ns < s->start_ns)
		return;
	s->start_ns = from_ns;
	s->duration_ns = end_ns - from_ns;
	if (s->off_cpu) { // blocked time comes first
		s->runnable_ns = std::min(s->runnable_ns, s->duration_ns);
		s->blocked_ns = s->duration_ns - s->runnable_ns;
		return;
	}
	s->on_cpu_ns = InMeasure(s->on_cpu_ns, was_ns, s->duration_ns);
	s->runnable_ns = InMeasure(s->runnable_ns, was_ns, s->duration_ns);
	s->blocked_ns = InMeasure(s->blocked_ns, was_ns, s->duration_ns);
}
void Cut(uint64_t from_ns, ft_tally *t)
{
	if (t->start_ns >= from_ns || t->end_ns < from_ns)
		return;
	t->total_ns = InMeasure(t->total_ns, t->end_ns - t->start_ns, t->end_ns - from_ns);
	t->max_ns = std::min(t->max_ns, t->total_ns);
	t->start_ns = from_ns;
}

// Of a task that may be outside the recorder's pid namespace.
uint32_t IdOfAny(const IdSpace &space, uint32_t id)
{
	return space.Id(id) | (id & FT_TASK_OUTSIDE);
}

// The run's thread of an account. A recorder that stopped and resumed in its ring begins another account of a
// thread that still runs: it is the same thread, with a gap.
size_t ThreadOf(OpenFile *f, const ft_thread &t, Run *run)
{
	auto &threads = f->merge->threads;
	auto [found, is_new] = threads.try_emplace({t.tid, t.start_ns}, run->threads.size());
	if (!is_new)
		return found->second;
	if (f->segment && found != threads.begin()) {
		const auto before = std::prev(found);
		const Thread &was = run->threads[before->second];
		if (before->first.first == t.tid && was.tgid == f->space.Id(t.tgid) &&
		    !(was.flags & FT_THREAD_ENDED) && was.comm == common::VisibleName(t.comm))
			return found->second = before->second;
	}
	run->threads.emplace_back();
	run->threads.back().start_ns = UINT64_MAX;
	return found->second;
}

void ReadThread(OpenFile *f, Run *run, const ft_thread &t)
{
	Thread &thread = run->threads[ThreadOf(f, t, run)];
	thread.tid = f->space.Id(t.tid);
	thread.tgid = f->space.Id(t.tgid);
	thread.parent_tgid = f->space.Id(t.parent_tgid);
	thread.announced = true;
	thread.flags = t.flags;
	thread.start_ns = std::min(thread.start_ns, std::max(t.start_ns, CutNs(f)));
	thread.end_ns = t.end_ns ? std::max(t.end_ns, thread.start_ns) : 0;
	thread.comm = common::VisibleName(t.comm);
	thread.role = common::VisibleName(t.role);
	thread.file = static_cast<uint32_t>(std::min(f->merge->file, run->files.size()));
}

// The index of a text in a list of the run; it is added if new.
template <typename T>
uint32_t Once(std::unordered_map<std::string, uint32_t> *known, const std::string &text, T what,
	      std::vector<T> *list)
{
	auto [found, is_new] = known->try_emplace(text, static_cast<uint32_t>(list->size()));
	if (is_new)
		list->push_back(std::move(what));
	return found->second;
}

// A block's text, and the number by which the file's records refer to it, which is removed from the text.
std::string TakeId(common::Json *j, uint32_t *id)
{
	*id = static_cast<uint32_t>(common::Whole(*j, "id"));
	j->erase("id");
	return j->dump(-1, ' ', false, common::Json::error_handler_t::replace);
}

void ReadDetail(OpenFile *f, Run *run, common::Json j)
{
	uint32_t id = 0;
	const std::string text = TakeId(&j, &id);
	f->details[id] = Once(&f->merge->details, text,
			      Detail{common::Text(j, "name"), common::Texts(j, "stack")}, &run->details);
}

void ReadStack(OpenFile *f, Run *run, common::Json j)
{
	uint32_t id = 0;
	const std::string text = TakeId(&j, &id);
	Stack stack;
	stack.program = common::Text(j, "program");
	if (const common::Json *frames = common::Member(j, "frames"); frames && frames->is_array())
		for (const common::Json &frame : *frames)
			if (frame.is_array() && frame.size() == 2)
				stack.frames.push_back({common::AsText(frame[0]), common::AsText(frame[1])});
	stack.kernel = common::Texts(j, "kernel");
	f->stacks[id] = Once(&f->merge->stacks, text, std::move(stack), &run->stacks);
}

void ReadSeries(OpenFile *f, Run *run, common::Json j)
{
	uint32_t id = 0;
	const std::string text = TakeId(&j, &id);
	Series s;
	s.name = common::Text(j, "name");
	s.unit = common::Text(j, "unit");
	s.labels = common::TextMap(j, "labels");
	if (SeveralHosts(*run))
		s.labels["host"] = f->about.host;
	f->series[id] = Once(&f->merge->series, text, std::move(s), &run->series);
}

void ReadCost(OpenFile *f, Run *run, const common::Json &j)
{
	Cost cost;
	cost.known = true;
	cost.bpf_ns = common::Whole(j, "bpf_ns");
	cost.bpf_ns_is_estimate = common::Flag(j, "bpf_ns_is_estimate");
	if (common::Member(j, "windows"))
		cost.windows = common::Whole(j, "windows");
	cost.recorder_cpu_ns = common::Whole(j, "recorder_cpu_ns");
	cost.load_cpu_ns = common::Whole(j, "load_cpu_ns");
	cost.recorder_rss_bytes = common::Whole(j, "recorder_rss_bytes");
	if (const common::Json *programs = common::Member(j, "programs"); programs && programs->is_array())
		for (const common::Json &p : *programs)
			cost.programs.push_back({common::Text(p, "name"), common::Whole(p, "runs"),
						 common::Number(p, "ns_per_run"),
						 common::Whole(p, "total_ns")});
	cost.bpf_known = common::Member(j, "bpf_ns") && !cost.programs.empty();
	if (const common::Json *deaths = common::Member(j, "helper_deaths"); deaths && deaths->is_object())
		for (const auto &[helper, count] : deaths->items())
			cost.helper_deaths[helper] = common::Whole(*deaths, helper.c_str());
	cost.main_loop_stalls = common::Whole(j, "main_loop_stalls");
	f->merge->AddCost(f, cost, &run->cost);
}

// Maps both halves of a word that holds two thread ids.
uint64_t Ids(const IdSpace &space, uint64_t word)
{
	return space.Id(static_cast<uint32_t>(word)) | uint64_t{space.Id(static_cast<uint32_t>(word >> 32))}
							   << 32;
}

// Maps the arguments of a span that are ids: docs/reference/recording-format.md.
ft_span InSpace(const IdSpace &space, ft_span s)
{
	if (!space.number)
		return s;
	s.tid = space.Id(s.tid);
	s.cpu = space.Cpu(s.cpu);
	if (s.queue_cpu)
		s.queue_cpu = static_cast<uint16_t>(space.Cpu(s.queue_cpu - 1u) + 1);
	if (!s.off_cpu) {
		if (s.owner == FT_FORK && s.arg[0] < kIdsOfSpace)
			s.arg[0] = space.Id(static_cast<uint32_t>(s.arg[0]));
		return s;
	}
	if (s.owner == FT_PTRACED)
		s.arg[0] = space.Id(static_cast<uint32_t>(s.arg[0]));
	if (s.owner == FT_LOCK_WAIT && s.depth == 0 && s.arg[0])
		s.arg[1] = Ids(space, s.arg[1]);
	else if (s.arg[1])
		s.arg[1] = space.Id(static_cast<uint32_t>(s.arg[1])) | s.arg[1] >> 32 << 32;
	return s;
}

// Reads a test's start from the current load generator's file, whose load is the last one.
void ReadLoadStart(const OpenFile *f, Run *run, const common::Json &j, uint64_t t_ns)
{
	LoadStart start = {static_cast<uint32_t>(run->loads.size() - 1), t_ns, {}};
	if (const common::Json *tids = common::Member(j, "tids"); tids && tids->is_array())
		for (const common::Json &tid : *tids)
			start.tids.push_back(f->space.Id(tid.is_number_unsigned() ? tid.get<uint32_t>() : 0));
	run->load_starts.push_back(std::move(start));
}

// Whether an earlier segment of the ring had this thread with that epoll instance, and no other thread had
// its id since. Remembers it.
bool LoopIsKnown(SegmentMerge *merge, const ft_loop &l)
{
	auto [last, is_new] = merge->loops.try_emplace(l.tid, l);
	const ft_loop before = last->second;
	last->second = l;
	if (is_new || before.tgid != l.tgid || before.epoll != l.epoll)
		return false;
	auto later = merge->threads.upper_bound({l.tid, before.t_ns});
	return later == merge->threads.end() || later->first.first != l.tid;
}

// Whether a note repeats an earlier one: the same quota, the same missing data, or the same text.
bool NoteIsKnown(SegmentMerge *merge, const common::Json &j)
{
	const std::string kind = common::Text(j, "kind");
	if (kind == "cpu-quota" || kind == "missing") {
		std::string &last = merge->states[kind + " " + std::to_string(common::Whole(j, "pid")) + " " +
						  common::Text(j, "cgroup") + common::Text(j, "what")];
		const std::string now = std::to_string(common::Whole(j, "quota_us")) + " " +
					std::to_string(common::Whole(j, "period_us")) +
					common::Text(j, "why");
		return std::exchange(last, now) == now;
	}
	return !merge->notes.insert(j.dump(-1, ' ', false, common::Json::error_handler_t::replace)).second;
}

void AddTexts(const std::vector<std::string> &more, std::vector<std::string> *all)
{
	for (const std::string &one : more)
		if (std::find(all->begin(), all->end(), one) == all->end())
			all->push_back(one);
}

void AddPeers(uint32_t pid, const common::Json &j, Run *run)
{
	for (Target &t : run->targets)
		if (t.pid == pid) {
			AddTexts(common::Texts(j, "peers"), &t.peers);
			AddTexts(common::Texts(j, "local_ends"), &t.local_ends);
		}
}

void AddEnd(uint64_t t_ns, uint32_t pid, const common::Json &j, Run *run)
{
	auto number = [&](const char *key) {
		return common::Member(j, key) ? static_cast<int>(common::Whole(j, key) & 0xff) : -1;
	};
	run->ended.push_back({t_ns, pid, common::Text(j, "comm"), common::Text(j, "kind") == "child-killed",
			      number("signal"), number("status"), common::Flag(j, "core_dumped"),
			      common::Flag(j, "oom_killer")});
}

void AddPipe(uint64_t t_ns, uint32_t pid, const common::Json &j, Run *run)
{
	PipeEnds pipe = {t_ns, pid, common::Whole(j, "fd"), common::Whole(j, "inode"), {}};
	if (const common::Json *ends = common::Member(j, "ends"); ends && ends->is_array())
		for (const common::Json &end : *ends)
			pipe.ends.push_back({static_cast<uint32_t>(common::Whole(end, "pid")),
					     common::Text(end, "comm"), common::Text(end, "state")});
	run->pipes.push_back(std::move(pipe));
}

// A setting may differ from an earlier reading: it was changed, or the server was restarted.
void AddSettings(std::map<std::string, std::string> settings, RunInfo *info)
{
	for (const auto &[name, value] : settings) {
		const auto before = info->redis_config.find(name);
		if (before != info->redis_config.end() && before->second != value)
			info->changed_settings.insert(name);
	}
	info->redis_config.merge(settings);
}

// "rdbSaveBackground() of process 4711 took 12.3 ms", or "a_probe in process 4711".
void AddProbe(uint64_t t_ns, uint32_t pid, const common::Json &j, Run *run)
{
	const std::string name = common::Visible(common::Text(j, "name")),
			  process = "process " + std::to_string(OwnId(*run, pid));
	run->marks.push_back({t_ns,
			      j.contains("duration_ns")
				  ? name + "() of " + process + " took " +
					common::FormatDuration(common::Whole(j, "duration_ns"))
				  : name + " in " + process,
			      true});
}

void AddKey(uint64_t t_ns, const common::Json &j, OpenFile *f, Run *run)
{
	const bool of_load = j.contains("connection");
	const auto id = static_cast<uint32_t>(common::Whole(j, of_load ? "connection" : "tid"));
	const uint64_t op = of_load && j.contains("op") ? common::Whole(j, "op") : UINT64_MAX;
	run->keys.push_back({t_ns, of_load, of_load ? f->connections->Make(id, run) : id,
			     common::Whole(j, "took_ns"), common::Text(j, "key"), common::Flag(j, "begin"),
			     op < f->ops.size() ? f->ops[op] : uint8_t{UINT8_MAX}});
}

void ReadNote(OpenFile *f, Run *run, const common::Json &j)
{
	if (common::Text(j, "kind") == "request-servers")
		UseServers(j, f, f->of_log);
	if (common::Text(j, "kind") == "requests-sample" && f->session->load < f->of_log->loads.size()) {
		f->of_log->loads[f->session->load].sample = SampleOf(j);
		f->session->reduced = true;
	}
	if (f->segment && NoteIsKnown(f->merge.get(), j))
		return;
	const uint64_t t_ns = f->clock.Map(common::Whole(j, "t_ns"));
	const uint32_t pid = f->space.Id(static_cast<uint32_t>(common::Whole(j, "pid")));
	if (common::Text(j, "kind") == "cpu-quota")
		run->quotas.push_back({t_ns, pid, common::Text(j, "cgroup"), common::Whole(j, "quota_us"),
				       common::Whole(j, "period_us")});
	else if (common::Text(j, "kind") == "missing")
		AddMissing(j, run);
	else if (common::Text(j, "kind") == "peers")
		AddPeers(pid, j, run);
	else if (common::Text(j, "kind") == "frozen")
		run->frozen.push_back({t_ns, pid, common::Text(j, "cgroup"), common::Text(j, "cgroup_of")});
	else if (common::Text(j, "kind") == "target-ended" || common::Text(j, "kind") == "child-killed")
		AddEnd(t_ns, pid, j, run);
	else if (common::Text(j, "kind") == "softirqs-sampled")
		run->softirq_samplings.push_back({t_ns, f->about.host, common::Flag(j, "on"),
						  common::Flag(j, "asked"), common::Whole(j, "per_second")});
	else if (common::Text(j, "kind") == "pipe")
		AddPipe(t_ns, pid, j, run);
	else if (common::Text(j, "kind") == "probe")
		AddProbe(t_ns, pid, j, run);
	else if (common::Text(j, "kind") == "settings")
		AddSettings(common::TextMap(j, "settings"), &run->info);
	else if (common::Text(j, "kind") == "key")
		AddKey(t_ns, j, f, run);
	else if (common::Text(j, "kind") == "tracer")
		run->tracers[pid] = common::Text(j, "comm");
	else {
		run->reports.push_back(ReportOf(j));
		run->reports.back().t_ns = t_ns;
	}
	if (common::Text(j, "kind") == "load-start" && !run->loads.empty())
		ReadLoadStart(f, run, j, t_ns);
}

} // namespace

void Hold::Close()
{
	if (fd >= 0)
		close(fd);
	fd = -1;
}

void TakeNames(OpenFile *f, size_t first_span, size_t first_cpu_sample, Run *run)
{
	for (size_t i = first_span; i < run->spans.size(); i++) {
		uint32_t &detail = run->spans[i].detail;
		auto found = detail ? f->details.find(detail) : f->details.end();
		detail = found == f->details.end() ? 0 : found->second;
	}
	for (size_t i = first_cpu_sample; i < run->cpu_samples.size(); i++) {
		auto found = f->stacks.find(run->cpu_samples[i].stack);
		run->cpu_samples[i].stack = found == f->stacks.end() ? 0 : found->second;
	}
}

void UseServers(const common::Json &list, OpenFile *f, Run *run)
{
	const common::Json *infos = common::Member(list, "server_info");
	const std::vector<std::string> servers = common::Texts(list, "servers");
	for (size_t i = f->servers.size(); i < servers.size(); i++) {
		const bool here = IsKernelLog(*f) || IsLocalAddress(servers[i]);
		std::string host = SeveralHosts(*run) && here ? f->about.host : "";
		size_t known = 0;
		while (known < run->servers.size() &&
		       (run->servers[known] != servers[i] || run->server_hosts[known] != host))
			known++;
		f->servers.push_back(static_cast<uint32_t>(known));
		if (known != run->servers.size())
			continue;
		run->servers.push_back(servers[i]);
		run->server_hosts.push_back(host);
		const common::Json &info =
		    infos && infos->is_array() && i < infos->size() ? (*infos)[i] : common::Json::object();
		run->server_pids.push_back(static_cast<uint32_t>(common::Whole(info, "pid")));
		run->server_proxies.push_back(common::Flag(info, "proxy"));
	}
}

bool IsKernelLog(const OpenFile &f)
{
	const common::Json *requests = common::Member(f.manifest, "requests");
	return requests && requests->is_object();
}

common::Raw PayloadText(const ft_block &block)
{
	return {std::string(static_cast<const char *>(block.payload), block.bytes)};
}

ServerReport ReportOf(const common::Json &j)
{
	ServerReport report;
	report.t_ns = common::Whole(j, "t_ns");
	report.kind = common::Text(j, "kind");
	report.latest_fork_usec = common::Whole(j, "latest_fork_usec");
	report.text = j.dump(-1, ' ', false, common::Json::error_handler_t::replace);
	return report;
}

void ReadBlock(OpenFile *f, Run *run, const ft_block &block)
{
	const IdSpace &space = f->space;
	const uint64_t cut_ns = CutNs(f);
	switch (block.kind) {
	case FT_BLOCK_THREAD:
		ForRecords<ft_thread>(f, block, [&](const ft_thread &t) { ReadThread(f, run, t); });
		break;
	case FT_BLOCK_SPAN:
		ForRecords<ft_span>(f, block, [&](ft_span s) {
			Cut(cut_ns, &s);
			run->spans.push_back(InSpace(space, s));
		});
		break;
	case FT_BLOCK_OPEN:
		ForRecords<ft_span>(f, block, [&](ft_span s) {
			auto detail = f->details.find(s.detail);
			Cut(cut_ns, &s);
			s.detail = detail == f->details.end() ? 0 : detail->second;
			f->session->open.Add(InSpace(space, s));
		});
		break;
	case FT_BLOCK_TALLY:
		ForRecords<ft_tally>(f, block, [&](ft_tally t) {
			Cut(cut_ns, &t);
			t.tid = space.Id(t.tid);
			run->tallies.push_back(t);
		});
		break;
	case FT_BLOCK_IO:
		ForRecords<ft_io>(f, block, [&](ft_io io) {
			io.tid = IdOfAny(space, io.tid);
			io.dev = DeviceOf(space, io.dev, run);
			run->ios.push_back(io);
		});
		break;
	case FT_BLOCK_CPU_SLICE:
		ForRecords<ft_cpu_slice>(f, block, [&](ft_cpu_slice t) {
			t.tid = IdOfAny(space, t.tid);
			t.cpu = space.Cpu(t.cpu);
			run->cpu_slices.push_back(t);
		});
		break;
	case FT_BLOCK_LOOP:
		ForRecords<ft_loop>(f, block, [&](ft_loop l) {
			l.tid = space.Id(l.tid);
			l.tgid = space.Id(l.tgid);
			if (!LoopIsKnown(f->merge.get(), l))
				run->loops.push_back(l);
		});
		break;
	case FT_BLOCK_SOCKET:
		ForRecords<ft_socket>(f, block, [&](ft_socket s) {
			s.tgid = space.Id(s.tgid);
			s.inode = space.Inode(s.inode);
			s.peer_inode = space.Inode(s.peer_inode);
			s.reader = s.reader ? space.Id(s.reader) : 0;
			run->sockets.push_back(s);
		});
		break;
	case FT_BLOCK_TCP_EVENT:
		ForRecords<ft_tcp_event>(f, block,
					 [&](const ft_tcp_event &e) { run->tcp_events.push_back(e); });
		break;
	case FT_BLOCK_TCP_STATE:
		ForRecords<ft_tcp_state>(f, block,
					 [&](const ft_tcp_state &s) { run->tcp_states.push_back(s); });
		break;
	case FT_BLOCK_WRITES:
		ForRecords<ft_writes>(f, block, [&](ft_writes w) {
			w.tgid = IdOfAny(space, w.tgid);
			w.dev = DeviceOf(space, w.dev, run);
			run->writes.push_back(w);
		});
		break;
	case FT_BLOCK_SAMPLE:
		ForRecords<ft_sample>(f, block, [&](const ft_sample &s) {
			auto found = f->series.find(s.series);
			if (found != f->series.end())
				run->series[found->second].samples.push_back({s.t_ns, s.value});
		});
		break;
	case FT_BLOCK_DROP:
		ForRecords<ft_drop>(f, block, [&](ft_drop d) {
			if (d.source == FT_DROP_MISSED)
				d.detail += f->first_program;
			run->drops.push_back(d);
		});
		break;
	case FT_BLOCK_CLOCK:
		ForRecords<ft_clock>(f, block, [&](const ft_clock &c) {
			// Another host's wall clock is a different clock.
			if (f->clock.same())
				run->clocks.push_back(c);
		});
		break;
	case FT_BLOCK_CONNECTION:
		ForRecords<ft_connection>(f, block,
					  [&](const ft_connection &c) { ReadConnection(f, run, c); });
		break;
	case FT_BLOCK_LOAD_TCP:
		ForRecords<ft_load_tcp>(f, block, [&](ft_load_tcp t) {
			t.connection = f->connections->Make(t.connection, run);
			run->load_tcp.push_back(t);
		});
		break;
	case FT_BLOCK_DETAIL:
		ReadDetail(f, run, common::ParseVisibleObject(PayloadText(block)));
		break;
	case FT_BLOCK_CPU_SAMPLE:
		ReadSamples(f, block, &run->cpu_samples);
		break;
	case FT_BLOCK_COUNTERS:
		ReadSamples(f, block, &run->counters);
		break;
	case FT_BLOCK_STACK:
		ReadStack(f, run, common::ParseVisibleObject(PayloadText(block)));
		break;
	case FT_BLOCK_SERIES:
		ReadSeries(f, run, common::ParseVisibleObject(PayloadText(block)));
		break;
	case FT_BLOCK_COST:
		ReadCost(f, run, common::ParseVisibleObject(PayloadText(block)));
		break;
	case FT_BLOCK_NOTE:
		ReadNote(f, run, common::ParseVisibleObject(PayloadText(block)));
		break;
	case FT_BLOCK_SUMMARY:
		f->about.summary = PayloadText(block);
		break;
	default:
		break; // the log has requests (log_reader.h), and histograms repeat them exactly;
		       // kinds of a newer writer are skipped
	}
}

// A segment has its recorder's cost since the segment began. The last value counts.

namespace
{

void Add(Cost *sum, const Cost &c)
{
	sum->known = true;
	sum->bpf_ns += c.bpf_ns;
	sum->bpf_ns_is_estimate |= c.bpf_ns_is_estimate;
	sum->bpf_known |= c.bpf_known;
	sum->windows = c.windows;
	sum->helper_deaths = c.helper_deaths;
	sum->main_loop_stalls = c.main_loop_stalls;
	sum->recorder_cpu_ns += c.recorder_cpu_ns;
	sum->load_cpu_ns += c.load_cpu_ns;
	sum->recorder_rss_bytes = c.recorder_rss_bytes;
	for (const ProgramCost &p : c.programs) {
		auto known = std::find_if(sum->programs.begin(), sum->programs.end(),
					  [&](const ProgramCost &q) { return q.name == p.name; });
		if (known == sum->programs.end()) {
			sum->programs.push_back(p);
			continue;
		}
		known->runs += p.runs;
		known->total_ns += p.total_ns;
		known->ns_per_run =
		    known->runs ? static_cast<double>(known->total_ns) / static_cast<double>(known->runs) : 0;
	}
}

} // namespace

void SegmentMerge::AddCost(const OpenFile *of, const Cost &cost, Cost *sum)
{
	if (cost_of_ && cost_of_ != of)
		Add(&costs_, cost_);
	cost_of_ = of;
	cost_ = cost;
	*sum = costs_;
	Add(sum, cost_);
}

// Whether a later span ended an open one. A thread that was off the CPU, or ran undisturbed, no longer does
// so if there is any later record. A frame has ended if a span that ended later is not deeper than it.

namespace
{

uint64_t EndOf(const ft_span &s)
{
	return s.start_ns + s.duration_ns;
}

// Off the CPU, or running without any other event: the next event has ended it.
bool IsStill(const ft_span &open)
{
	return open.off_cpu || open.owner == FT_OWN_CODE;
}

} // namespace

void OpenSpans::Add(const ft_span &span)
{
	OfThread &t = by_tid_[span.tid];
	const uint64_t seen_ns = EndOf(span); // the instant of the scan, for all its spans
	if (seen_ns < t.seen_ns)
		return;
	if (seen_ns > t.seen_ns)
		t.open.clear();
	t.seen_ns = seen_ns;
	// A segment repeats what the last scan before it found.
	auto same = [&](const Open &o) {
		return o.span.start_ns == span.start_ns && o.span.owner == span.owner &&
		       o.span.depth == span.depth && o.span.off_cpu == span.off_cpu;
	};
	if (std::none_of(t.open.begin(), t.open.end(), same))
		t.open.push_back({span, false});
}

void OpenSpans::Note(const ft_span &span)
{
	auto found = by_tid_.find(span.tid);
	if (found == by_tid_.end())
		return;
	const bool iteration = span.owner == FT_ITERATION;
	for (Open &o : found->second.open) {
		if (EndOf(span) <= EndOf(o.span))
			continue;
		if (iteration || o.span.owner == FT_ITERATION)
			o.ended |= iteration && o.span.owner == FT_ITERATION;
		else
			o.ended |= IsStill(o.span) || span.depth <= o.span.depth;
	}
}

void OpenSpans::Note(const ft_tally &tally)
{
	auto found = by_tid_.find(tally.tid);
	if (found == by_tid_.end())
		return;
	for (Open &o : found->second.open)
		o.ended |= IsStill(o.span) && tally.end_ns > EndOf(o.span);
}

std::vector<ft_span> OpenSpans::StillOpen() const
{
	std::vector<ft_span> standing;
	for (const auto &[tid, t] : by_tid_)
		for (const Open &o : t.open)
			if (!o.ended)
				standing.push_back(o.span);
	std::sort(standing.begin(), standing.end(), [](const ft_span &a, const ft_span &b) {
		return a.tid != b.tid ? a.tid < b.tid : a.start_ns < b.start_ns;
	});
	return standing;
}

// Parts wait by what they are until the proxy's requests of that time are read.

namespace
{

constexpr size_t kTries = 4096; // parts that are compared with one request
// A part is a request's only if the rest of the request's time, at the proxy and on the network, is not
// longer than the part and this. A longer rest is the proxy's stall, whatever server the request went to.
constexpr uint64_t kMostElsewhereNs = 2'000'000;

// The client's end as the recorder writes it; "" if the log does not have it.
std::string ClientEnd(const Run &run, const Connection &c)
{
	if (!c.client || !c.local_port || run.request_clients[c.client - 1].hashed)
		return "";
	const std::string &address = run.request_clients[c.client - 1].address;
	if (address.empty())
		return "";
	const bool v6 = address.find(':') != std::string::npos;
	return (v6 ? "[" + address + "]:" : address + ":") + std::to_string(c.local_port);
}

// 1 + the index of the process that serves it; 0: unknown.
uint32_t TargetOf(const Run &run, const std::vector<Target> &targets, uint32_t server)
{
	const auto target = std::ranges::find_if(targets, [&](const Target &t) {
		return OwnId(run, t.pid) == run.server_pids[server] && t.host == run.server_hosts[server];
	});
	return target == targets.end() ? 0 : static_cast<uint32_t>(target - targets.begin() + 1);
}

uint64_t KeyOf(uint32_t proxy, const Requests &q, size_t i)
{
	return uint64_t{proxy} << 40 | uint64_t{q.op[i]} << 32 | q.request_bytes[i];
}

} // namespace

std::vector<PassedOn> FindPassedOn(const std::vector<Target> &targets, Run *run)
{
	if (!SeveralHosts(*run))
		return {};
	std::map<std::string, uint32_t> proxies; // as PassedOn::proxy, by local end
	for (uint32_t s = 0; s < run->servers.size(); s++)
		if (const uint32_t proxy = run->server_proxies[s] ? TargetOf(*run, targets, s) : 0)
			for (const std::string &end : targets[proxy - 1].local_ends)
				proxies[end] = proxy;
	std::vector<PassedOn> passed_on;
	for (size_t i = 0; i < run->connections.size() && !proxies.empty(); i++) {
		const Connection &c = run->connections[i];
		const auto proxy = proxies.find(ClientEnd(*run, c));
		if (proxy == proxies.end() || c.server >= run->servers.size() ||
		    targets[proxy->second - 1].host == run->server_hosts[c.server])
			continue;
		const std::string &address = run->servers[c.server];
		passed_on.resize(run->connections.size());
		passed_on[i] = {proxy->second,
				AddBehind({address, address, run->server_hosts[c.server]}, run)};
	}
	return passed_on;
}

PassedOnJoin::PassedOnJoin(std::vector<LogBlock> blocks, size_t window, const TimeSpan &part,
			   const std::vector<PassedOn> &passed_on, const std::vector<Target> &targets,
			   const Run &run)
    : WaitingJoin(std::move(blocks), window, &parts_, part, {&passed_on, true}, run.clocks_bound_ns),
      run_(run), passed_on_(passed_on)
{
	for (uint32_t s = 0; s < run.servers.size(); s++)
		proxy_of_server_.push_back(run.server_proxies[s] ? TargetOf(run, targets, s) : 0);
}

void PassedOnJoin::TakeWindow()
{
	const Requests &q = parts_.requests;
	if (q.request_bytes.empty())
		return;
	for (size_t i = q.lead; i < q.size(); i++) {
		const PassedOn &by = passed_on_[q.connection[i]];
		lines_[KeyOf(by.proxy, q, i)].push_back({q.sent_ns[i], q.end_ns[i], by.behind, false});
		waiting_++;
	}
}

size_t PassedOnJoin::Prune()
{
	size_t waiting = 0;
	for (auto line = lines_.begin(); line != lines_.end();) {
		std::erase_if(line->second,
			      [&](const PartSeen &p) { return p.taken || IsPast(p.answered_ns); });
		waiting += line->second.size();
		line = line->second.empty() ? lines_.erase(line) : std::next(line);
	}
	return waiting;
}

// The server that request i was passed on to; 0: not seen.
uint8_t PassedOnJoin::Take(const Requests &q, size_t i)
{
	const uint32_t server = run_.connections[q.connection[i]].server;
	const uint32_t proxy = server < proxy_of_server_.size() ? proxy_of_server_[server] : 0;
	const auto line = proxy ? lines_.find(KeyOf(proxy, q, i)) : lines_.end();
	if (line == lines_.end())
		return 0;
	const uint64_t read = q.read_ns[i] ? q.read_ns[i] : q.sent_ns[i];
	const uint64_t from = read - std::min(read, bound_ns_), until = q.end_ns[i] + bound_ns_;
	auto at = std::ranges::lower_bound(line->second, from, {}, &PartSeen::arrived_ns);
	PartSeen *longest = nullptr;
	for (size_t tries = 0; tries < kTries && at != line->second.end() && at->arrived_ns < until;
	     tries++, at++)
		if (!at->taken && at->answered_ns <= until &&
		    (!longest ||
		     at->answered_ns - at->arrived_ns > longest->answered_ns - longest->arrived_ns))
			longest = &*at;
	if (!longest)
		return 0;
	const uint64_t part_ns = longest->answered_ns - longest->arrived_ns;
	if (until - from > 2 * part_ns + kMostElsewhereNs + 2 * bound_ns_)
		return 0;
	longest->taken = true;
	return longest->behind;
}

void PassedOnJoin::Fill(Requests *q)
{
	q->server_arrival_ns.Truncate(0);
	q->answered_ns.Truncate(0);
	if (q->size() == q->lead || q->request_bytes.empty())
		return;
	Reach(*std::max_element(q->end_ns.begin() + static_cast<ptrdiff_t>(q->lead), q->end_ns.end()));
	for (auto &[key, line] : lines_)
		SortNearly(line.data(), line.data() + line.size(),
			   [](const PartSeen &a, const PartSeen &b) { return a.arrived_ns < b.arrived_ns; });
	std::vector<uint32_t> shortest_first(q->size() - q->lead);
	std::iota(shortest_first.begin(), shortest_first.end(), static_cast<uint32_t>(q->lead));
	std::ranges::stable_sort(shortest_first, {},
				 [&](uint32_t i) { return q->end_ns[i] - q->sent_ns[i]; });
	for (const uint32_t i : shortest_first)
		if (!q->behind[i] && q->connection[i] < run_.connections.size())
			q->behind[i] = Take(*q, i);
}

} // namespace forktail::analysis
