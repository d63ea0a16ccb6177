// SPDX-License-Identifier: MIT
// The exporter of tables, independent of their file format.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "analysis/blame.h"
#include "analysis/exports.h"
#include "analysis/run.h"
#include "analysis/timeline.h"
#include "common/json.h"
#include "tables_filler.h"

namespace forktail::analysis::exports
{

namespace
{

// The hash uses only whole numbers and texts from the recordings, so that a run keeps its id wherever it is
// stored.
uint64_t Hash(const std::string &text, uint64_t hash)
{
	for (unsigned char c : text) // FNV-1a
		hash = (hash ^ c) * 1099511628211u;
	return (hash ^ 0xff) * 1099511628211u;
}

// A sink that passes on only some of the tables.
class Chosen : public TableSink
{
public:
	Chosen(std::unique_ptr<TableSink> sink, const std::vector<std::string> &names)
	    : sink_(std::move(sink)), names_(names)
	{
	}
	bool Open(const std::vector<TableKind> &tables) override
	{
		std::vector<TableKind> kinds;
		for (const TableKind &kind : tables) {
			const bool wanted =
			    std::find(names_.begin(), names_.end(), kind.name) != names_.end();
			at_.push_back(wanted ? kinds.size() : SIZE_MAX);
			if (wanted)
				kinds.push_back(kind);
		}
		return sink_->Open(kinds) || Fail(sink_->error());
	}
	bool Write(size_t table, const Batch &batch) override
	{
		return at_[table] == SIZE_MAX || sink_->Write(at_[table], batch) || Fail(sink_->error());
	}
	bool Close() override { return sink_->Close() || Fail(sink_->error()); }

private:
	std::unique_ptr<TableSink> sink_;
	std::vector<std::string> names_;
	std::vector<size_t> at_;
};

class TablesExporter : public Exporter
{
public:
	TablesExporter(std::unique_ptr<TableSink> sink, Wants wants)
	    : sink_(std::move(sink)), filler_(sink_.get()), wants_(wants)
	{
	}
	Wants wants() const override { return wants_; }
	bool Blamed(const Run &run, const SlowRequest &request, const Part *parts) override
	{
		return Checked(Opened(run) && filler_.AddSlow(run, request, parts));
	}
	bool Begin(const Explanation &e) override { return Checked(Opened(e.run)); }
	bool Stretch(const Explanation &, const Run &run, uint64_t from_ns, uint64_t to_ns) override
	{
		return Checked(filler_.AddStretch(run, from_ns, to_ns));
	}
	bool Window(const Explanation &e, const Run &run) override
	{
		return Checked(filler_.AddWindow(run, e.blame.threshold_ns));
	}
	bool End(const Explanation &e) override
	{
		return Checked(filler_.AddFacts(e) && filler_.Flush() && sink_->Close());
	}

private:
	bool Opened(const Run &run) { return filler_.opened() || filler_.Open(run, RunId(run)); }
	bool Checked(bool ok) { return ok || Fail(sink_->error()); }

