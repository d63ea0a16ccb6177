// SPDX-License-Identifier: MIT
// Pairs to differences, and differences to verdicts. With several pairs each is one observation; with only
// one the bootstrap gives the intervals.
#include "analysis/compare.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "common/format.h"
#include "comparison.h"

namespace forktail::analysis::compare
{

namespace
{

constexpr double kLevel = 0.05;

using Get = std::function<double(const RunSample &)>;

struct Judging {
	const CompareOptions &options;
	Comparison &c;
	PairIntervals alone; // set for one pair only

	bool one() const { return c.a.runs.size() == 1; }
	size_t pairs() const { return c.a.runs.size(); }
};

std::vector<double> ValuesOf(const ComparedSide &side, const Get &get)
{
	std::vector<double> values;
	for (const RunSample &run : side.runs)
		values.push_back(get(run));
	return values;
}

// A difference by ratios, for a figure above 0 on both sides.
Difference RatioOf(Judging *j, const std::string &name, Unit unit, const Get &get, const Interval &alone)
{
	Difference d;
	d.name = name;
	d.unit = unit;
	std::vector<double> a = ValuesOf(j->c.a, get), b = ValuesOf(j->c.b, get), logs;
	d.a = MedianOf(a);
	d.b = MedianOf(b);
	for (size_t i = 0; i < a.size(); i++)
		logs.push_back(std::log(std::max(b[i], 1e-9) / std::max(a[i], 1e-9)));
	double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
	Interval interval = j->one() ? alone : SignFlipInterval(logs);
	d.ratio = std::exp(mean);
	d.ratio_interval = {interval.known, std::exp(interval.low), std::exp(interval.high)};
	d.change = d.a * (d.ratio - 1);
	d.change_interval = {interval.known, d.a * (d.ratio_interval.low - 1),
			     d.a * (d.ratio_interval.high - 1)};
	d.p = SignFlipP(logs);
	for (double &log : logs)
		log = -log;
	d.p_better = SignFlipP(logs);
	d.verdict = j->one() ? Verdict::Advisory : Verdict::Inconclusive;
	return d;
}

// A difference by subtraction, for a figure that may be 0.
Difference SumOf(Judging *j, const std::string &name, Unit unit, const Get &get, const Interval &alone)
{
	Difference d;
	d.name = name;
	d.unit = unit;
	std::vector<double> a = ValuesOf(j->c.a, get), b = ValuesOf(j->c.b, get), differences;
	for (size_t i = 0; i < a.size(); i++)
		differences.push_back(b[i] - a[i]);
	auto mean = [](const std::vector<double> &v) {
		return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
	};
	d.a = mean(a);
	d.b = mean(b);
	d.ratio = d.a > 0 ? d.b / d.a : std::numeric_limits<double>::quiet_NaN();
	d.change = d.b - d.a;
	d.change_interval = j->one() ? alone : SignFlipInterval(differences);
	d.p = SignFlipP(differences);
	for (double &difference : differences)
		difference = -difference;
	d.p_better = SignFlipP(differences);
	d.verdict = j->one() ? Verdict::Advisory : Verdict::Inconclusive;
	return d;
}

// The mean composition of requests near a percentile, over the runs of a side for which it is known.
bool MeanComposition(const ComparedSide &side, Composition RunSample::*at, ByCause *mean)
{
	size_t known = 0;
	*mean = {};
	for (const RunSample &run : side.runs) {
		if (!(run.*at).known)
			continue;
		known++;
		for (size_t c = 0; c < mean->size(); c++)
			(*mean)[c] += (run.*at).ns[c];
	}
	for (double &ns : *mean)
		ns /= static_cast<double>(std::max<size_t>(known, 1));
	return known > 0;
}

void AddCauses(const Comparison &c, Composition RunSample::*at, Difference *d)
{
	ByCause a, b;
	if (!MeanComposition(c.a, at, &a) || !MeanComposition(c.b, at, &b))
		return;
	for (size_t i = 0; i < a.size(); i++)
		if (a[i] > 0 || b[i] > 0)
			d->causes.push_back({static_cast<Cause>(i), a[i], b[i]});
	std::sort(d->causes.begin(), d->causes.end(), [](const CauseChange &one, const CauseChange &other) {
		return std::abs(one.change_ns()) > std::abs(other.change_ns());
	});
}

void Percentiles(Judging *j)
{
	struct Row {
		const char *name;
		uint64_t Latencies::*value;
		bool judged;
		Composition RunSample::*at;
	};
	static const Row rows[] = {{"p50", &Latencies::p50, true, nullptr},
				   {"p90", &Latencies::p90, false, nullptr},
				   {"p99", &Latencies::p99, true, &RunSample::at_p99},
				   {"p99.9", &Latencies::p99_9, true, &RunSample::at_p99_9},
				   {"p99.99", &Latencies::p99_99, false, nullptr},
				   {"max", &Latencies::max, false, nullptr}};
	for (size_t i = 0; i < std::size(rows); i++) {
		const Row &row = rows[i];
		Difference d = RatioOf(
		    j, row.name, Unit::Nanoseconds,
		    [&](const RunSample &s) { return static_cast<double>(s.latencies.*row.value); },
		    i < kQuantiles ? j->alone.log_ratio[i] : Interval());
		d.judged = row.judged;
		if (row.at)
			AddCauses(j->c, row.at, &d);
		j->c.percentiles.push_back(d);
	}
}

void Causes(Judging *j)
{
	Comparison &c = j->c;
	for (ComparedSide *side : {&c.a, &c.b}) {
		side->request_seconds = side->stalled_seconds = {};
		double runs = static_cast<double>(side->runs.size());
		for (const RunSample &run : side->runs)
			for (size_t i = 0; i < run.request_seconds.size(); i++) {
				side->request_seconds[i] += run.request_seconds[i] / runs;
				side->stalled_seconds[i] += run.stalled_seconds[i] / runs;
			}
	}
	for (size_t i = 0; i < kCauses; i++) {
		const char *name = CauseName(static_cast<Cause>(i));
		if (c.a.request_seconds[i] > 0 || c.b.request_seconds[i] > 0)
			c.causes.push_back(SumOf(
			    j, name, Unit::Seconds, [i](const RunSample &s) { return s.request_seconds[i]; },
			    j->alone.request_seconds[i]));
		if (c.a.stalled_seconds[i] > 0 || c.b.stalled_seconds[i] > 0)
			c.stalled.push_back(SumOf(j, name, Unit::Seconds,
						  [i](const RunSample &s) { return s.stalled_seconds[i]; },
						  {}));
	}
	for (std::vector<Difference> *list : {&c.causes, &c.stalled})
		std::sort(list->begin(), list->end(), [](const Difference &one, const Difference &other) {
			return std::abs(one.change) > std::abs(other.change);
		});
}

EpisodeSum EpisodesOf(const ComparedSide &side, size_t cause)
{
	EpisodeSum sum;
	for (const RunSample &run : side.runs) {
		const EpisodeSum &one = run.episodes[cause];
		sum.count += one.count;
		sum.requests += one.requests;
		sum.worst_ns = std::max(sum.worst_ns, one.worst_ns);
		sum.longest_ns = std::max(sum.longest_ns, one.longest_ns);
		sum.request_seconds += one.request_seconds;
	}
	return sum;
}

void Episodes(Judging *j)
{
	Comparison &c = j->c;
	for (size_t i = 0; i < kCauses; i++) {
		EpisodeChange e;
		e.cause = static_cast<Cause>(i);
		e.a = EpisodesOf(c.a, i);
		e.b = EpisodesOf(c.b, i);
		if (!e.a.count && !e.b.count)
			continue;
		e.per_run = SumOf(
		    j, CauseName(e.cause), Unit::Count,
		    [i](const RunSample &s) { return static_cast<double>(s.episodes[i].count); },
		    j->alone.episodes[i]);
		c.episodes.push_back(e);
	}
	std::stable_sort(c.episodes.begin(), c.episodes.end(),
			 [](const EpisodeChange &one, const EpisodeChange &other) {
				 return one.a.request_seconds + one.b.request_seconds >
					other.a.request_seconds + other.b.request_seconds;
			 });
}

Verdict Decide(const CompareOptions &options, const Difference &d, double holm_better)
{
	const double allowed = 1 + std::max(options.allowed, options.noise);
	if (!d.ratio_interval.known)
		return Verdict::Inconclusive;
	if (d.holm_p < kLevel && d.ratio_interval.low > allowed)
		return Verdict::Worse;
	if (holm_better < kLevel && d.ratio_interval.high < 1)
		return Verdict::Better;
	return d.ratio_interval.high < 1 + std::max(options.excluded, allowed - 1) ? Verdict::Same
										   : Verdict::Inconclusive;
}

// Sets the verdicts of the judged percentiles and the verdict of all.
void DecideAll(Judging *j)
{
	Comparison &c = j->c;
	std::vector<Difference *> judged;
	std::vector<double> worse, better;
	for (Difference &d : c.percentiles)
		if (d.judged) {
			judged.push_back(&d);
			worse.push_back(d.p);
			better.push_back(d.p_better);
		}
	worse = Holm(worse);
	better = Holm(better);
	c.verdict = Verdict::Same;
	bool improved = false, open = false, regressed = false;
	for (size_t i = 0; i < judged.size(); i++) {
		judged[i]->holm_p = worse[i];
		judged[i]->verdict = Decide(j->options, *judged[i], better[i]);
		improved |= judged[i]->verdict == Verdict::Better;
		open |= judged[i]->verdict == Verdict::Inconclusive;
		regressed |= judged[i]->verdict == Verdict::Worse;
	}
	c.verdict = regressed  ? Verdict::Worse
		    : open     ? Verdict::Inconclusive
		    : improved ? Verdict::Better
			       : Verdict::Same;
}

// Ignores runs without a partner.
void Pair(Comparison *c)
{
	size_t pairs = std::min(c->a.runs.size(), c->b.runs.size());
	if (c->a.runs.size() != c->b.runs.size())
		c->notes.push_back("A has " + common::Plural(c->a.runs.size(), "run", "runs") +
				   " and B has " + std::to_string(c->b.runs.size()) +
				   ": runs without a partner are ignored");
	c->a.runs.resize(pairs);
	c->b.runs.resize(pairs);
}

void NoteTrouble(Comparison *c)
{
	uint64_t drops[2] = {}, errors[2] = {};
	for (int side = 0; side < 2; side++)
		for (const RunSample &run : (side ? c->b : c->a).runs) {
			drops[side] += run.drops;
			errors[side] += run.errors;
		}
	if (drops[0] || drops[1])
		c->notes.push_back("the recorder dropped " + common::FormatCount(drops[0]) +
				   " events in A and " + common::FormatCount(drops[1]) +
				   " in B: their time is unattributed");
	if (errors[0] || errors[1])
		c->notes.push_back(common::FormatCount(errors[0]) + " requests failed in A and " +
				   common::FormatCount(errors[1]) + " in B; percentiles exclude them");
	size_t doubtful = static_cast<size_t>(
	    std::count_if(c->facts.begin(), c->facts.end(), [](const FactChange &f) { return f.matters; }));
	if (doubtful)
		c->notes.push_back("hosts or loads differ: that alone may explain the changes");
}

} // namespace

void Judge(const CompareOptions &options, Comparison *c)
{
	Judging j{options, *c, {}};
	Pair(c);
	c->advisory = j.one();
	c->allowed = options.allowed;
	c->excluded = options.excluded;
	c->noise = options.noise;
	c->slow_ns = options.slow_ns;
	c->facts = FactChanges(c->a, c->b);
	if (j.one())
		j.alone = BootstrapPair(c->a.runs[0], c->b.runs[0], options.seed);
	if (!j.alone.why.empty())
		c->notes.push_back(j.alone.why);
	Percentiles(&j);
	c->throughput = RatioOf(
	    &j, "throughput", Unit::PerSecond, [](const RunSample &s) { return s.rate; },
	    j.alone.rate_log_ratio);
	Causes(&j);
	Episodes(&j);
	c->fork_seconds =
	    SumOf(&j, "time in fork", Unit::Seconds, [](const RunSample &s) { return s.forks.seconds; }, {});
	c->fork_longest =
	    SumOf(&j, "longest fork", Unit::Nanoseconds,
		  [](const RunSample &s) { return static_cast<double>(s.forks.longest_ns); }, {});
	c->rss = SumOf(&j, "RSS", Unit::Bytes,
		       [](const RunSample &s) { return static_cast<double>(s.forks.rss_bytes); }, {});
	c->verdict = Verdict::Advisory;
	if (!j.one())
		DecideAll(&j);
	NoteTrouble(c);
	PutIntoWords(c);
}

bool CompareSides(const SideAsked &a, const SideAsked &b, const CompareOptions &asked, Comparison *out,
		  std::string *error, int *status)
{
	CompareOptions options = asked;
	const size_t all = a.runs.size() + b.runs.size();
	size_t done = 0;
	*out = Comparison();
	for (auto [side, from] : {std::pair{&out->a, &a}, std::pair{&out->b, &b}}) {
		side->given = from->given;
		for (const std::string &run : from->runs) {
			auto progress = [&](double share) {
				if (asked.progress)
					asked.progress((static_cast<double>(done) + share) /
						       static_cast<double>(all));
			};
			RunSample sample;
			if (!TakeSample(run, options.memory_bytes, progress, &options.slow_ns, &sample, error,
					status))
				return false;
			side->runs.push_back(std::move(sample));
			done++;
		}
	}
	Judge(options, out);
	return true;
}

double NoiseOf(const std::vector<RunSample> &runs)
{
	constexpr size_t kLeast = 4;
	double most = 0;
	if (runs.size() < kLeast)
		return 0;
	for (auto point : {&Latencies::p50, &Latencies::p99, &Latencies::p99_9}) {
		std::vector<double> more;
		for (const RunSample &a : runs)
			for (const RunSample &b : runs)
				if (&a < &b) {
					double ratio =
					    static_cast<double>(std::max<uint64_t>(b.latencies.*point, 1)) /
					    static_cast<double>(std::max<uint64_t>(a.latencies.*point, 1));
					more.push_back(std::max(ratio, 1 / ratio) - 1);
				}
		most = std::max(most, QuantileOf(more, 0.95));
	}
	return most;
}

int ExitStatusOf(const Comparison &c)
{
	return c.verdict == Verdict::Worse ? 1 : c.verdict == Verdict::Inconclusive ? 4 : 0;
}

// Finds the runs of a side, in the order in which they are paired.

namespace
{

namespace fs = std::filesystem;

// Natural order: "pair-9" before "pair-10".
bool Before(const std::string &a, const std::string &b)
{
	size_t i = 0, j = 0;
	auto digit = [](char c) { return isdigit(static_cast<unsigned char>(c)) != 0; };
	while (i < a.size() && j < b.size()) {
		if (!digit(a[i]) || !digit(b[j])) {
			if (a[i] != b[j])
				return a[i] < b[j];
			i++, j++;
			continue;
		}
		size_t from_a = a.find_first_not_of('0', i), from_b = b.find_first_not_of('0', j);
		for (from_a = std::min(from_a, a.size()), i = from_a; i < a.size() && digit(a[i]);)
			i++;
		for (from_b = std::min(from_b, b.size()), j = from_b; j < b.size() && digit(b[j]);)
			j++;
		if (i - from_a != j - from_b)
			return i - from_a < j - from_b;
		if (int order = a.compare(from_a, i - from_a, b, from_b, j - from_b))
			return order < 0;
	}
	return a.size() - i < b.size() - j;
}

bool HoldsRecordings(const fs::path &directory)
{
	std::error_code ec;
	for (const auto &entry : fs::directory_iterator(directory, ec))
		if (entry.path().extension() == ".forktail" && entry.is_regular_file(ec))
			return true;
	return false;
}

// The runs at or below a directory. Directories within a run belong to it.
void RunsBelow(const fs::path &directory, int depth, std::vector<std::string> *runs)
{
	if (HoldsRecordings(directory)) {
		runs->push_back(directory);
		return;
	}
	std::error_code ec;
	for (const auto &entry : fs::directory_iterator(directory, ec))
		if (depth > 0 && entry.is_directory(ec) && !entry.is_symlink(ec))
			RunsBelow(entry.path(), depth - 1, runs);
}

} // namespace

bool FindRuns(const std::string &given, std::vector<std::string> *runs, std::string *error)
{
	constexpr int kDepth = 4; // as deep as the lab's directories
	std::error_code ec;
	runs->clear();
	if (!fs::exists(given, ec)) {
		*error = given + " does not exist";
		return false;
	}
	if (!fs::is_directory(given, ec) || HoldsRecordings(given)) {
		runs->push_back(given);
		return true;
	}
	for (const auto &entry : fs::directory_iterator(given, ec)) {
		std::vector<std::string> below;
		if (entry.is_directory(ec))
			RunsBelow(entry.path(), kDepth, &below);
		if (below.size() > 1) {
			*error = entry.path().string() + " holds " + std::to_string(below.size()) +
				 " runs. Name the run to compare";
			return false;
		}
		runs->insert(runs->end(), below.begin(), below.end());
	}
	std::sort(runs->begin(), runs->end(), Before);
	if (!runs->empty())
		return true;
	*error = given + " and its directories hold no recording (*.forktail)";
	return false;
}

} // namespace forktail::analysis::compare
