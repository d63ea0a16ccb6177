// SPDX-License-Identifier: MIT
// A run as tables, whatever their file format. Each column is one row below: its name, its type, where its
// value comes from, and its meaning if the name does not say it. The schema, the values and the list of
// tables in docs/reference/exports-and-sql.md follow from these rows.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <type_traits>

#include "analysis/blame.h"
#include "analysis/explain.h"
#include "analysis/exports.h"
#include "analysis/run.h"
#include "analysis/timeline.h"
#include "common/json.h"
#include "wall_clock.h"

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
	return Number(0);
}

Batch &Batch::Text(std::string value)
{
	Values &v = columns_[at_++];
	v.texts.push_back(std::move(value));
	v.known.push_back(true);
	return *this;
}

Batch &Batch::Unknown()
{
	Values &v = columns_[at_++];
	if (v.type == ColumnType::Text)
		v.texts.emplace_back();
	else
		v.numbers.push_back(0);
	v.known.push_back(false);
	return *this;
}

namespace
{

using Names = std::vector<std::string>;

// The type of a column. A Name has the texts that its numbers are indices of.
struct Type {
	ColumnType column;
	Names (*names)(const Run &) = nullptr;
};

Names CausesBelow(int end, const char *name(Cause))
{
	Names names;
	for (int c = 0; c < end; c++)
		names.push_back(name(static_cast<Cause>(c)));
	return names;
}

template <class List, class Getter> Names Each(const List &list, Getter get)
{
	Names names;
	for (const auto &one : list)
		names.push_back(std::invoke(get, one));
	return names;
}

constexpr ColumnType kName = ColumnType::Name;
constexpr Type kInt = {ColumnType::Int}, kSmall = {ColumnType::Small}, kDouble = {ColumnType::Double},
	       kBool = {ColumnType::Bool}, kTime = {ColumnType::Time}, kText = {ColumnType::Text},
	       kRunId = {kName, [](const Run &run) { return Names{RunId(run)}; }},
	       kOp = {kName, [](const Run &run) { return run.ops; }},
	       kBehind = {kName, [](const Run &run) { return Each(run.behind, &Behind::address); }},
	       kRequestCause = {kName, [](const Run &) { return CausesBelow(kCauses, CauseName); }},
	       kCause = {kName, [](const Run &) { return CausesBelow(kTimelineCauses, AccountName); }},
	       kStatus = {kName,
			  [](const Run &) -> Names {
				  return {"ok",	   "miss",    "error-reply", "timeout",
					  "reset", "refused", "wrong",	     "unsent"};
			  }},
	       kOperation = {kName, [](const Run &) -> Names {
				     return {"read", "write", "discard", "flush", "other"};
			     }};

// A column. `get` returns the value for a row's source, or for the source's `of`. For a Time it returns
// CLOCK_MONOTONIC in ns, and Put() converts it. std::nullopt is unknown, as is an index beyond the names.
template <class Getter> struct Field {
	const char *name;
	Type type;
	Getter get;
	const char *meaning = "";
};
template <class Getter> Field(const char *, Type, Getter, const char * = "") -> Field<Getter>;

struct Heading {
	const char *name, *row; // a row is one "request"
};

// A table, after the column run_id that every table has.
template <class... Getters> struct Table {
	Heading heading;
	std::tuple<Field<Getters>...> columns;
	constexpr Table(Heading h, Field<Getters>... fields) : heading(h), columns(fields...) {}
};

template <class T> std::optional<T> If(bool known, T value)
{
	return known ? std::optional<T>(std::move(value)) : std::nullopt;
}

// For values of which 0, or an empty text, means unknown.
template <class T> std::optional<T> Known(T value)
{
	const bool known = value != T();
	return If(known, std::move(value));
}

// The sources of rows. Most are a thing of a run, `of`, and a number: its own, or its thread's.
template <class T> struct Source {
	const Run &run;
	size_t n;
	const T &of;
};
struct RunRow : Source<Blame> {
	const Explanation &e;
};
struct SpanSource : Source<ft_span> {
	Cause blocked;
};
struct SampleSource : Source<ft_cpu_sample> {
	const Activities &activities;
};
struct ThreadSource : Source<Thread> {
	const Account &account;
	bool serving;
};
struct HopSource : Source<HopRow> {
	HopName name;
};
struct SeriesSource {
	const Series &series;
	const std::string &labels;
	const Sample &of;
};
struct SentenceSource {
	size_t episode, position;
	const std::string &sentence;
};
struct SlowSource {
	bool logged; // there is a request log
	const SlowKey *key;
	const SlowRequest &of;
	NetworkSplit split;
};
struct PartSource {
	bool logged;
	const SlowRequest &of;
	const Part &part;
};
struct RequestSource {
	const Requests &q;
	size_t i;
	uint64_t threshold_ns;
	// An empty column is unknown, and so are its zeros.
	template <class T> std::optional<T> In(const Column<T> &column) const
	{
		return Known(column.empty() ? T() : column[i]);
	}
};

std::string Joined(const Names &texts, const char *between)
{
	std::string all;
	for (const std::string &t : texts)
		all += (all.empty() ? "" : between) + t;
	return all;
}

// No texts are unknown.
std::optional<std::string> JoinedIf(const Names &texts)
{
	return If(!texts.empty(), Joined(texts, ", "));
}

std::string FrameText(const StackFrame &f)
{
	return f.function.empty() ? "[" + f.module + "]" : f.function;
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

double RateOf(const Run &run)
{
	double rate = 0;
	for (const Load &load : run.loads)
		rate += load.rate;
	return rate;
}

std::string SyscallText(const Run &run, int number)
{
	return number < 0 ? "" : SyscallName(run, number);
}

// In sixteenths of a millisecond; old recordings do not have it.
constexpr uint64_t kOldSamplePeriod = 16;
constexpr size_t kStackFrames = 32; // frames of a span's stack

uint64_t Argument1(const SpanSource &s)
{
	const WaitHolder holder = HolderOf(s.run, s.of);
	return s.of.off_cpu ? holder.tid | holder.ns << 32 : s.of.arg[1];
}

bool IsServing(const Explanation &e, uint32_t thread)
{
	return std::find(e.serving.begin(), e.serving.end(), static_cast<int>(thread)) != e.serving.end();
}

// The names of tables and columns are an interface: new columns are added at a table's end, and none is
// changed.
// *_ns is CLOCK_MONOTONIC of the host or a duration; *_time is the time of day in UTC, if known.

constexpr Table kRuns{
    {"runs", "run"},
    Field{"run", kText, [](auto &r) { return r.run.path; }},
    Field{"host", kText, [](auto &r) { return ServerFile(r.run).host; }},
    Field{"kernel", kText, [](auto &r) { return ServerFile(r.run).kernel; }, "of the recorded server"},
    Field{"forktail", kText, [](auto &) { return FORKTAIL_VERSION; }},
    Field{"start_ns", kInt, [](auto &r) { return r.run.start_ns; }},
    Field{"start_time", kTime, [](auto &r) { return r.run.start_ns; }},
    Field{"first_ns", kInt, [](auto &r) { return r.e.first_ns; }, "first request due"},
    Field{"measured_ns", kInt, [](auto &r) { return r.e.measured_ns; }},
    Field{"from_iterations", kBool, &Blame::from_iterations, "true: no request log"},
    Field{"requests", kInt, &Blame::count},
    Field{"errors", kInt, &Blame::errors},
    Field{"threshold_ns", kInt, &Blame::threshold_ns},
    Field{"slow_requests", kInt, &Blame::slow_count},
    Field{"slow_ns", kInt, &Blame::slow_ns},
    Field{"episodes", kInt, [](auto &r) { return r.e.episodes.size(); }},
    Field{"p50_ns", kInt, [](auto &r) { return r.of.latencies.p50; }},
    Field{"p90_ns", kInt, [](auto &r) { return r.of.latencies.p90; }},
    Field{"p99_ns", kInt, [](auto &r) { return r.of.latencies.p99; }},
    Field{"p99_9_ns", kInt, [](auto &r) { return r.of.latencies.p99_9; }},
    Field{"p99_99_ns", kInt, [](auto &r) { return r.of.latencies.p99_99; }},
    Field{"max_ns", kInt, [](auto &r) { return r.of.latencies.max; }},
    Field{"mean_ns", kDouble, [](auto &r) { return r.of.latencies.mean; }},
    Field{"drops", kInt, [](auto &r) { return DropCount(r.run); }},
    Field{"helper_deaths", kInt, [](auto &r) { return HelperDeaths(r.run); }},
    Field{"main_loop_stalls", kInt, [](auto &r) { return r.run.cost.main_loop_stalls; }},
    Field{"bpf_ns", kInt,
	  [](auto &r) { return r.run.cost.bpf_known ? std::optional(r.run.cost.bpf_ns) : std::nullopt; },
	  "recording cost: run time of the BPF programs"},
    Field{"recorder_cpu_ns", kInt, [](auto &r) { return r.run.cost.recorder_cpu_ns; }},
    Field{"unknown_ns", kInt, [](auto &r) { return r.of.RowOf(Cause::Unknown).total_ns(); }},
    Field{"arrival", kText, [](auto &r) { return JoinedIf(Each(r.run.loads, &Load::arrival)); }},
    Field{"rate_per_s", kDouble, [](auto &r) { return RateOf(r.run); }},
    Field{"connections", kInt, [](auto &r) { return r.run.connections.size(); }},
    Field{"server", kText, [](auto &r) { return JoinedIf(r.run.servers); }},
    Field{"recorder_versions", kText,
	  [](auto &r) {
		  return Joined(
		      Each(OverlaidFiles(r.run), [](auto *f) { return f->program + " " + f->version; }),
		      ", ");
	  }},
    Field{"settings", kText, [](auto &r) { return CommandsJson(r.run); }, "command lines, JSON"},
    Field{"server_version", kText, [](auto &r) { return Known(ServerVersion(r.run)); }},
    Field{"thp", kText,
	  [](auto &r) {
		  return Known(common::Text(common::ParseVisibleObject(ServerFile(r.run).manifest), "thp"));
	  },
	  "transparent huge pages"},
};

constexpr Table kRequests{
    {"requests", "request"},
    Field{"request", kInt, [](auto &r) { return r.q.Number(r.i); }, "its number"},
    Field{"due_ns", kInt, [](auto &r) { return r.q.due_ns[r.i]; }},
    Field{"due_time", kTime, [](auto &r) { return r.q.due_ns[r.i]; }},
    Field{"sent_ns", kInt, [](auto &r) { return r.q.sent_ns[r.i]; }},
    Field{"end_ns", kInt, [](auto &r) { return r.q.end_ns[r.i]; }},
    Field{"arrived_ns", kInt, [](auto &r) { return r.In(r.q.arrival_ns); }},
    Field{"latency_ns", kInt, [](auto &r) { return r.q.Latency(r.i); }},
    Field{"connection", kSmall, [](auto &r) { return r.q.connection[r.i]; }},
    Field{"op", kOp, [](auto &r) { return r.q.op[r.i]; }},
    Field{"status", kStatus, [](auto &r) { return r.q.status[r.i]; }},
    Field{"behind", kBehind, [](auto &r) { return size_t{r.q.Behind(r.i)} - 1; }, "server behind the proxy"},
    Field{"slow", kBool, [](auto &r) { return r.q.Latency(r.i) >= r.threshold_ns; }},
    Field{"server_arrived_ns", kInt, [](auto &r) { return r.In(r.q.server_arrival_ns); }},
    Field{"read_ns", kInt, [](auto &r) { return r.In(r.q.read_ns); }},
    Field{"answered_ns", kInt, [](auto &r) { return r.In(r.q.answered_ns); }},
    Field{"written_ns", kInt, [](auto &r) { return r.In(r.q.written_ns); }},
    Field{"request_bytes", kInt, [](auto &r) { return r.In(r.q.request_bytes); }},
    Field{"answer_bytes", kInt, [](auto &r) { return r.In(r.q.answer_bytes); },
	  "[below](#requests-of-a-kernel-log)"},
};

constexpr Table kSlow{
    {"slow", "slow request; without a request log, slow event-loop iteration"},
    Field{"request", kInt, &SlowRequest::index},
    Field{"due_ns", kInt, &SlowRequest::due_ns},
    Field{"due_time", kTime, &SlowRequest::due_ns},
    Field{"sent_ns", kInt, [](auto &r) { return If(r.logged, r.of.sent_ns); }},
    Field{"end_ns", kInt, &SlowRequest::end_ns},
    Field{"latency_ns", kInt, &SlowRequest::latency_ns},
    Field{"since_ns", kInt, &SlowRequest::since_ns, "begin of its causes"},
    Field{"unread_ns", kInt, [](auto &r) { return If(r.of.arrived, r.of.unread_ns); }},
    Field{"connection", kSmall, [](auto &r) { return If(r.logged, r.of.connection); }},
    Field{"op", kOp, &SlowRequest::op},
    Field{"status", kStatus, [](auto &r) { return If(r.logged, r.of.status); }},
    Field{"hop", kSmall, [](auto &r) { return If(r.of.hop != kNoHop, r.of.hop); }},
    Field{"parts", kSmall, &SlowRequest::part_count},
    Field{"to_server_ns", kInt, [](auto &r) { return If(r.of.joined, r.split.to_server_ns); }},
    Field{"unread_at_server_ns", kInt, [](auto &r) { return If(r.of.joined, r.split.unread_at_server_ns); }},
    Field{"to_client_ns", kInt, [](auto &r) { return If(r.of.joined, r.split.to_client_ns); },
	  "as [`network_split`](explain.md#requests)"},
    Field{"key", kText, [](auto &r) { return If(r.key != nullptr, r.key ? r.key->text : std::string()); },
	  "its first bytes, if they were recorded"},
};

constexpr Table kParts{
    {"parts", "cause and hop of a slow request"},
    Field{"request", kInt, &SlowRequest::index},
    Field{"due_ns", kInt, &SlowRequest::due_ns},
    Field{"due_time", kTime, &SlowRequest::due_ns},
    Field{"latency_ns", kInt, &SlowRequest::latency_ns},
    Field{"connection", kSmall, [](auto &r) { return If(r.logged, r.of.connection); }},
    Field{"op", kOp, &SlowRequest::op},
    Field{"cause", kRequestCause, [](auto &r) { return r.part.cause; }},
    Field{"hop", kSmall, [](auto &r) { return If(r.part.hop != kNoHop, r.part.hop); }},
    Field{"direct_ns", kInt, [](auto &r) { return r.part.direct_ns; }},
    Field{"queued_ns", kInt, [](auto &r) { return r.part.queued_ns; }},
    Field{"total_ns", kInt, [](auto &r) { return r.part.total_ns(); },
	  "those of a request sum to `latency_ns`"},
};

constexpr Table kCausesTable{
    {"causes", "cause"},
    Field{"cause", kText, [](auto &r) { return CauseName(r.cause); }},
    Field{"requests", kInt, &CauseRow::requests},
    Field{"direct_ns", kInt, &CauseRow::direct_ns},
    Field{"queued_ns", kInt, &CauseRow::queued_ns},
    Field{"total_ns", kInt, &CauseRow::total_ns},
    Field{"share", kDouble, &CauseRow::share},
    Field{"without_p99_ns", kInt, [](auto &r) { return r.without.p99; }, "percentile without it"},
    Field{"without_p99_9_ns", kInt, [](auto &r) { return r.without.p99_9; }},
    Field{"without_p99_99_ns", kInt, [](auto &r) { return r.without.p99_99; }},
    Field{"without_max_ns", kInt, [](auto &r) { return r.without.max; }},
};

constexpr Table kHops{
    {"hops", "thread on the path of requests"},
    Field{"hop", kSmall, &HopRow::hop},
    Field{"name", kText, [](auto &r) { return r.name.text(); }},
    Field{"comm", kText, [](auto &r) { return r.name.comm; }},
    Field{"pid", kSmall, [](auto &r) { return r.name.pid; }},
    Field{"tid", kSmall, [](auto &r) { return Known(r.name.tid); }},
    Field{"address", kText, [](auto &r) { return Known(r.name.address); }},
    Field{"role", kText, [](auto &r) { return RoleOf(r.of, r.name); }},
    Field{"served", kInt, &HopRow::served},
    Field{"requests", kInt, &HopRow::requests},
    Field{"time_ns", kInt, &HopRow::time_ns},
};

constexpr Table kEpisodes{
    {"episodes", "episode"},
    Field{"episode", kSmall, [](auto &r) { return r.n; }},
    Field{"start_ns", kInt, &Episode::start_ns},
    Field{"start_time", kTime, &Episode::start_ns},
    Field{"end_ns", kInt, &Episode::end_ns},
    Field{"since_ns", kInt, &Episode::since_ns},
    Field{"requests", kInt, &Episode::requests},
    Field{"worst_ns", kInt, &Episode::worst_ns},
    Field{"time_ns", kInt, &Episode::time_ns},
    Field{"cause", kText,
	  [](auto &r) {
		  return r.of.causes.empty() ? std::nullopt : std::optional(CauseName(r.of.causes[0].cause));
	  },
	  "the largest"},
    Field{"share", kDouble, [](auto &r) { return r.of.causes.empty() ? 0 : r.of.causes[0].share; }},
};

constexpr Table kSnapshots{
    {"snapshots", "snapshot, AOF rewrite or full synchronization"},
    Field{"command", kText, &Snapshot::command},
    Field{"start_ns", kInt, &Snapshot::start_ns},
    Field{"start_time", kTime, &Snapshot::start_ns},
    Field{"end_ns", kInt, &Snapshot::end_ns, "of its child"},
    Field{"ended", kBool, &Snapshot::ended, "in the recording"},
    Field{"explained_ns", kInt, &Snapshot::explained_ns, "less than all with --since, --until or a ring"},
    Field{"server_pid", kSmall, [](auto &r) { return OwnId(r.run, r.of.server); }},
    Field{"child_pid", kSmall, [](auto &r) { return OwnId(r.run, r.run.threads[r.of.thread].tgid); }},
    Field{"fork_ns", kInt, [](auto &r) { return Known(r.of.fork_ns); }},
    Field{"copies", kInt, &Snapshot::copies, "pages of 4 kB that the server's writes copied"},
    Field{"copy_ns", kInt, &Snapshot::copy_ns},
    Field{"child_copies", kInt, &Snapshot::child_copies},
    Field{"written_bytes", kInt, &Snapshot::written_bytes, "by the child, to files"},
    Field{"rss_bytes", kInt, &Snapshot::rss_bytes, "before the fork"},
    Field{"peak_bytes", kInt, [](auto &r) { return r.of.peak_bytes(); }, "parent and child together"},
    Field{"available_bytes", kInt, &Snapshot::available_bytes, "least of the host meanwhile"},
    Field{"cgroup_left_bytes", kInt, &Snapshot::cgroup_left_bytes, "least of a cgroup with a limit"},
    Field{"requests", kInt, &Snapshot::requests, "due meanwhile"},
    Field{"slowed", kInt, &Snapshot::slowed, "slow ones with a part of fork or cow-copy"},
    Field{"writes", kInt, &Snapshot::writes, "requests that change data"},
    Field{"p99_9_ns", kInt, [](auto &r) { return Known(r.of.during.p99_9); }, "of these requests"},
    Field{"max_ns", kInt, [](auto &r) { return Known(r.of.during.max); }},
};

constexpr Table kEpisodeCauses{
    {"episode_causes", "cause of an episode"},
    Field{"episode", kSmall, [](auto &r) { return r.n; }},
    Field{"cause", kText, [](auto &r) { return CauseName(r.of.cause); }},
    Field{"hop", kSmall, [](auto &r) { return If(r.of.hop != kNoHop, r.of.hop); }},
    Field{"time_ns", kInt, &EpisodeCause::time_ns},
    Field{"share", kDouble, &EpisodeCause::share},
    Field{"thread_ns", kInt, &EpisodeCause::thread_ns},
};

constexpr Table kEvidence{
    {"evidence", "sentence about an episode"},
    Field{"episode", kSmall, &SentenceSource::episode},
    Field{"position", kSmall, &SentenceSource::position},
    Field{"sentence", kText, [](auto &r) { return r.sentence; },
	  "only of the largest episodes, as in explain"},
};

constexpr Table kThreads{
    {"threads", "thread"},
    Field{"thread", kSmall, [](auto &r) { return r.n; }},
    Field{"tid", kSmall, &Thread::tid},
    Field{"pid", kSmall, &Thread::tgid},
    Field{"comm", kText, &Thread::comm},
    Field{"role", kText, &Thread::role},
    Field{"start_ns", kInt, &Thread::start_ns},
    Field{"start_time", kTime, &Thread::start_ns},
    Field{"end_ns", kInt, &Thread::end_ns},
    Field{"wall_ns", kInt, [](auto &r) { return r.account.wall_ns; }},
    Field{"accounted_ns", kInt, [](auto &r) { return r.account.accounted_ns; }},
    Field{"serving", kBool, [](auto &r) { return r.serving; }},
    Field{"client", kBool, [](auto &r) { return r.of.flags & FT_THREAD_CLIENT; }},
    Field{"child", kBool, [](auto &r) { return r.of.flags & FT_THREAD_CHILD; }},
    Field{"on_host", kText,
	  [](auto &r) { return SeveralHosts(r.run) ? HostOf(r.run, r.of) : ServerFile(r.run).host; }},
    Field{"own_tid", kSmall, [](auto &r) { return OwnId(r.run, r.of.tid); }},
    Field{"own_pid", kSmall, [](auto &r) { return OwnId(r.run, r.of.tgid); },
	  "the host's ids; with several hosts in a run, `tid` and `pid` of the second host are changed to be "
	  "unique"},
};

constexpr Table kSpans{
    {"spans", "interval of a thread"},
    Field{"tid", kSmall, &ft_span::tid},
    Field{"thread", kSmall, [](auto &r) { return r.n; }},
    Field{"start_ns", kInt, &ft_span::start_ns},
    Field{"start_time", kTime, &ft_span::start_ns},
    Field{"duration_ns", kInt, &ft_span::duration_ns},
    Field{"cause", kCause, [](auto &r) { return r.of.off_cpu ? r.blocked : CauseOfOwner(r.of.owner); }},
    Field{"wait_cause", kCause,
	  [](auto &r) { return r.of.off_cpu ? std::optional(WaitCauseOf(r.run, r.of)) : std::nullopt; }},
    Field{"on_cpu_ns", kInt, &ft_span::on_cpu_ns},
    Field{"runnable_ns", kInt, &ft_span::runnable_ns},
    Field{"blocked_ns", kInt, &ft_span::blocked_ns},
    Field{"cpu", kSmall, &ft_span::cpu},
    Field{"depth", kSmall, &ft_span::depth},
    Field{"off_cpu", kBool, &ft_span::off_cpu},
    Field{"unfinished", kBool, [](auto &r) { return r.of.flags & FT_SPAN_UNFINISHED; }},
    Field{"syscall", kText, [](auto &r) { return Known(SyscallText(r.run, r.of.syscall)); }},
    Field{"detail", kText, [](auto &r) { return Known(NameOf(r.run, r.of)); }},
    Field{"stack", kText,
	  [](auto &r) {
		  const Detail &detail = DetailOf(r.run, r.of);
		  return If(!detail.stack.empty(), StackText(detail, kStackFrames));
	  }},
    Field{"arg0", kInt, [](auto &r) { return r.of.arg[0]; }},
    Field{"arg1", kInt, Argument1, "[meaning](recording-format.md)"},
};

constexpr Table kTallies{
    {"tallies", "cause and window: intervals too short for a span"},
    Field{"tid", kSmall, &ft_tally::tid},
    Field{"thread", kSmall, [](auto &r) { return r.n; }},
    Field{"start_ns", kInt, &ft_tally::start_ns},
    Field{"start_time", kTime, &ft_tally::start_ns},
    Field{"end_ns", kInt, &ft_tally::end_ns},
    Field{"cause", kCause, [](auto &r) { return CauseOfOwner(r.of.owner); }},
    Field{"total_ns", kInt, &ft_tally::total_ns},
    Field{"max_ns", kInt, &ft_tally::max_ns},
    Field{"count", kInt, &ft_tally::count},
};

constexpr Table kIterations{
    {"iterations", "event-loop iteration"},
    Field{"tid", kSmall, &ft_span::tid},
    Field{"thread", kSmall, [](auto &r) { return r.n; }},
    Field{"start_ns", kInt, &ft_span::start_ns},
    Field{"start_time", kTime, &ft_span::start_ns},
    Field{"duration_ns", kInt, &ft_span::duration_ns},
    Field{"sampled", kBool, [](auto &r) { return r.of.flags & FT_SPAN_SAMPLED; }},
    Field{"arg0", kInt, [](auto &r) { return r.of.arg[0]; }},
    Field{"arg1", kInt, [](auto &r) { return r.of.arg[1]; }},
};

constexpr Table kSamples{
    {"samples", "CPU sample"},
    Field{"tid", kSmall, &ft_cpu_sample::tid},
    Field{"t_ns", kInt, &ft_cpu_sample::t_ns},
    Field{"time", kTime, &ft_cpu_sample::t_ns},
    Field{"period_ns", kInt,
	  [](auto &r) { return (r.of.period ? r.of.period : kOldSamplePeriod) * 1'000'000 / 16; }},
    Field{"cpu", kSmall, &ft_cpu_sample::cpu},
    Field{"cause", kCause, [](auto &r) { return CauseOfOwner(r.of.owner); }},
    Field{"activity", kText,
	  [](auto &r) {
		  const bool own = r.of.owner == FT_OWN_CODE && r.n < r.activities.of_sample.size();
		  return own ? std::optional(r.activities.Of(r.n).name) : std::nullopt;
	  }},
    Field{"stack", kSmall, [](auto &r) { return Known(r.of.stack); }},
    Field{"in_kernel", kBool, [](auto &r) { return r.of.flags & FT_CPU_SAMPLE_KERNEL; }},
    Field{"syscall", kText, [](auto &r) { return Known(SyscallText(r.run, r.of.syscall - 1)); }},
};

constexpr Table kStacks{
    {"stacks", "stack of samples"},
    Field{"stack", kSmall, [](auto &r) { return r.n; }},
    Field{"program", kText, &Stack::program},
    Field{"frames", kText, [](auto &r) { return Joined(Each(r.of.frames, FrameText), ";"); }},
    Field{"kernel", kText, [](auto &r) { return Joined(r.of.kernel, ";"); },
	  "innermost first, separated by `;`"},
};

constexpr Table kDisk{
    {"disk", "block request"},
    Field{"start_ns", kInt, &ft_io::start_ns},
    Field{"start_time", kTime, &ft_io::start_ns},
    Field{"duration_ns", kInt, &ft_io::duration_ns},
    Field{"device", kText, [](auto &r) { return DeviceName(r.run, r.of.dev); }},
    Field{"sector", kInt, &ft_io::sector},
    Field{"bytes", kInt, &ft_io::bytes},
    Field{"operation", kOperation, &ft_io::write},
    Field{"error", kBool, &ft_io::error},
    Field{"tid", kSmall, &ft_io::tid},
    Field{"comm", kText, [](auto &r) { return common::VisibleName(r.of.comm); }},
};

constexpr Table kWrites{
    {"writes", "data that a process wrote to files"},
    Field{"start_ns", kInt, &ft_writes::start_ns},
    Field{"start_time", kTime, &ft_writes::start_ns},
    Field{"end_ns", kInt, &ft_writes::end_ns},
    Field{"device", kText, [](auto &r) { return DeviceName(r.run, r.of.dev); }, "of the file system"},
    Field{"bytes", kInt, &ft_writes::bytes, "to the page cache, at most 100 ms or 1 MB in a row"},
    Field{"pid", kSmall, &ft_writes::tgid},
    Field{"comm", kText, [](auto &r) { return common::VisibleName(r.of.comm); }},
};

constexpr Table kMetrics{
    {"metrics", "value of a series"},
    Field{"metric", kText, [](auto &r) { return r.series.name; }},
    Field{"unit", kText, [](auto &r) { return r.series.unit; }},
    Field{"labels", kText, [](auto &r) { return r.labels; }, "JSON"},
    Field{"t_ns", kInt, &Sample::t_ns},
    Field{"time", kTime, &Sample::t_ns},
    Field{"value", kDouble, &Sample::value},
};

// Of a connection's client; none in a load generator's log.
template <typename Row> std::optional<std::string> OfClient(const Row &r, std::string RequestClient::*what)
{
	const std::string text = r.of.client ? r.run.request_clients[r.of.client - 1].*what : "";
	return text.empty() ? std::nullopt : std::optional(text);
}

constexpr Table kConnections{
    {"connections", "connection in the request log"},
    Field{"connection", kSmall, [](auto &r) { return r.n; }},
    Field{"server", kText,
	  [](auto &r) {
		  const std::vector<std::string> &servers = r.run.servers;
		  return r.of.server < servers.size() ? std::optional(servers[r.of.server]) : std::nullopt;
	  }},
    Field{"opened_ns", kInt, &Connection::opened_ns},
    Field{"opened_time", kTime, &Connection::opened_ns},
    Field{"closed_ns", kInt, [](auto &r) { return Known(r.of.closed_ns); }},
    Field{"load_thread", kSmall, &Connection::thread},
    Field{"local_port", kSmall, [](auto &r) { return Known(r.of.local_port); }},
    Field{"inode", kInt, [](auto &r) { return Known(r.of.inode); }},
    Field{"reopened", kSmall, [](auto &r) { return r.of.earlier.size(); }},
    Field{"client", kText, [](auto &r) { return OfClient(r, &RequestClient::name); },
	  "of a kernel log: process or address, with the name and the library that it gave"},
    Field{"client_name", kText, [](auto &r) { return OfClient(r, &RequestClient::own_name); }},
    Field{"client_library", kText, [](auto &r) { return OfClient(r, &RequestClient::library); }},
};

constexpr Table kDrops{
    {"drops", "loss of events"},
    Field{"start_ns", kInt, &ft_drop::start_ns},
    Field{"start_time", kTime, &ft_drop::start_ns},
    Field{"end_ns", kInt, &ft_drop::end_ns},
    Field{"count", kInt, &ft_drop::count},
    Field{"source", kSmall, &ft_drop::source},
    Field{"detail", kSmall, &ft_drop::detail},
};

constexpr Table kMarks{
    {"marks", "[mark](explain.md#marks)"},
    Field{"t_ns", kInt, &Mark::t_ns},
    Field{"time", kTime, &Mark::t_ns},
    Field{"text", kText, &Mark::text},
};

constexpr auto kTables = std::tie(kRuns, kRequests, kSlow, kParts, kCausesTable, kHops, kEpisodes, kSnapshots,
				  kEpisodeCauses, kEvidence, kThreads, kSpans, kTallies, kIterations,
				  kSamples, kStacks, kDisk, kWrites, kMetrics, kConnections, kDrops, kMarks);

template <class Getter, class From> auto ValueOf(const Getter &get, const From &from)
{
	if constexpr (std::is_invocable_v<Getter, const From &>)
		return std::invoke(get, from);
	else
		return std::invoke(get, from.of);
}

// The index of a table in Tables().
template <class... Getters> size_t IndexOf(const Table<Getters...> &table)
{
	size_t index = 0;
	std::apply([&](auto &...t) { ((static_cast<const void *>(&t) != &table && ++index) && ...); },
		   kTables);
	return index;
}

template <class... Getters> TableKind KindOf(const Table<Getters...> &table)
{
	TableKind kind = {table.heading.name, {{"run_id", kRunId.column, kRunId.names}}, table.heading.row};
	auto add = [&](const auto &f) {
		kind.columns.push_back({f.name, f.type.column, f.type.names, f.meaning});
	};
	std::apply([&](const auto &...fields) { (add(fields), ...); }, table.columns);
	return kind;
}

// Rows of a batch: enough that the batch's overhead is negligible, few enough for a CPU cache.
constexpr size_t kBatchRows = 1 << 15;

class TablesExporter : public Exporter
{
public:
	TablesExporter(std::unique_ptr<TableSink> sink, const std::vector<std::string> &names)
	    : sink_(std::move(sink))
	{
		for (const TableKind &kind : Tables()) {
			const bool wanted =
			    names.empty() || std::find(names.begin(), names.end(), kind.name) != names.end();
			at_.push_back(wanted ? kinds_.size() : SIZE_MAX);
			if (wanted)
				kinds_.push_back(kind);
		}
		for (const TableKind &kind : kinds_)
			batches_.emplace_back(kind);
	}
	Wants wants() const override
	{
		auto any = [&](const auto &...tables) { return ((at_[IndexOf(tables)] != SIZE_MAX) || ...); };
		return {any(kSlow, kParts),
			any(kSpans, kTallies, kIterations, kSamples, kStacks, kDisk, kWrites),
			any(kRequests)};
	}
	bool Blamed(const Run &run, const SlowRequest &r, const Part *parts) override
	{
		const bool logged = !run.ops.empty();
		Open(run);
		Add(kSlow, SlowSource{logged, logged ? KeyOf(run, r) : nullptr, r, r.Split()});
		for (size_t p = 0; p < r.part_count; p++)
			Add(kParts, PartSource{logged, r, parts[p]});
		return Checked();
	}
	bool Begin(const Explanation &e) override
	{
		Open(e.run);
		return Checked();
	}
	// A record that crosses the end of a stretch is of the stretch in which it begins.
	bool Stretch(const Explanation &, const Run &run, uint64_t from_ns, uint64_t to_ns) override
	{
		const Waits waits(run);
		const bool sampled = at_[IndexOf(kSamples)] != SIZE_MAX;
		const Activities activities = sampled ? ActivitiesOf(run) : Activities();
		auto began = [&](uint64_t t_ns) { return t_ns >= from_ns && t_ns < to_ns; };
		for (size_t n = 0; n < run.threads.size() && ok_; n++) {
			const Thread &t = run.threads[n];
			for (size_t i = t.first_span; i < t.first_span + t.span_count; i++)
				if (const ft_span &s = run.spans[i]; began(s.start_ns))
					Add(kSpans, SpanSource{{run, n, s}, waits.CauseOf(s, t)});
			for (size_t i = t.first_tally; i < t.first_tally + t.tally_count; i++)
				if (const ft_tally &s = run.tallies[i]; began(s.start_ns))
					Add(kTallies, Source<ft_tally>{run, n, s});
			for (size_t i = t.first_iteration; i < t.first_iteration + t.iteration_count; i++)
				if (const ft_span &s = run.iterations[i]; began(s.start_ns))
					Add(kIterations, Source<ft_span>{run, n, s});
			for (size_t i = t.first_cpu_sample; i < t.first_cpu_sample + t.cpu_sample_count; i++)
				if (const ft_cpu_sample &s = run.cpu_samples[i]; began(s.t_ns))
					Add(kSamples, SampleSource{{run, i, s}, activities});
		}
		for (const ft_io &io : run.ios)
			if (began(io.start_ns))
				Add(kDisk, Source<ft_io>{run, 0, io});
		for (const ft_writes &writes : run.writes)
			if (began(writes.start_ns))
				Add(kWrites, Source<ft_writes>{run, 0, writes});
		return Checked();
	}
	bool Window(const Explanation &e, const Run &run) override
	{
		const Requests &q = run.requests;
		for (size_t i = q.lead; i < q.size() && ok_; i++)
			Add(kRequests, RequestSource{q, i, e.blame.threshold_ns});
		return Checked();
	}
	bool End(const Explanation &e) override
	{
		AddFacts(e);
		for (size_t i = 0; i < batches_.size(); i++)
			if (batches_[i].rows())
				Write(i);
		ok_ = ok_ && sink_->Close();
		return Checked();
	}

private:
	bool Checked() { return ok_ || Fail(sink_->error()); }
	void Open(const Run &run)
	{
		if (std::exchange(opened_, true))
			return;
		clock_ = WallClock(run);
		for (size_t i = 0; i < kinds_.size(); i++)
			for (size_t c = 0; c < kinds_[i].columns.size(); c++)
				if (const TableColumn &column = kinds_[i].columns[c]; column.names)
					batches_[i].SetNames(c, column.names(run));
		ok_ = sink_->Open(kinds_);
	}
	void Write(size_t table)
	{
		ok_ = ok_ && sink_->Write(table, batches_[table]);
		batches_[table].Clear();
	}
	// Adds a row to a table if it is wanted.
	template <class From, class... Getters> void Add(const Table<Getters...> &table, const From &from)
	{
		const size_t at = at_[IndexOf(table)];
		if (at == SIZE_MAX)
			return;
		if (batches_[at].rows() >= kBatchRows)
			Write(at);
		Batch &row = batches_[at].Row();
		std::apply(
		    [&](const auto &...fields) {
			    (Put(fields.type.column, ValueOf(fields.get, from), &row), ...);
		    },
		    table.columns);
	}
	template <class Value> void Put(ColumnType type, Value value, Batch *row)
	{
		if constexpr (requires { value.has_value(); }) {
			if (value)
				Put(type, std::move(*value), row);
			else
				row->Unknown();
		} else if constexpr (std::is_convertible_v<Value, std::string>) {
			row->Text(std::move(value));
		} else if (type == ColumnType::Double) {
			row->Number(std::bit_cast<int64_t>(static_cast<double>(value)));
		} else if (type == ColumnType::Time) {
			Put(ColumnType::Int, Known(clock_.At(static_cast<uint64_t>(value))), row);
		} else if (type == ColumnType::Name) {
			row->Name(static_cast<size_t>(value));
		} else {
			row->Number(static_cast<int64_t>(value));
		}
	}
	void AddFacts(const Explanation &e)
	{
		Add(kRuns, RunRow{{e.run, 0, e.blame}, e});
		for (const CauseRow &row : e.blame.causes)
			Add(kCausesTable, row);
		for (const HopRow &row : e.blame.hops)
			if (row.hop != kNoHop)
				Add(kHops, HopSource{{e.run, 0, row},
						     HopNameOf(e.run, e.hop_threads, row.hop,
							       e.blame.from_iterations)});
		for (size_t n = 0; n < e.episodes.size(); n++) {
			const Episode &episode = e.episodes[n];
			Add(kEpisodes, Source<Episode>{e.run, n, episode});
			for (const EpisodeCause &c : episode.causes)
				Add(kEpisodeCauses, Source<EpisodeCause>{e.run, n, c});
			for (size_t i = 0; i < episode.evidence.size(); i++)
				Add(kEvidence, SentenceSource{n, i, episode.evidence[i]});
		}
		for (size_t n = 0; n < e.snapshots.all.size(); n++)
			Add(kSnapshots, Source<Snapshot>{e.run, n, e.snapshots.all[n]});
		for (const Account &a : e.accounts)
			Add(kThreads, ThreadSource{{e.run, a.thread, e.run.threads[a.thread]},
						   a,
						   IsServing(e, a.thread)});
		for (size_t n = 1; n < e.run.stacks.size(); n++)
			Add(kStacks, Source<Stack>{e.run, n, e.run.stacks[n]});
		for (const Series &series : e.run.series) {
			const std::string labels = JsonText(series.labels);
			for (const Sample &s : series.samples)
				Add(kMetrics, SeriesSource{series, labels, s});
		}
		for (size_t n = 0; n < e.run.connections.size(); n++)
			Add(kConnections, Source<Connection>{e.run, n, e.run.connections[n]});
		for (const ft_drop &d : e.run.drops)
			Add(kDrops, d);
		for (const Mark &m : e.run.marks)
			Add(kMarks, m);
	}

	std::unique_ptr<TableSink> sink_;
	std::vector<TableKind> kinds_;
	std::vector<Batch> batches_; // per kind
	std::vector<size_t> at_;     // per Tables(): the index of its kind, or SIZE_MAX
	WallClock clock_;
	bool opened_ = false, ok_ = true;
};

} // namespace

const std::vector<TableKind> &Tables()
{
	static const std::vector<TableKind> tables =
	    std::apply([](const auto &...table) { return std::vector{KindOf(table)...}; }, kTables);
	return tables;
}

std::unique_ptr<Exporter> MakeTables(std::unique_ptr<TableSink> sink, const std::vector<std::string> &tables)
{
	return std::make_unique<TablesExporter>(std::move(sink), tables);
}

} // namespace forktail::analysis::exports
