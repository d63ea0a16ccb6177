// SPDX-License-Identifier: MIT
// One side of a comparison: a run as figures and settings.
//
// A run is explained once, for its slow requests. Then its log is read once more, for latency by second.
#include <algorithm>
#include <bit>
#include <filesystem>
#include <map>
#include <set>

#include "analysis/explain.h"
#include "analysis/run.h"
#include "common/format.h"
#include "common/json.h"
#include "comparison.h"

namespace forktail::analysis::compare
{

uint32_t LatencyBucket(uint64_t ns)
{
	constexpr uint64_t below = uint64_t{1} << kBucketBits;
	if (ns < 2 * below)
		return static_cast<uint32_t>(ns);
	unsigned above = static_cast<unsigned>(std::bit_width(ns)) - 1 - kBucketBits;
	return static_cast<uint32_t>((above << kBucketBits) + (ns >> above));
}

uint64_t BucketNs(uint32_t bucket)
{
	constexpr uint32_t below = 1u << kBucketBits;
	if (bucket < 2 * below)
		return bucket;
	uint32_t above = (bucket >> kBucketBits) - 1;
	return static_cast<uint64_t>(bucket - (above << kBucketBits)) << above;
}

namespace
{

namespace fs = std::filesystem;

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kMostSeconds = 1 << 20; // later requests count in the last second
constexpr uint64_t kLeastForComposition = 10;

// The time by cause of slow requests with about one latency.
struct TimesAtLatency {
	uint64_t count = 0;
	std::array<uint64_t, kCauses> ns = {};
};

// Collects slow requests as the analysis finds them.
struct SlowSums {
	std::map<uint32_t, TimesAtLatency> by_latency;		     // by bucket
	std::map<uint64_t, std::array<uint64_t, kCauses>> by_second; // by second of CLOCK_MONOTONIC

