// SPDX-License-Identifier: MIT
// What blocks say is taken over record by record.
#include "read_blocks.h"

#include <algorithm>

#include "analysis/outside.h"
#include "map_times.h"

namespace forktail
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

// Of several servers, one that the manifest does not have joined later. It must not pass for another.
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
		run->server_hosts.push_back("");
	}
	return index;
}

void ReadConnection(OpenFile *f, Run *run, const ft_connection &c)
{
	Connection &connection = run->connections[MakeConnectionIndex(f, run, c.id)];
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
}

void ReadThread(OpenFile *f, Run *run, const ft_thread &t)
{
	auto [found, is_new] = f->threads.try_emplace({t.tid, t.start_ns}, run->threads.size());
	if (is_new)
		run->threads.emplace_back();
	Thread &thread = run->threads[found->second];
	thread.tid = f->space.Id(t.tid);
	thread.tgid = f->space.Id(t.tgid);
	thread.parent_tgid = f->space.Id(t.parent_tgid);
	thread.announced = true;
	thread.flags = t.flags;
	thread.start_ns = t.start_ns;
	thread.end_ns = t.end_ns;
	thread.comm = VisibleName(t.comm);
	thread.role = VisibleName(t.role);
	thread.file = static_cast<uint32_t>(run->files.size());
}

void ReadDetail(OpenFile *f, Run *run, const Json &j)
{
	f->details[static_cast<uint32_t>(Whole(j, "id"))] = static_cast<uint32_t>(run->details.size());
	run->details.push_back({Text(j, "name"), Texts(j, "stack")});
}

void ReadStack(OpenFile *f, Run *run, const Json &j)
{
	Stack stack;
	stack.program = Text(j, "program");
	if (const Json *frames = Member(j, "frames"); frames && frames->is_array())
		for (const Json &frame : *frames)
			if (frame.is_array() && frame.size() == 2)
				stack.frames.push_back({AsText(frame[0]), AsText(frame[1])});
	stack.kernel = Texts(j, "kernel");
	f->stacks[static_cast<uint32_t>(Whole(j, "id"))] = static_cast<uint32_t>(run->stacks.size());
	run->stacks.push_back(std::move(stack));
}

void ReadSeries(OpenFile *f, Run *run, const Json &j)
{
	f->series[static_cast<uint32_t>(Whole(j, "id"))] = static_cast<uint32_t>(run->series.size());
	Series s;
	s.name = Text(j, "name");
	s.unit = Text(j, "unit");
	s.labels = TextMap(j, "labels");
	if (SeveralHosts(*run))
		s.labels["host"] = f->about.host;
	run->series.push_back(std::move(s));
}

void ReadCost(Run *run, const Json &j)
{
	Cost cost;
	cost.known = true;
	cost.bpf_ns = Whole(j, "bpf_ns");
	cost.bpf_ns_is_estimate = Flag(j, "bpf_ns_is_estimate");
	cost.recorder_cpu_ns = Whole(j, "recorder_cpu_ns");
	cost.load_cpu_ns = Whole(j, "load_cpu_ns");
	cost.recorder_rss_bytes = Whole(j, "recorder_rss_bytes");
	if (const Json *programs = Member(j, "programs"); programs && programs->is_array())
		for (const Json &p : *programs)
			cost.programs.push_back({Text(p, "name"), Whole(p, "runs"), Number(p, "ns_per_run"),
						 Whole(p, "total_ns")});
	run->cost = std::move(cost);
}

// The two halves of a word that are thread ids.
uint64_t Ids(const IdSpace &space, uint64_t word)
{
	return space.Id(static_cast<uint32_t>(word)) | uint64_t{space.Id(static_cast<uint32_t>(word >> 32))}
							   << 32;
}

// Which arguments of a span are ids: docs/recording-format.md.
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

// Of the load generator's file that is being read, whose load is the last.
void ReadLoadStart(const OpenFile *f, Run *run, const Json &j, uint64_t t_ns)
{
	LoadStart start = {static_cast<uint32_t>(run->loads.size() - 1), t_ns, {}};
	if (const Json *tids = Member(j, "tids"); tids && tids->is_array())
		for (const Json &tid : *tids)
			start.tids.push_back(f->space.Id(tid.is_number_unsigned() ? tid.get<uint32_t>() : 0));
	run->load_starts.push_back(std::move(start));
}

void ReadNote(const OpenFile *f, Run *run, const Json &j)
{
	const uint64_t t_ns = f->clock.Map(Whole(j, "t_ns"));
	const uint32_t pid = f->space.Id(static_cast<uint32_t>(Whole(j, "pid")));
	if (Text(j, "kind") == "cpu-quota")
		run->quotas.push_back(
		    {t_ns, pid, Text(j, "cgroup"), Whole(j, "quota_us"), Whole(j, "period_us")});
	else if (Text(j, "kind") == "frozen")
		run->frozen.push_back({t_ns, pid, Text(j, "cgroup"), Text(j, "cgroup_of")});
	else if (Text(j, "kind") == "target-ended")
		run->ended.push_back({t_ns, pid, Text(j, "comm")});
	else if (Text(j, "kind") == "tracer")
		run->tracers[pid] = Text(j, "comm");
	else {
		run->reports.push_back(ReportOf(j));
		run->reports.back().t_ns = t_ns;
	}
	if (Text(j, "kind") == "load-start" && !run->loads.empty())
		ReadLoadStart(f, run, j, t_ns);
}

} // namespace