	std::unique_ptr<TableSink> sink_;
	Filler filler_;
	Wants wants_;
};

} // namespace

std::string RunId(const Run &run)
{
	std::vector<std::string> manifests;
	for (const RecordingFile &f : run.files)
		manifests.push_back(f.manifest.bytes);
	std::sort(manifests.begin(), manifests.end());
	uint64_t hash = 14695981039346656037u;
	for (const std::string &m : manifests)
		hash = Hash(m, hash);
	char text[17];
	snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
	return text;
}

std::unique_ptr<Exporter> MakeTables(std::unique_ptr<TableSink> sink, const std::vector<std::string> &tables)
{
	if (tables.empty())
		return std::make_unique<TablesExporter>(std::move(sink), Exporter::Wants{true, true, true});
	auto any = [&](const std::vector<TableId> &of) {
		return std::any_of(of.begin(), of.end(), [&](TableId t) {
			return std::find(tables.begin(), tables.end(), Tables()[t].name) != tables.end();
		});
	};
	const Exporter::Wants wants = {any({kSlow, kParts}),
				       any({kSpans, kTallies, kIterations, kSamples, kStacks, kDisk}),
				       any({kRequests})};
	return std::make_unique<TablesExporter>(std::make_unique<Chosen>(std::move(sink), tables), wants);
}

Batch::Batch(const TableKind &kind)
{
	for (const TableColumn &c : kind.columns)
		columns_.push_back({c.type, {}, {}, {}, {}});
}

void Batch::SetNames(size_t column, std::vector<std::string> names)
{
	columns_[column].names = std::move(names);
}

void Batch::Clear()
{
	for (Values &v : columns_) {
		v.numbers.clear();
		v.texts.clear();
		v.known.clear();
	}
	rows_ = 0;
}

Batch &Batch::Row()
{
	rows_++;
	at_ = 0;
	return Number(0, true);
}

Batch &Batch::Double(double value)
{
	return Number(std::bit_cast<int64_t>(value), true);
}

Batch &Batch::Name(size_t index)
{
	const bool known = index < columns_[at_].names.size();
	return Number(known ? static_cast<int64_t>(index) : 0, known);
}

Batch &Batch::Text(std::string value)
{
	return TextOr(true, std::move(value));
}

Batch &Batch::TextOr(bool known, std::string value)
{
	Values &v = columns_[at_++];
	v.texts.push_back(std::move(value));
	v.known.push_back(known);
	return *this;
}

// The columns of all tables. Their names are an interface: new ones are added at a table's end, and none is
// changed. *_ns is CLOCK_MONOTONIC of the host or a duration; *_time is the time of day in UTC, if known.

namespace
{

constexpr ColumnType kInt = ColumnType::Int, kSmall = ColumnType::Small, kDouble = ColumnType::Double,
		     kBool = ColumnType::Bool, kTime = ColumnType::Time, kName = ColumnType::Name,
		     kText = ColumnType::Text;
constexpr TableColumn kRun = {"run_id", kName};

std::vector<TableKind> RequestTables()
{
	return {
	    {"runs",
	     {kRun,
	      {"run", kText},
	      {"host", kText},
	      {"kernel", kText},
	      {"forktail", kText},
	      {"start_ns", kInt},
	      {"start_time", kTime},
	      {"first_ns", kInt},
	      {"measured_ns", kInt},
	      {"from_iterations", kBool},
	      {"requests", kInt},
	      {"errors", kInt},
	      {"threshold_ns", kInt},
	      {"slow_requests", kInt},
	      {"slow_ns", kInt},
	      {"episodes", kInt},
	      {"p50_ns", kInt},
	      {"p90_ns", kInt},
	      {"p99_ns", kInt},
	      {"p99_9_ns", kInt},
	      {"p99_99_ns", kInt},
	      {"max_ns", kInt},
	      {"mean_ns", kDouble},
	      {"drops", kInt},
	      {"unknown_ns", kInt},
	      {"arrival", kText},
	      {"rate_per_s", kDouble},
	      {"connections", kInt},
	      {"server", kText},
	      {"recorder_versions", kText},
	      {"settings", kText},
	      {"server_version", kText},
	      {"thp", kText}}},
	    {"requests",
	     {kRun,
	      {"request", kInt},
	      {"due_ns", kInt},
	      {"due_time", kTime},
	      {"sent_ns", kInt},
	      {"end_ns", kInt},
	      {"arrived_ns", kInt},
	      {"latency_ns", kInt},
	      {"connection", kSmall},
	      {"op", kName},
	      {"status", kName},
	      {"behind", kName},
	      {"slow", kBool},
	      {"server_arrived_ns", kInt},
	      {"read_ns", kInt},
	      {"answered_ns", kInt},
	      {"written_ns", kInt},
	      {"request_bytes", kInt},
	      {"answer_bytes", kInt}}},
	    {"slow",
	     {kRun,
	      {"request", kInt},
	      {"due_ns", kInt},
	      {"due_time", kTime},
	      {"sent_ns", kInt},
	      {"end_ns", kInt},
	      {"latency_ns", kInt},
	      {"since_ns", kInt},
	      {"unread_ns", kInt},
	      {"connection", kSmall},
	      {"op", kName},
	      {"status", kName},
	      {"hop", kSmall},
	      {"parts", kSmall},
	      {"to_server_ns", kInt},
	      {"unread_at_server_ns", kInt},
	      {"to_client_ns", kInt}}},
	    {"parts",
	     {kRun,
	      {"request", kInt},
	      {"due_ns", kInt},
	      {"due_time", kTime},
	      {"latency_ns", kInt},
	      {"connection", kSmall},
	      {"op", kName},
	      {"cause", kName},
	      {"hop", kSmall},
	      {"direct_ns", kInt},
	      {"queued_ns", kInt},
	      {"total_ns", kInt}}},
	    {"causes",
	     {kRun,
	      {"cause", kText},
	      {"requests", kInt},
	      {"direct_ns", kInt},
	      {"queued_ns", kInt},
	      {"total_ns", kInt},
	      {"share", kDouble},
	      {"without_p99_ns", kInt},
	      {"without_p99_9_ns", kInt},
	      {"without_p99_99_ns", kInt},
	      {"without_max_ns", kInt}}},
	};
}

std::vector<TableKind> ThreadTables()
{
	return {
	    {"spans",
	     {kRun,
	      {"tid", kSmall},
	      {"thread", kSmall},
	      {"start_ns", kInt},
	      {"start_time", kTime},
	      {"duration_ns", kInt},
	      {"cause", kName},
	      {"wait_cause", kName},
	      {"on_cpu_ns", kInt},
	      {"runnable_ns", kInt},
	      {"blocked_ns", kInt},
	      {"cpu", kSmall},
	      {"depth", kSmall},
	      {"off_cpu", kBool},
	      {"unfinished", kBool},
	      {"syscall", kText},
	      {"detail", kText},
	      {"stack", kText},
	      {"arg0", kInt},
	      {"arg1", kInt}}},
	    {"tallies",
	     {kRun,
	      {"tid", kSmall},
	      {"thread", kSmall},
	      {"start_ns", kInt},
	      {"start_time", kTime},
	      {"end_ns", kInt},
	      {"cause", kName},
	      {"total_ns", kInt},
	      {"max_ns", kInt},
	      {"count", kInt}}},
	    {"iterations",
	     {kRun,
	      {"tid", kSmall},
	      {"thread", kSmall},
	      {"start_ns", kInt},
	      {"start_time", kTime},
	      {"duration_ns", kInt},
	      {"sampled", kBool},
	      {"arg0", kInt},
	      {"arg1", kInt}}},
	    {"episodes",
	     {kRun,
	      {"episode", kSmall},
	      {"start_ns", kInt},
	      {"start_time", kTime},
	      {"end_ns", kInt},
	      {"since_ns", kInt},
	      {"requests", kInt},
	      {"worst_ns", kInt},
	      {"time_ns", kInt},
	      {"cause", kText},
	      {"share", kDouble}}},
	    {"episode_causes",
	     {kRun,
	      {"episode", kSmall},
	      {"cause", kText},
	      {"hop", kSmall},
	      {"time_ns", kInt},
	      {"share", kDouble},
	      {"thread_ns", kInt}}},
	    {"evidence", {kRun, {"episode", kSmall}, {"position", kSmall}, {"sentence", kText}}},
	    {"metrics",
	     {kRun,
	      {"metric", kText},
	      {"unit", kText},
	      {"labels", kText},
	      {"t_ns", kInt},
	      {"time", kTime},
	      {"value", kDouble}}},
	    {"samples",
	     {kRun,
	      {"tid", kSmall},
	      {"t_ns", kInt},
	      {"time", kTime},
	      {"period_ns", kInt},
	      {"cpu", kSmall},
	      {"cause", kName},
	      {"activity", kText},
	      {"stack", kSmall},
	      {"in_kernel", kBool},
	      {"syscall", kText}}},
	    {"stacks", {kRun, {"stack", kSmall}, {"program", kText}, {"frames", kText}, {"kernel", kText}}},
	    {"disk",
	     {kRun,
	      {"start_ns", kInt},
	      {"start_time", kTime},
	      {"duration_ns", kInt},
	      {"device", kText},
	      {"sector", kInt},
	      {"bytes", kInt},
	      {"operation", kName},
	      {"error", kBool},
	      {"tid", kSmall},
	      {"comm", kText}}},
	    {"connections",
	     {kRun,
	      {"connection", kSmall},
	      {"server", kText},
	      {"opened_ns", kInt},
	      {"opened_time", kTime},
	      {"closed_ns", kInt},
	      {"load_thread", kSmall},
	      {"local_port", kSmall},
	      {"inode", kInt},
	      {"reopened", kSmall},
	      {"client", kText}}},
	    {"threads",
	     {kRun,
	      {"thread", kSmall},
	      {"tid", kSmall},
	      {"pid", kSmall},
	      {"comm", kText},
	      {"role", kText},
	      {"start_ns", kInt},
	      {"start_time", kTime},
	      {"end_ns", kInt},
	      {"wall_ns", kInt},
	      {"accounted_ns", kInt},
	      {"serving", kBool},
	      {"client", kBool},
	      {"child", kBool},
	      {"on_host", kText},
	      {"own_tid", kSmall},
	      {"own_pid", kSmall}}},
	    {"hops",
	     {kRun,
	      {"hop", kSmall},
	      {"name", kText},
	      {"comm", kText},
	      {"pid", kSmall},
	      {"tid", kSmall},
	      {"address", kText},
	      {"role", kText},
	      {"served", kInt},
	      {"requests", kInt},
	      {"time_ns", kInt}}},
	    {"drops",
	     {kRun,
	      {"start_ns", kInt},
	      {"start_time", kTime},
	      {"end_ns", kInt},
	      {"count", kInt},
	      {"source", kSmall},
	      {"detail", kSmall}}},
	    {"marks", {kRun, {"t_ns", kInt}, {"time", kTime}, {"text", kText}}},
	};
}

} // namespace

const std::vector<TableKind> &Tables()
{
	static const std::vector<TableKind> tables = [] {
		std::vector<TableKind> all = RequestTables(), of_threads = ThreadTables();
		for (TableKind &t : of_threads)
			all.push_back(std::move(t));
		return all;
	}();
	return tables;
}

// What the rows of all tables share: the batches, and the texts of their numbered names.

namespace
{

// Rows of a batch: enough that the batch's overhead is negligible, few enough for a CPU cache.
constexpr size_t kBatchRows = 1 << 15;

std::vector<std::string> CauseNames()
{
	std::vector<std::string> names;
	for (int c = 0; c < kTimelineCauses; c++)
		names.push_back(AccountName(static_cast<Cause>(c)));
	return names;
}

std::vector<std::string> RequestCauseNames()
{
	std::vector<std::string> names;
	for (int c = 0; c < kCauses; c++)
		names.push_back(CauseName(static_cast<Cause>(c)));
	return names;
}

} // namespace

Filler::Filler(TableSink *sink) : sink_(sink)
{
	for (const TableKind &kind : Tables())
		batches_.emplace_back(kind);
}

void Filler::SetNames(TableId table, const char *column, const std::vector<std::string> &names)
{
	const std::vector<TableColumn> &columns = Tables()[table].columns;
	for (size_t c = 0; c < columns.size(); c++)
		if (columns[c].name == std::string(column))
			batches_[table].SetNames(c, names);
}

bool Filler::Open(const Run &run, const std::string &run_id)
{
	opened_ = true;
	clock_ = WallClock(run);
	for (Batch &b : batches_)
		b.SetNames(0, {run_id});
	std::vector<std::string> behind;
	for (const Behind &b : run.behind)
		behind.push_back(b.address);
	for (TableId t : {kRequests, kSlow, kParts})
		SetNames(t, "op", run.ops);
	for (TableId t : {kRequests, kSlow})
		SetNames(t, "status",
			 {"ok", "miss", "error-reply", "timeout", "reset", "refused", "wrong", "unsent"});
	SetNames(kRequests, "behind", behind);
	SetNames(kParts, "cause", RequestCauseNames());
	for (TableId t : {kSpans, kTallies, kSamples})
		SetNames(t, "cause", CauseNames());
	SetNames(kSpans, "wait_cause", CauseNames());
	SetNames(kDisk, "operation", {"read", "write", "discard", "flush", "other"});
	return ok_ = sink_->Open(Tables());
}

Batch &Filler::Row(TableId table)
{
	Batch &b = batches_[table];
	if (b.rows() >= kBatchRows) {
		ok_ = ok_ && sink_->Write(table, b);
		b.Clear();
	}
	return b.Row();
}

bool Filler::Flush()
{
	for (size_t t = 0; t < batches_.size(); t++) {
		ok_ = ok_ && (batches_[t].rows() == 0 || sink_->Write(t, batches_[t]));
		batches_[t].Clear();
	}
	return ok_;
}

// Rows of the small tables: the run, its causes and episodes, metrics, threads, connections.

namespace
{

std::string Joined(const std::vector<std::string> &texts, const char *between)
{
	std::string all;
	for (const std::string &t : texts)
		all += (all.empty() ? "" : between) + t;
	return all;
}

std::string JsonText(const std::map<std::string, std::string> &map)
{
	return nlohmann::json(map).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The programs that recorded, with their arguments.
std::string CommandsJson(const Run &run)
{
	nlohmann::json all = nlohmann::json::array();
	for (const RecordingFile *f : OverlaidFiles(run))
		all.push_back({{"program", f->program}, {"argv", f->argv}});
	return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The server's version as it reported it to the load generator or to the program that started it; "" if none
// asked.
std::string ServerVersion(const Run &run)
{
	for (const RecordingFile *f : OverlaidFiles(run)) {
		const common::Json manifest = common::ParseVisibleObject(f->manifest);
		const common::Json *infos = common::Member(manifest, "server_info");
		if (infos && infos->is_array() && !infos->empty())
			if (const std::string version = common::Text((*infos)[0], "version");
			    !version.empty())
				return version;
	}
	for (const auto &[name, version] : run.info.versions)
		if (!name.starts_with("forktail"))
			return version;
	return "";
}

} // namespace

void Filler::AddRun(const Explanation &e)
{
	const Run &run = e.run;
	const Blame &b = e.blame;
	const RecordingFile &recorder = ServerFile(run);
	std::vector<std::string> versions, arrivals;
	for (const RecordingFile *f : OverlaidFiles(run))
		versions.push_back(f->program + " " + f->version);
	double rate = 0;
	for (const Load &load : run.loads) {
		arrivals.push_back(load.arrival);
		rate += load.rate;
	}
	const std::string version = ServerVersion(run),
			  thp = common::Text(common::ParseVisibleObject(recorder.manifest), "thp");
	Row(kRuns)
	    .Text(run.path)
	    .Text(recorder.host)
	    .Text(recorder.kernel)
	    .Text(FORKTAIL_VERSION)
	    .Int(run.start_ns)
	    .Time(At(run.start_ns))
	    .Int(e.first_ns)
	    .Int(e.measured_ns)
	    .Bool(b.from_iterations)
	    .Int(b.count)
	    .Int(b.errors)
	    .Int(b.threshold_ns)
	    .Int(b.slow_count)
	    .Int(b.slow_ns)
	    .Int(e.episodes.size())
	    .Int(b.latencies.p50)
	    .Int(b.latencies.p90)
	    .Int(b.latencies.p99)
	    .Int(b.latencies.p99_9)
	    .Int(b.latencies.p99_99)
	    .Int(b.latencies.max)
	    .Double(b.latencies.mean)
	    .Int(DropCount(run))
	    .Int(b.RowOf(Cause::Unknown).total_ns())
	    .TextOr(!arrivals.empty(), Joined(arrivals, ", "))
	    .Double(rate)
	    .Int(run.connections.size())
	    .TextOr(!run.servers.empty(), Joined(run.servers, ", "))
	    .Text(Joined(versions, ", "))
	    .Text(CommandsJson(run))
	    .TextOr(!version.empty(), version)
	    .TextOr(!thp.empty(), thp);
}

void Filler::AddCauses(const Explanation &e)
{
	for (const CauseRow &row : e.blame.causes)
		Row(kCausesTable)
		    .Text(CauseName(row.cause))
		    .Int(row.requests)
		    .Int(row.direct_ns)
		    .Int(row.queued_ns)
		    .Int(row.total_ns())
		    .Double(row.share)
		    .Int(row.without.p99)
		    .Int(row.without.p99_9)
		    .Int(row.without.p99_99)
		    .Int(row.without.max);
}

void Filler::AddEpisodes(const Explanation &e)
{
	for (size_t n = 0; n < e.episodes.size(); n++) {
		const Episode &episode = e.episodes[n];
		const bool any = !episode.causes.empty();
		Row(kEpisodes)
		    .Int(n)
		    .Int(episode.start_ns)
		    .Time(At(episode.start_ns))
		    .Int(episode.end_ns)
		    .Int(episode.since_ns)
		    .Int(episode.requests)
		    .Int(episode.worst_ns)
		    .Int(episode.time_ns)
		    .TextOr(any, any ? CauseName(episode.causes[0].cause) : "")
		    .Double(any ? episode.causes[0].share : 0);
		for (const EpisodeCause &c : episode.causes)
			Row(kEpisodeCauses)
			    .Int(n)
			    .Text(CauseName(c.cause))
			    .IntOr(c.hop != kNoHop, c.hop)
			    .Int(c.time_ns)
			    .Double(c.share)
			    .Int(c.thread_ns);
		for (size_t i = 0; i < episode.evidence.size(); i++)
			Row(kEvidence).Int(n).Int(i).Text(episode.evidence[i]);
	}
}

void Filler::AddMetrics(const Run &run)
{
	for (const Series &series : run.series) {
		const std::string labels = JsonText(series.labels);
		for (const Sample &s : series.samples)
			Row(kMetrics)
			    .Text(series.name)
			    .Text(series.unit)
			    .Text(labels)
			    .Int(s.t_ns)
			    .Time(At(s.t_ns))
			    .Double(s.value);
	}
}

void Filler::AddStacks(const Run &run)
{
	for (size_t n = 1; n < run.stacks.size(); n++) {
		const Stack &stack = run.stacks[n];
		std::vector<std::string> frames;
		for (const StackFrame &f : stack.frames)
			frames.push_back(f.function.empty() ? "[" + f.module + "]" : f.function);
		Row(kStacks)
		    .Int(n)
		    .Text(stack.program)
		    .Text(Joined(frames, ";"))
		    .Text(Joined(stack.kernel, ";"));
	}
}

void Filler::AddConnections(const Run &run)
{
	for (size_t n = 0; n < run.connections.size(); n++) {
		const Connection &c = run.connections[n];
		const bool known = c.server < run.servers.size();
		Row(kConnections)
		    .Int(n)
		    .TextOr(known, known ? run.servers[c.server] : "")
		    .Int(c.opened_ns)
		    .Time(At(c.opened_ns))
		    .IntOr(c.closed_ns != 0, c.closed_ns)
		    .Int(c.thread)
		    .IntOr(c.local_port != 0, c.local_port)
		    .IntOr(c.inode != 0, c.inode)
		    .Int(c.earlier.size())
		    .TextOr(c.client != 0, c.client ? run.request_clients[c.client - 1].name : "");
	}
}

void Filler::AddThreads(const Explanation &e)
{
	for (const Account &a : e.accounts) {
		const Thread &t = e.run.threads[a.thread];
		bool serving = false;
		for (int s : e.serving)
			serving |= s == static_cast<int>(a.thread);
		Row(kThreads)
		    .Int(a.thread)
		    .Int(t.tid)
		    .Int(t.tgid)
		    .Text(t.comm)
		    .Text(t.role)
		    .Int(t.start_ns)
		    .Time(At(t.start_ns))
		    .Int(t.end_ns)
		    .Int(a.wall_ns)
		    .Int(a.accounted_ns)
		    .Bool(serving)
		    .Bool(t.flags & FT_THREAD_CLIENT)
		    .Bool(t.flags & FT_THREAD_CHILD)
		    .Text(SeveralHosts(e.run) ? HostOf(e.run, t) : ServerFile(e.run).host)
		    .Int(OwnId(e.run, t.tid))
		    .Int(OwnId(e.run, t.tgid));
	}
}

void Filler::AddHops(const Explanation &e)
{
	for (const HopRow &row : e.blame.hops) {
		if (row.hop == kNoHop)
			continue;
		const HopName name = HopNameOf(e.run, e.hop_threads, row.hop, e.blame.from_iterations);
		Row(kHops)
		    .Int(row.hop)
		    .Text(name.text())
		    .Text(name.comm)
		    .Int(name.pid)
		    .IntOr(name.tid != 0, name.tid)
		    .TextOr(!name.address.empty(), name.address)
		    .Text(RoleOf(row, name))
		    .Int(row.served)
		    .Int(row.requests)
		    .Int(row.time_ns);
	}
}

void Filler::AddDrops(const Run &run)
{
	for (const ft_drop &d : run.drops)
		Row(kDrops)
		    .Int(d.start_ns)
		    .Time(At(d.start_ns))
		    .Int(d.end_ns)
		    .Int(d.count)
		    .Int(d.source)
		    .Int(d.detail);
}

void Filler::AddMarks(const Run &run)
{
	for (const Mark &m : run.marks)
		Row(kMarks).Int(m.t_ns).Time(At(m.t_ns)).Text(m.text);
}

bool Filler::AddFacts(const Explanation &e)
{
	AddRun(e);
	AddCauses(e);
	AddEpisodes(e);
	AddMetrics(e.run);
	AddStacks(e.run);
	AddConnections(e.run);
	AddThreads(e);
	AddHops(e);
	AddDrops(e.run);
	AddMarks(e.run);
	return ok_;
}

// Rows of requests, of slow requests, and of their parts.

namespace
{

// A value of 0 is unknown, as is each one of an empty column.
template <class T> void AddKnown(const Column<T> &column, size_t i, Batch *row)
{
	const T value = column.empty() ? 0 : column[i];
	row->IntOr(value != 0, value);
}

} // namespace

bool Filler::AddSlow(const Run &run, const SlowRequest &r, const Part *parts)
{
	const bool logged = !run.ops.empty();
	const NetworkSplit split = r.Split();
	Row(kSlow)
	    .Int(r.index)
	    .Int(r.due_ns)
	    .Time(At(r.due_ns))
	    .IntOr(logged, r.sent_ns)
	    .Int(r.end_ns())
	    .Int(r.latency_ns)
	    .Int(r.since_ns)
	    .IntOr(r.arrived, r.unread_ns)
	    .IntOr(logged, r.connection)
	    .Name(r.op)
	    .Name(logged ? r.status : SIZE_MAX)
	    .IntOr(r.hop != kNoHop, r.hop)
	    .Int(r.part_count)
	    .IntOr(r.joined, split.to_server_ns)
	    .IntOr(r.joined, split.unread_at_server_ns)
	    .IntOr(r.joined, split.to_client_ns);
	for (size_t p = 0; p < r.part_count; p++)
		Row(kParts)
		    .Int(r.index)
		    .Int(r.due_ns)
		    .Time(At(r.due_ns))
		    .Int(r.latency_ns)
		    .IntOr(logged, r.connection)
		    .Name(r.op)
		    .Name(static_cast<size_t>(Index(parts[p].cause)))
		    .IntOr(parts[p].hop != kNoHop, parts[p].hop)
		    .Int(parts[p].direct_ns)
		    .Int(parts[p].queued_ns)
		    .Int(parts[p].total_ns());
	return ok_;
}

bool Filler::AddWindow(const Run &run, uint64_t threshold_ns)
{
	const Requests &q = run.requests;
	for (size_t i = q.lead; i < q.size() && ok_; i++) {
		Batch &row = Row(kRequests);
		row.Int(q.Number(i))
		    .Int(q.due_ns[i])
		    .Time(At(q.due_ns[i]))
		    .Int(q.sent_ns[i])
		    .Int(q.end_ns[i]);
		AddKnown(q.arrival_ns, i, &row);
		row.Int(q.Latency(i))
		    .Int(q.connection[i])
		    .Name(q.op[i])
		    .Name(q.status[i])
		    .Name(size_t{q.Behind(i)} - 1)
		    .Bool(q.Latency(i) >= threshold_ns);
		for (const auto *time : {&q.server_arrival_ns, &q.read_ns, &q.answered_ns, &q.written_ns})
			AddKnown(*time, i, &row);
		AddKnown(q.request_bytes, i, &row);
		AddKnown(q.answer_bytes, i, &row);
	}
	return ok_;
}

// Rows of what threads did. A record that crosses the end of a stretch is counted where it begins.

namespace
{

// The sample period, in sixteenths of a millisecond, of old recordings that do not have it.
constexpr uint64_t kOldPeriod = 16;
constexpr size_t kStackFrames = 32; // frames of a span's stack

std::string SyscallText(const Run &run, int number)
{
	return number < 0 ? "" : SyscallName(run, number);
}

} // namespace

void Filler::AddSpan(const Run &run, uint32_t thread, const ft_span &s, Cause blocked)
{
	const Detail &detail = DetailOf(run, s);
	const std::string name = NameOf(run, s);
	const WaitHolder holder = HolderOf(run, s);
	const std::string syscall = SyscallText(run, s.syscall);
	const Cause cause = s.off_cpu ? blocked : CauseOfOwner(s.owner);
	Row(kSpans)
	    .Int(s.tid)
	    .Int(thread)
	    .Int(s.start_ns)
	    .Time(At(s.start_ns))
	    .Int(s.duration_ns)
	    .Name(static_cast<size_t>(Index(cause)))
	    .Name(s.off_cpu ? static_cast<size_t>(Index(WaitCauseOf(run, s))) : SIZE_MAX)
	    .Int(s.on_cpu_ns)
	    .Int(s.runnable_ns)
	    .Int(s.blocked_ns)
	    .Int(s.cpu)
	    .Int(s.depth)
	    .Bool(s.off_cpu)
	    .Bool(s.flags & FT_SPAN_UNFINISHED)
	    .TextOr(!syscall.empty(), syscall)
	    .TextOr(!name.empty(), name)
	    .TextOr(!detail.stack.empty(), StackText(detail, kStackFrames))
	    .Int(s.arg[0])
	    .Int(s.off_cpu ? holder.tid | holder.ns << 32 : s.arg[1]);
}

void Filler::AddTally(uint32_t thread, const ft_tally &t)
{
	Row(kTallies)
	    .Int(t.tid)
	    .Int(thread)
	    .Int(t.start_ns)
	    .Time(At(t.start_ns))
	    .Int(t.end_ns)
	    .Name(static_cast<size_t>(Index(CauseOfOwner(t.owner))))
	    .Int(t.total_ns)
	    .Int(t.max_ns)
	    .Int(t.count);
}

void Filler::AddIteration(uint32_t thread, const ft_span &iteration)
{
	Row(kIterations)
	    .Int(iteration.tid)
	    .Int(thread)
	    .Int(iteration.start_ns)
	    .Time(At(iteration.start_ns))
	    .Int(iteration.duration_ns)
	    .Bool(iteration.flags & FT_SPAN_SAMPLED)
	    .Int(iteration.arg[0])
	    .Int(iteration.arg[1]);
}

void Filler::AddSample(const Run &run, const Activities &activities, size_t index)
{
	const ft_cpu_sample &s = run.cpu_samples[index];
	const std::string syscall = SyscallText(run, s.syscall - 1);
	const bool own = s.owner == FT_OWN_CODE && index < activities.of_sample.size();
	Row(kSamples)
	    .Int(s.tid)
	    .Int(s.t_ns)
	    .Time(At(s.t_ns))
	    .Int((s.period ? s.period : kOldPeriod) * 1'000'000 / 16)
	    .Int(s.cpu)
	    .Name(static_cast<size_t>(Index(CauseOfOwner(s.owner))))
	    .TextOr(own, own ? activities.Of(index).name : "")
	    .IntOr(s.stack != 0, s.stack)
	    .Bool(s.flags & FT_CPU_SAMPLE_KERNEL)
	    .TextOr(!syscall.empty(), syscall);
}

bool Filler::AddStretch(const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	const Waits waits(run);
	const Activities activities = ActivitiesOf(run);
	auto began = [&](uint64_t t_ns) { return t_ns >= from_ns && t_ns < to_ns; };
	for (uint32_t n = 0; n < run.threads.size() && ok_; n++) {
		const Thread &t = run.threads[n];
		for (size_t i = t.first_span; i < t.first_span + t.span_count; i++)
			if (began(run.spans[i].start_ns))
				AddSpan(run, n, run.spans[i], waits.CauseOf(run.spans[i], t));
		for (size_t i = t.first_tally; i < t.first_tally + t.tally_count; i++)
			if (began(run.tallies[i].start_ns))
				AddTally(n, run.tallies[i]);
		for (size_t i = t.first_iteration; i < t.first_iteration + t.iteration_count; i++)
			if (began(run.iterations[i].start_ns))
				AddIteration(n, run.iterations[i]);
		for (size_t i = t.first_cpu_sample; i < t.first_cpu_sample + t.cpu_sample_count; i++)
			if (began(run.cpu_samples[i].t_ns))
				AddSample(run, activities, i);
	}
	for (const ft_io &io : run.ios)
		if (began(io.start_ns))
			Row(kDisk)
			    .Int(io.start_ns)
			    .Time(At(io.start_ns))
			    .Int(io.duration_ns)
			    .Text(DeviceName(run, io.dev))
			    .Int(io.sector)
			    .Int(io.bytes)
			    .Name(io.write)
			    .Bool(io.error)
			    .Int(io.tid)
			    .Text(common::VisibleName(io.comm));
	return ok_;
}

} // namespace forktail::analysis::exports