	void Add(const SlowRequest &r, const Part *parts)
	{
		TimesAtLatency &made = by_latency[LatencyBucket(r.latency_ns)];
		auto &second = by_second[r.due_ns / kSecondNs];
		made.count++;
		for (size_t i = 0; i < r.part_count; i++) {
			made.ns[static_cast<size_t>(Index(parts[i].cause))] += parts[i].total_ns();
			second[static_cast<size_t>(Index(parts[i].cause))] += parts[i].total_ns();
		}
	}
};

// The composition of requests whose rank, from the slowest, is near that of a percentile: 0.5 to 1.5 times as
// many requests above them.
Composition CompositionAt(double percentile, const SlowSums &slow, uint64_t requests)
{
	double above = (1 - percentile / 100) * static_cast<double>(requests);
	double from = above * 0.5, to = std::max(above * 1.5, from + kLeastForComposition), passed = 0,
	       taken = 0;
	Composition made;
	for (auto at = slow.by_latency.rbegin(); at != slow.by_latency.rend() && passed < to; ++at) {
		double count = static_cast<double>(at->second.count);
		double share =
		    std::clamp(std::min(to, passed + count) - std::max(from, passed), 0.0, count) / count;
		passed += count;
		taken += share * count;
		for (size_t c = 0; c < made.ns.size(); c++)
			made.ns[c] += share * static_cast<double>(at->second.ns[c]);
	}
	made.known = taken >= kLeastForComposition / 2;
	for (double &ns : made.ns)
		ns = made.known ? ns / taken : 0;
	return made;
}

void AddFact(RunSample *s, const char *group, const std::string &name, const std::string &value)
{
	if (!value.empty())
		s->facts.push_back({group, name, value});
}

// Adds the load's settings from a manifest.
void AddLoadFacts(const common::Json &m, RunSample *s)
{
	static const char *const members[] = {
	    "deployment", "read_from",	 "arrival",   "rate",	  "connections", "idle",     "threads",
	    "pipeline",	  "batch",	 "busy_poll", "requests", "duration_s",	 "warmup_s", "keys",
	    "values",	  "value_bytes", "sets",      "gets",	  "replay",	 "seed",     "wait_replicas"};
	for (const char *member : members)
		if (const common::Json *value = common::Member(m, member))
			AddFact(s, "load", member, common::AsText(*value));
	const common::Json *infos = common::Member(m, "server_info");
	if (!infos || !infos->is_array() || infos->empty())
		return;
	static const char *const server_members[] = {"protocol", "resp", "version", "mode", "role", "tls"};
	for (const char *member : server_members)
		if (const common::Json *value = common::Member((*infos)[0], member))
			AddFact(s, "server", member, common::AsText(*value));
}

void AddFacts(const Run &run, RunSample *s)
{
	for (const RecordingFile *file : OverlaidFiles(run)) {
		const RecordingFile &f = *file;
		const common::Json m = common::ParseVisibleObject(f.manifest);
		bool load = f.program == "forktail-load";
		const char *group = load ? "load host" : "host";
		AddFact(s, group, "name", f.host);
		AddFact(s, group, "kernel", f.kernel);
		for (const char *member : {"machine", "cpu", "thp"})
			if (const common::Json *value = common::Member(m, member))
				AddFact(s, group, member, common::AsText(*value));
		if (const common::Json *cpus = common::Member(m, "cpus"))
			AddFact(s, group, "CPUs",
				cpus->is_array() ? std::to_string(cpus->size()) : common::AsText(*cpus));
		AddFact(s, load ? "load" : "recorder", "forktail's version", f.version);
		if (load)
			AddLoadFacts(m, s);
	}
	for (const Target &t : run.targets)
		AddFact(s, "server", "program", t.comm);
	for (const auto &[name, version] : run.info.versions)
		AddFact(s, "server", name + "'s version", version);
	for (const auto &[name, value] : run.info.redis_config)
		AddFact(s, "configuration", name, value.empty() ? "\"\"" : value);
	for (const Series &series : run.series)
		if (series.name == "redis.maxmemory" && !series.samples.empty())
			AddFact(s, "configuration", "maxmemory",
				common::FormatBytes(static_cast<uint64_t>(series.samples.back().value)));
	std::sort(s->facts.begin(), s->facts.end(), [](const RunFact &a, const RunFact &b) {
		return std::tie(a.group, a.name, a.value) < std::tie(b.group, b.name, b.value);
	});
	auto end = std::unique(s->facts.begin(), s->facts.end(), [](const RunFact &a, const RunFact &b) {
		return std::tie(a.group, a.name, a.value) == std::tie(b.group, b.name, b.value);
	});
	s->facts.erase(end, s->facts.end());
}

bool Serves(const Explanation &e, uint32_t thread)
{
	return std::find(e.serving.begin(), e.serving.end(), static_cast<int>(thread)) != e.serving.end();
}

// Forks of the serving threads, and the server's memory.
void AddForks(const Explanation &e, Reading *reading, RunSample *s)
{
	const Run &run = reading->run;
	reading->stretches.each([&](uint64_t from_ns, uint64_t to_ns) {
		for (size_t t = 0; t < run.threads.size(); t++) {
			if (!Serves(e, static_cast<uint32_t>(t)))
				continue;
			const Thread &thread = run.threads[t];
			for (size_t i = 0; i < thread.span_count; i++) {
				const ft_span &span = run.spans[thread.first_span + i];
				if (span.owner != FT_FORK || span.start_ns < from_ns ||
				    span.start_ns >= to_ns)
					continue;
				uint64_t length = span.duration_ns;
				s->forks.count++;
				s->forks.seconds += static_cast<double>(length) / 1e9;
				s->forks.longest_ns = std::max(s->forks.longest_ns, length);
			}
		}
	});
	s->forks.rss_bytes = run.info.rss_bytes;
	for (const Series &series : run.series)
		if (series.name == "target.rss")
			for (const forktail::analysis::Sample &sample : series.samples)
				s->forks.rss_bytes =
				    std::max(s->forks.rss_bytes, static_cast<uint64_t>(sample.value));
}

void AddCausesOf(const Explanation &e, RunSample *s)
{
	for (const CauseRow &row : e.blame.causes)
		s->request_seconds[static_cast<size_t>(Index(row.cause))] =
		    static_cast<double>(row.total_ns()) / 1e9;
	for (const Account &a : e.accounts)
		if (Serves(e, a.thread))
			for (size_t c = 0; c < kStallCauses; c++)
				s->stalled_seconds[c] += static_cast<double>(a.by_cause[c]) / 1e9;
}

void AddEpisodes(const Explanation &e, RunSample *s)
{
	for (const Episode &episode : e.episodes) {
		if (episode.causes.empty())
			continue;
		EpisodeSum &sum = s->episodes[static_cast<size_t>(Index(episode.causes[0].cause))];
		uint64_t length = episode.end_ns - episode.start_ns;
		sum.count++;
		sum.requests += episode.requests;
		sum.worst_ns = std::max(sum.worst_ns, episode.worst_ns);
		sum.longest_ns = std::max(sum.longest_ns, length);
		sum.request_seconds += static_cast<double>(episode.time_ns) / 1e9;
		s->longest_episode_ns = std::max(s->longest_episode_ns, length);
	}
}

// Latency by second, of answered requests as for percentiles.
void AddSeconds(const Explanation &e, Reading *reading, const SlowSums &slow, RunSample *s)
{
	const uint64_t zero_ns = e.first_ns;
	auto second_of = [&](uint64_t t_ns) {
		return std::min(t_ns > zero_ns ? (t_ns - zero_ns) / kSecondNs : 0, kMostSeconds - 1);
	};
	std::vector<std::map<uint32_t, uint32_t>> counts;
	ForWindows(reading->log.get(), [&] {
		const Requests &r = reading->run.requests;
		for (size_t i = r.lead; i < r.size(); i++) {
			if (IsError(r.status[i]))
				continue;
			size_t second = second_of(r.due_ns[i]);
			if (second >= counts.size())
				counts.resize(second + 1);
			counts[second][LatencyBucket(r.Latency(i))]++;
		}
	});
	s->by_second.resize(std::max<size_t>(counts.size(), 1));
	for (size_t i = 0; i < counts.size(); i++)
		s->by_second[i].latencies.assign(counts[i].begin(), counts[i].end());
	for (const auto &[t, ns] : slow.by_second) {
		SecondOfRun &second =
		    s->by_second[std::min(second_of(t * kSecondNs + kSecondNs / 2), s->by_second.size() - 1)];
		for (size_t c = 0; c < ns.size(); c++)
			if (ns[c])
				second.cause_ns.push_back({static_cast<Cause>(c), ns[c]});
	}
	for (const Episode &episode : e.episodes)
		if (!episode.causes.empty())
			s->by_second[std::min(second_of(episode.start_ns), s->by_second.size() - 1)]
			    .episodes.push_back(episode.causes[0].cause);
	// The last second is rarely complete, and would look slow.
	if (s->by_second.size() > 2)
		s->by_second.pop_back();
}

void Reduce(const Explanation &e, Reading *reading, const SlowSums &slow, RunSample *s)
{
	const Blame &b = e.blame;
	s->requests = b.count - b.errors;
	s->errors = b.errors;
	s->drops = DropCount(e.run);
	s->seconds = static_cast<double>(e.measured_ns) / 1e9;
	s->rate = s->seconds > 0 ? static_cast<double>(s->requests) / s->seconds : 0;
	s->latencies = b.latencies;
	s->slow_ns = b.threshold_ns;
	s->slow_requests = b.slow_count;
	s->slow_seconds = static_cast<double>(b.slow_ns) / 1e9;
	s->at_p99 = CompositionAt(99, slow, s->requests);
	s->at_p99_9 = CompositionAt(99.9, slow, s->requests);
	AddCausesOf(e, s);
	AddEpisodes(e, s);
	AddForks(e, reading, s);
	AddSeconds(e, reading, slow, s);
	AddFacts(e.run, s);
	s->shared_mode = e.run.shared_mode;
	s->notes = e.notes;
	s->notes.insert(s->notes.end(), e.run.warnings.begin(), e.run.warnings.end());
}

} // namespace

bool TakeSample(const std::string &path, uint64_t memory_bytes, const std::function<void(double)> &progress,
		uint64_t *slow_ns, RunSample *sample, std::string *error, int *status)
{
	SlowSums slow;
	ExplainOptions options;
	options.slow.ns = *slow_ns;
	options.memory_bytes = memory_bytes;
	options.progress = progress;
	options.tell = [&](const Run &, const SlowRequest &r, const Part *parts) { slow.Add(r, parts); };
	Reading reading;
	Explanation e(reading.run);
	if (!ExplainRun(path, options, &reading, &e, error, status))
		return false;
	if (e.blame.from_iterations || e.blame.count == e.blame.errors) {
		*error = path + " has no answered requests: nothing to compare";
		*status = 3;
		return false;
	}
	*sample = RunSample();
	sample->path = path;
	sample->name = fs::path(path).lexically_normal().filename();
	if (sample->name.empty())
		sample->name = fs::path(path).lexically_normal().parent_path().filename();
	Reduce(e, &reading, slow, sample);
	*slow_ns = sample->slow_ns;
	return true;
}

// Random seeds differ in any two runs. They are a difference between sides only if the runs of each side
// share one seed.

namespace
{

using Name = std::pair<std::string, std::string>; // group, name
using Values = std::map<Name, std::set<std::string>>;

Values FactValuesOf(const ComparedSide &side)
{
	Values values;
	for (const RunSample &run : side.runs)
		for (const RunFact &fact : run.facts)
			values[{fact.group, fact.name}].insert(fact.value);
	return values;
}

std::string Joined(const std::set<std::string> &values)
{
	std::string text;
	for (const std::string &value : values)
		text += (text.empty() ? "" : ", ") + value;
	return text;
}

// The order of the list: facts that make the comparison doubtful come first.
int OrderOf(const std::string &group)
{
	static const char *const order[] = {"host", "load host", "load", "server", "configuration"};
	return static_cast<int>(std::find(std::begin(order), std::end(order), group) - std::begin(order));
}

} // namespace

std::vector<FactChange> FactChanges(const ComparedSide &a, const ComparedSide &b)
{
	Values in_a = FactValuesOf(a), in_b = FactValuesOf(b);
	std::set<Name> names;
	for (const Values *values : {&in_a, &in_b})
		for (const auto &[name, set] : *values)
			names.insert(name);
	std::vector<FactChange> changes;
	for (const Name &name : names) {
		const std::set<std::string> &of_a = in_a[name], &of_b = in_b[name];
		if (of_a == of_b ||
		    (name.second == "seed" && (of_a.size() > 1 || of_b.size() > 1 || a.runs.size() == 1)))
			continue;
		// A fact that only one side's recorder knows is no difference.
		if (of_a.empty() != of_b.empty() && name.first != "configuration" && name.first != "load")
			continue;
		bool matters = name.first == "host" || name.first == "load host" || name.first == "load";
		changes.push_back({name.first, name.second, Joined(of_a), Joined(of_b), matters});
	}
	std::stable_sort(changes.begin(), changes.end(), [](const FactChange &one, const FactChange &other) {
		return OrderOf(one.group) < OrderOf(other.group);
	});
	return changes;
}

} // namespace forktail::analysis::compare
