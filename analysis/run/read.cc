// SPDX-License-Identifier: MIT
// Reads recordings into a Run. One pass over each file; manifests first, because they say whether the files'
// clocks are the same clock: CLOCK_MONOTONIC begins with the boot, so another boot id is another time.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <unordered_map>

#include "analysis/json_read.h"
#include "analysis/run.h"
#include "analysis/units.h"

namespace forktail
{

namespace
{

namespace fs = std::filesystem;

struct CloseReader {
	void operator()(ft_reader *r) const { ft_reader_close(r); }
};

// A file being read: its reader, the first block if that has been looked at already, and the tables that
// make its ids the run's.
struct OpenFile {
	std::unique_ptr<ft_reader, CloseReader> reader;
	RecordingFile about;
	Json manifest = Json::object();
	bool has_records = false;

	uint32_t first_connection = 0, first_program = 0;
	size_t first_span = 0, first_cpu_sample = 0;
	std::vector<uint32_t> servers; // index into the manifest's "servers" -> into Run::servers
	std::vector<uint8_t> ops;      // op in the file -> index into Run::ops
	std::vector<uint8_t> behind;   // 1 + index into the manifest's "behind" -> 1 + index into Run::behind
	std::unordered_map<uint32_t, uint32_t> details, series, connections, stacks;
	std::vector<uint32_t> connection_table;			 // of `connections`, by id
	std::map<std::pair<uint32_t, uint64_t>, size_t> threads; // (tid, start) -> index into Run::threads
	uint64_t malformed = 0;
};

std::string FixedText(const char *text, size_t size)
{
	return std::string(text, strnlen(text, size));
}

std::string PayloadText(const ft_block &block)
{
	return std::string(static_cast<const char *>(block.payload), block.bytes);
}

// Calls each(record) for the block's records of type T.
template <typename T, typename Each> void ForRecords(const ft_block &block, Each each)
{
	T record;
	for (uint32_t i = 0; i < block.count; i++) {
		ft_block_record(&block, i, &record, sizeof record);
		each(record);
	}
}

void ReadManifest(OpenFile *f, const std::string &text)
{
	f->about.manifest = text;
	f->manifest = ParseObject(text);
	const Json &m = f->manifest;
	f->about.program = Text(m, "program");
	f->about.version = Text(m, "version");
	f->about.host = Text(m, "host");
	f->about.kernel = Text(m, "kernel");
	f->about.boot_id = Text(m, "boot_id");
	f->about.argv = Texts(m, "argv");
	f->about.start_ns = Whole(m, "start_ns");
}

// Several load generators may talk to the same proxy. A request has a byte for the server behind it.
void UseBehind(OpenFile *f, Run *run)
{
	constexpr size_t most = UINT8_MAX;
	f->behind.push_back(0);
	const Json *list = Member(f->manifest, "behind");
	if (!list || !list->is_array())
		return;
	for (const Json &one : *list) {
		std::string address = Text(one, "address");
		auto known = std::find_if(run->behind.begin(), run->behind.end(),
					  [&](const Behind &b) { return b.address == address; });
		size_t index = static_cast<size_t>(known - run->behind.begin());
		if (known == run->behind.end() && index < most)
			run->behind.push_back({Text(one, "name"), address});
		f->behind.push_back(index < run->behind.size() ? static_cast<uint8_t>(index + 1) : 0);
	}
}

// Takes over what a manifest says about the run as a whole.
void UseManifest(OpenFile *f, Run *run)
{
	const Json &m = f->manifest;
	if (uint64_t min_span_ns = Whole(m, "min_span_ns"))
		run->min_span_ns = std::max(run->min_span_ns, min_span_ns);
	if (const Json *cpus = Member(m, "cpus"))
		run->cpus = static_cast<uint32_t>(cpus->is_array() ? cpus->size() : Whole(m, "cpus"));
	if (const Json *targets = Member(m, "targets"); targets && targets->is_array())
		for (const Json &t : *targets)
			run->targets.push_back({static_cast<uint32_t>(Whole(t, "pid")), Text(t, "comm"),
						Text(t, "cmdline"), Texts(t, "listens")});
	if (const Json *missing = Member(m, "missing"); missing && missing->is_array())
		for (const Json &item : *missing)
			run->missing.push_back({Text(item, "what"), Text(item, "why")});

	if (const Json *devices = Member(m, "block_devices"); devices && devices->is_object())
		for (const auto &[number, name] : devices->items()) {
			unsigned major = 0, minor = 0;
			if (std::sscanf(number.c_str(), "%u:%u", &major, &minor) == 2 && name.is_string())
				run->devices[major << 20 | minor] = name.get<std::string>();
		}

	f->first_program = static_cast<uint32_t>(run->programs.size());
	for (const std::string &program : Texts(m, "programs"))
		run->programs.push_back(program);

	f->first_connection = static_cast<uint32_t>(run->connections.size());
	const Json *infos = Member(m, "server_info");
	std::vector<std::string> servers = Texts(m, "servers");
	for (size_t i = 0; i < servers.size(); i++) {
		auto known = std::find(run->servers.begin(), run->servers.end(), servers[i]);
		f->servers.push_back(static_cast<uint32_t>(known - run->servers.begin()));
		if (known != run->servers.end())
			continue;
		run->servers.push_back(servers[i]);
		run->server_pids.push_back(infos && infos->is_array() && i < infos->size()
					       ? static_cast<uint32_t>(Whole((*infos)[i], "pid"))
					       : 0);
	}
	UseBehind(f, run);
	for (const std::string &op : Texts(m, "ops")) {
		auto known = std::find(run->ops.begin(), run->ops.end(), op);
		f->ops.push_back(static_cast<uint8_t>(known - run->ops.begin()));
		if (known == run->ops.end())
			run->ops.push_back(op);
	}
	if (f->about.program == "forktail-load") {
		Load load;
		load.arrival = Text(m, "arrival");
		load.rate = Number(m, "rate");
		load.pipeline = static_cast<uint32_t>(std::clamp<uint64_t>(Whole(m, "pipeline"), 1, 1 << 20));
		load.first_connection = f->first_connection;
		load.behind = f->behind.size() > 1;
		load.file = static_cast<uint32_t>(run->files.size());
		run->loads.push_back(load);
	}
}

// The run's index of a connection of this file; made up if the log uses it before it was announced. Ids are
// small as a rule, and every request asks: a table answers faster than a map.
uint32_t ConnectionIndex(OpenFile *f, Run *run, uint32_t id)
{
	constexpr uint32_t table_limit = 1 << 20, none = UINT32_MAX;
	if (id < f->connection_table.size() && f->connection_table[id] != none)
		return f->connection_table[id];
	auto [found, is_new] = f->connections.try_emplace(id, static_cast<uint32_t>(run->connections.size()));
	if (is_new)
		run->connections.emplace_back();
	if (id < table_limit) {
		if (id >= f->connection_table.size())
			f->connection_table.resize(id + 1, none);
		f->connection_table[id] = found->second;
	}
	return found->second;
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
	}
	return index;
}

void ReadConnection(OpenFile *f, Run *run, const ft_connection &c)
{
	Connection &connection = run->connections[ConnectionIndex(f, run, c.id)];
	connection.opened_ns = c.opened_ns;
	connection.closed_ns = c.closed_ns;
	connection.thread = c.thread;
	connection.local_port = c.local_port;
	connection.server = ServerIndex(f, run, c.server);
}

void ReadRequests(OpenFile *f, Run *run, const ft_block &block)
{
	Requests &q = run->requests;
	if (block.count == 0 || block.count > FT_REQUEST_BLOCK) {
		f->malformed += block.count;
		return;
	}
	size_t before = q.size();
	ft_request_columns columns = {
	    q.intended_ns.Extend(FT_REQUEST_BLOCK),
	    q.start_ns.Extend(FT_REQUEST_BLOCK),
	    q.end_ns.Extend(FT_REQUEST_BLOCK),
	    q.connection.Extend(FT_REQUEST_BLOCK),
	    q.op.Extend(FT_REQUEST_BLOCK),
	    q.status.Extend(FT_REQUEST_BLOCK),
	    nullptr,
	};
	bool behind = !q.behind.empty() || ft_requests_have_behind(block.payload, block.bytes);
	if (behind && q.behind.empty() && before)
		std::fill_n(q.behind.Extend(before), before, uint8_t{0});
	if (behind)
		columns.behind = q.behind.Extend(FT_REQUEST_BLOCK);
	int decoded = ft_requests_decode(block.payload, block.bytes, block.count, &columns);
	if (decoded < 0)
		f->malformed += block.count;
	// Times that run backwards or lie beyond any clock would poison every sum: such entries are left out.
	size_t kept = before;
	uint32_t last_id = UINT32_MAX, last_index = 0;
	for (size_t i = before; i < before + static_cast<size_t>(std::max(decoded, 0)); i++) {
		if (q.intended_ns[i] > q.start_ns[i] || q.start_ns[i] > q.end_ns[i] || q.end_ns[i] >> 62) {
			f->malformed++;
			continue;
		}
		if (q.connection[i] != last_id) {
			last_id = q.connection[i];
			last_index = ConnectionIndex(f, run, last_id);
		}
		q.intended_ns[kept] = q.intended_ns[i];
		q.start_ns[kept] = q.start_ns[i];
		q.end_ns[kept] = q.end_ns[i];
		q.connection[kept] = last_index;
		q.op[kept] = q.op[i] < f->ops.size() ? f->ops[q.op[i]] : 0;
		q.status[kept] = q.status[i];
		if (behind)
			q.behind[kept] = q.behind[i] < f->behind.size() ? f->behind[q.behind[i]] : 0;
		kept++;
	}
	q.intended_ns.Truncate(kept);
	q.start_ns.Truncate(kept);
	q.end_ns.Truncate(kept);
	q.connection.Truncate(kept);
	q.op.Truncate(kept);
	q.status.Truncate(kept);
	q.behind.Truncate(kept);
}

void ReadThread(OpenFile *f, Run *run, const ft_thread &t)
{
	auto [found, is_new] = f->threads.try_emplace({t.tid, t.start_ns}, run->threads.size());
	if (is_new)
		run->threads.emplace_back();
	Thread &thread = run->threads[found->second];
	thread.tid = t.tid;
	thread.tgid = t.tgid;
	thread.parent_tgid = t.parent_tgid;
	thread.flags = t.flags;
	thread.start_ns = t.start_ns;
	thread.end_ns = t.end_ns;
	thread.comm = FixedText(t.comm, sizeof t.comm);
	thread.role = FixedText(t.role, sizeof t.role);
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
	run->series.push_back(std::move(s));
}

void ReadCost(Run *run, const Json &j)
{
	Cost cost;
	cost.known = true;
	cost.bpf_ns = Whole(j, "bpf_ns");
	cost.bpf_ns_is_estimate = Flag(j, "bpf_ns_is_estimate");
	cost.recorder_cpu_ns = Whole(j, "recorder_cpu_ns");
	cost.recorder_rss_bytes = Whole(j, "recorder_rss_bytes");
	if (const Json *programs = Member(j, "programs"); programs && programs->is_array())
		for (const Json &p : *programs)
			cost.programs.push_back({Text(p, "name"), Whole(p, "runs"), Number(p, "ns_per_run"),
						 Whole(p, "total_ns")});
	run->cost = std::move(cost);
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

// Of the load generator's file that is being read, whose load is the last.
void ReadLoadStart(Run *run, const Json &j)
{
	LoadStart start = {static_cast<uint32_t>(run->loads.size() - 1), Whole(j, "t_ns"), {}};
	if (const Json *tids = Member(j, "tids"); tids && tids->is_array())
		for (const Json &tid : *tids)
			start.tids.push_back(tid.is_number_unsigned() ? tid.get<uint32_t>() : 0);
	run->load_starts.push_back(std::move(start));
}

void ReadNote(Run *run, const Json &j)
{
	if (Text(j, "kind") == "cpu-quota")
		run->quotas.push_back({Whole(j, "t_ns"), static_cast<uint32_t>(Whole(j, "pid")),
				       Text(j, "cgroup"), Whole(j, "quota_us"), Whole(j, "period_us")});
	else
		run->reports.push_back(ReportOf(j));
	if (Text(j, "kind") == "load-start" && !run->loads.empty())
		ReadLoadStart(run, j);
}

void ReadBlock(OpenFile *f, Run *run, const ft_block &block)
{
	switch (block.kind) {
	case FT_BLOCK_THREAD:
		ForRecords<ft_thread>(block, [&](const ft_thread &t) { ReadThread(f, run, t); });
		break;
	case FT_BLOCK_SPAN:
		ForRecords<ft_span>(block, [&](const ft_span &s) { run->spans.push_back(s); });
		break;
	case FT_BLOCK_TALLY:
		ForRecords<ft_tally>(block, [&](const ft_tally &t) { run->tallies.push_back(t); });
		break;
	case FT_BLOCK_IO:
		ForRecords<ft_io>(block, [&](const ft_io &io) { run->ios.push_back(io); });
		break;
	case FT_BLOCK_WRITES:
		ForRecords<ft_writes>(block, [&](const ft_writes &w) { run->writes.push_back(w); });
		break;
	case FT_BLOCK_SAMPLE:
		ForRecords<ft_sample>(block, [&](const ft_sample &s) {
			auto found = f->series.find(s.series);
			if (found != f->series.end())
				run->series[found->second].samples.push_back({s.t_ns, s.value});
		});
		break;
	case FT_BLOCK_DROP:
		ForRecords<ft_drop>(block, [&](ft_drop d) {
			if (d.source == FT_DROP_MISSED)
				d.detail += f->first_program;
			run->drops.push_back(d);
		});
		break;
	case FT_BLOCK_CLOCK:
		ForRecords<ft_clock>(block, [&](const ft_clock &c) { run->clocks.push_back(c); });
		break;
	case FT_BLOCK_CONNECTION:
		ForRecords<ft_connection>(block, [&](const ft_connection &c) { ReadConnection(f, run, c); });
		break;
	case FT_BLOCK_REQUEST:
		ReadRequests(f, run, block);
		break;
	case FT_BLOCK_DETAIL:
		ReadDetail(f, run, ParseObject(PayloadText(block)));
		break;
	case FT_BLOCK_CPU_SAMPLE:
		ForRecords<ft_cpu_sample>(block,
					  [&](const ft_cpu_sample &s) { run->cpu_samples.push_back(s); });
		break;
	case FT_BLOCK_STACK:
		ReadStack(f, run, ParseObject(PayloadText(block)));
		break;
	case FT_BLOCK_SERIES:
		ReadSeries(f, run, ParseObject(PayloadText(block)));
		break;
	case FT_BLOCK_COST:
		ReadCost(run, ParseObject(PayloadText(block)));
		break;
	case FT_BLOCK_NOTE:
		ReadNote(run, ParseObject(PayloadText(block)));
		break;
	case FT_BLOCK_SUMMARY:
		f->about.summary = PayloadText(block);
		break;
	default:
		break; // histograms repeat what the log says exactly; kinds of a newer writer are skipped
	}
}

std::string Describe(const ft_damage &d)
{
	std::string text;
	if (d.gaps)
		text += FormatBytes(d.bytes_skipped) + " in " + Plural(d.gaps, "place", "places") +
			" could not be read";
	if (d.blocks_missing)
		text += (text.empty() ? "" : ", ") + Plural(d.blocks_missing, "block is", "blocks are") +
			" missing";
	if (d.no_trailer)
		text += std::string(text.empty() ? "" : ", ") +
			"it has no end: its writer was killed, is still writing, or the file was cut";
	return text;
}

void FinishFile(OpenFile *f, Run *run)
{
	for (size_t i = f->first_span; i < run->spans.size(); i++) {
		uint32_t &detail = run->spans[i].detail;
		auto found = detail ? f->details.find(detail) : f->details.end();
		detail = found == f->details.end() ? 0 : found->second;
	}
	for (size_t i = f->first_cpu_sample; i < run->cpu_samples.size(); i++) {
		auto found = f->stacks.find(run->cpu_samples[i].stack);
		run->cpu_samples[i].stack = found == f->stacks.end() ? 0 : found->second;
	}
	if (!run->loads.empty() && run->loads.back().file == run->files.size())
		run->loads.back().connection_count =
		    static_cast<uint32_t>(run->connections.size()) - f->first_connection;

	Json summary = ParseObject(f->about.summary);
	f->about.end_ns = Whole(summary, "end_ns");
	f->about.end_reason = Text(summary, "reason");
	ft_reader_damage(f->reader.get(), &f->about.damage);
	std::string name = fs::path(f->about.path).filename().string();
	if (std::string damage = Describe(f->about.damage); !damage.empty())
		run->warnings.push_back(name + ": " + damage);
	if (uint64_t slow_ns = Whole(ParseObject(f->about.manifest), "log_slow_ns"); slow_ns)
		run->warnings.push_back(
		    name + ": it was written with --log slow:, so only requests of " +
		    std::to_string(slow_ns / 1000) +
		    " us or more and failed ones are in it, and the percentiles are theirs");
	if (f->malformed)
		run->warnings.push_back(name + ": " + Plural(f->malformed, "request", "requests") +
					" of the log made no sense and were left out");
}

void ReadRunInfo(const std::string &path, Run *run)
{
	std::ifstream in(path, std::ios::binary);
	if (!in)
		return;
	std::ostringstream text;
	text << in.rdbuf();
	Json j = Json::parse(text.str(), nullptr, false);
	if (!j.is_object()) {
		run->warnings.push_back("run.json is not a JSON object and was left out");
		return;
	}
	run->info.present = true;
	run->info.text = text.str();
	run->info.host = Text(j, "host");
	run->info.kernel = Text(j, "kernel");
	run->info.versions = TextMap(j, "versions");
	run->info.commands = Texts(j, "commands");
	run->info.redis_config = TextMap(j, "redis_config");
	run->info.rss_bytes = Whole(j, "rss_bytes");
	if (const Json *reports = Member(j, "server_reports"); reports && reports->is_array())
		for (const Json &report : *reports)
			run->reports.push_back(ReportOf(report));
}

// The recordings a path names, by name. False: *error says what is wrong with it.
bool FindRecordings(const std::string &path, std::vector<std::string> *files, std::string *error)
{
	std::error_code ec;
	fs::file_status status = fs::status(path, ec);
	if (ec || !fs::exists(status)) {
		*error = "there is no run at " + path +
			 (ec && ec != std::errc::no_such_file_or_directory ? ": " + ec.message() : "");
		return false;
	}
	if (!fs::is_directory(status)) {
		files->push_back(path);
		return true;
	}
	fs::directory_iterator entries(path, ec);
	if (ec) {
		*error = "can't list " + path + ": " + ec.message();
		return false;
	}
	for (const fs::directory_entry &entry : entries)
		if (entry.path().extension() == ".forktail" && !entry.is_directory(ec))
			files->push_back(entry.path().string());
	std::sort(files->begin(), files->end());
	if (files->empty()) {
		*error = path + " holds no recording (*.forktail): is it a run directory?";
		return false;
	}
	return true;
}

// Decides whose boot counts: the load generator's, since without requests there is less to explain.
void DecideBoot(std::vector<OpenFile> *files, Run *run)
{
	const OpenFile *reference = nullptr;
	for (const OpenFile &f : *files)
		if (!f.about.boot_id.empty() && (!reference || (reference->about.program != "forktail-load" &&
								f.about.program == "forktail-load")))
			reference = &f;
	if (!reference)
		return;
	for (OpenFile &f : *files) {
		if (f.about.boot_id.empty() || f.about.boot_id == reference->about.boot_id)
			continue;
		f.about.overlaid = false;
		run->warnings.push_back(
		    fs::path(f.about.path).filename().string() + " and " +
		    fs::path(reference->about.path).filename().string() +
		    " come from different boots (boot ids differ): their times can't be laid "
		    "over each other, so " +
		    fs::path(f.about.path).filename().string() + " is left out");
	}
}

} // namespace

bool LoadRun(const std::string &path, Run *run, std::string *error)
{
	std::vector<std::string> paths;
	if (!FindRecordings(path, &paths, error))
		return false;
	run->path = path;
	run->details.emplace_back();
	run->stacks.emplace_back();

	std::vector<OpenFile> files;
	for (const std::string &file_path : paths) {
		OpenFile f;
		f.about.path = file_path;
		char message[512];
		ft_reader *reader = nullptr;
		if (ft_reader_open(&reader, file_path.c_str(), message, sizeof message)) {
			if (paths.size() == 1) {
				*error = message;
				return false;
			}
			*error = message; // the last one counts if none can be read
			run->warnings.push_back(message);
			continue;
		}
		f.reader.reset(reader);
		// The manifest is the first block, unless the file's beginning is damaged.
		ft_block block;
		if (ft_reader_next(reader, &block) == 1 && block.kind == FT_BLOCK_MANIFEST)
			ReadManifest(&f, PayloadText(block));
		else {
			run->warnings.push_back(
			    fs::path(file_path).filename().string() +
			    ": its manifest is lost, so what was recorded has to be guessed");
			ft_reader_close(f.reader.release());
			if (ft_reader_open(&reader, file_path.c_str(), message, sizeof message)) {
				*error = message;
				return false;
			}
			f.reader.reset(reader);
		}
		files.push_back(std::move(f));
	}
	if (files.empty())
		return false;

	DecideBoot(&files, run);
	for (OpenFile &f : files) {
		if (f.about.overlaid) {
			UseManifest(&f, run);
			f.first_span = run->spans.size();
			f.first_cpu_sample = run->cpu_samples.size();
			ft_block block;
			while (ft_reader_next(f.reader.get(), &block) == 1)
				ReadBlock(&f, run, block);
			FinishFile(&f, run);
		}
		f.reader.reset();
		run->files.push_back(f.about);
	}
	std::error_code ec;
	if (fs::is_directory(path, ec))
		ReadRunInfo((fs::path(path) / "run.json").string(), run);
	IndexRun(run);
	return true;
}

} // namespace forktail