uint32_t MakeConnectionIndex(OpenFile *f, Run *run, uint32_t id)
{
	constexpr uint32_t table_limit = 1 << 20;
	auto [found, is_new] = f->connections.try_emplace(id, static_cast<uint32_t>(run->connections.size()));
	if (is_new)
		run->connections.emplace_back();
	if (id < table_limit) {
		if (id >= f->connection_table.size())
			f->connection_table.resize(id + 1, kNoConnection);
		f->connection_table[id] = found->second;
	}
	return found->second;
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

std::string PayloadText(const ft_block &block)
{
	return std::string(static_cast<const char *>(block.payload), block.bytes);
}

ServerReport ReportOf(const Json &j)
{
	ServerReport report;
	report.t_ns = Whole(j, "t_ns");
	report.kind = Text(j, "kind");
	report.latest_fork_usec = Whole(j, "latest_fork_usec");
	report.text = j.dump(-1, ' ', false, Json::error_handler_t::replace);
	return report;
}

void ReadBlock(OpenFile *f, Run *run, const ft_block &block)
{
	const IdSpace &space = f->space;
	switch (block.kind) {
	case FT_BLOCK_THREAD:
		ForRecords<ft_thread>(f, block, [&](const ft_thread &t) { ReadThread(f, run, t); });
		break;
	case FT_BLOCK_SPAN:
		ForRecords<ft_span>(f, block,
				    [&](const ft_span &s) { run->spans.push_back(InSpace(space, s)); });
		break;
	case FT_BLOCK_TALLY:
		ForRecords<ft_tally>(f, block, [&](ft_tally t) {
			t.tid = space.Id(t.tid);
			run->tallies.push_back(t);
		});
		break;
	case FT_BLOCK_IO:
		ForRecords<ft_io>(f, block, [&](ft_io io) {
			io.tid = space.Id(io.tid);
			io.dev = DeviceOf(space, io.dev, run);
			run->ios.push_back(io);
		});
		break;
	case FT_BLOCK_TURN:
		ForRecords<ft_turn>(f, block, [&](ft_turn t) {
			t.tid = space.Id(t.tid);
			t.cpu = space.Cpu(t.cpu);
			run->turns.push_back(t);
		});
		break;
	case FT_BLOCK_LOOP:
		ForRecords<ft_loop>(f, block, [&](ft_loop l) {
			l.tid = space.Id(l.tid);
			l.tgid = space.Id(l.tgid);
			run->loops.push_back(l);
		});
		break;
	case FT_BLOCK_SOCKET:
		ForRecords<ft_socket>(f, block, [&](ft_socket s) {
			s.tgid = space.Id(s.tgid);
			s.inode = space.Inode(s.inode);
			s.peer_inode = space.Inode(s.peer_inode);
			run->sockets.push_back(s);
		});
		break;
	case FT_BLOCK_WRITES:
		ForRecords<ft_writes>(f, block, [&](ft_writes w) {
			w.tgid = space.Id(w.tgid);
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
			// Another host's wall clock is another clock.
			if (f->clock.same())
				run->clocks.push_back(c);
		});
		break;
	case FT_BLOCK_CONNECTION:
		ForRecords<ft_connection>(f, block,
					  [&](const ft_connection &c) { ReadConnection(f, run, c); });
		break;
	case FT_BLOCK_DETAIL:
		ReadDetail(f, run, ParseVisibleObject(PayloadText(block)));
		break;
	case FT_BLOCK_CPU_SAMPLE:
		ForRecords<ft_cpu_sample>(f, block, [&](ft_cpu_sample s) {
			s.tid = space.Id(s.tid);
			s.cpu = space.Cpu(s.cpu);
			run->cpu_samples.push_back(s);
		});
		break;
	case FT_BLOCK_STACK:
		ReadStack(f, run, ParseVisibleObject(PayloadText(block)));
		break;
	case FT_BLOCK_SERIES:
		ReadSeries(f, run, ParseVisibleObject(PayloadText(block)));
		break;
	case FT_BLOCK_COST:
		ReadCost(run, ParseVisibleObject(PayloadText(block)));
		break;
	case FT_BLOCK_NOTE:
		ReadNote(f, run, ParseVisibleObject(PayloadText(block)));
		break;
	case FT_BLOCK_SUMMARY:
		f->about.summary = PayloadText(block);
		break;
	default:
		break; // requests are the log's (log_reader.h), histograms repeat what the log says exactly;
		       // kinds of a newer writer are skipped
	}
}

} // namespace forktail
