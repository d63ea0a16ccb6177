// SPDX-License-Identifier: MIT
// Reads limits, judges each, and prints the verdicts.
//
// The reason for a percentile is what-if, by the rule of the answer (passes.h). Without what-if (for one
// operation, say) it is the cause with most of the slow requests' time.
#include "analysis/gate.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <strings.h>

#include "analysis/text.h"
#include "analysis/timeline.h"
#include "common/format.h"
#include "common/json.h"
#include "common/toml.h"

namespace forktail::analysis::gate
{

namespace
{

// The first evidence sentence of the episode at an instant, or of the one in which a cause had most time.
void AddEpisode(const Explanation &e, Cause cause, uint64_t at_ns, Verdict *v)
{
	const Episode *found = nullptr;
	uint64_t most_ns = 0;
	for (const Episode &episode : e.episodes) {
		if (at_ns && episode.start_ns <= at_ns && at_ns < episode.end_ns)
			found = &episode;
		for (const EpisodeCause &c : episode.causes)
			if (!at_ns && c.cause == cause && c.time_ns > most_ns) {
				most_ns = c.time_ns;
				found = &episode;
			}
	}
	if (found && !found->evidence.empty())
		v->evidence =
		    "at " + common::FormatOffset(found->start_ns, e.zero_ns) + ": " + found->evidence[0];
}

void AddWhatIf(const Explanation &e, const NamedLatency &figure, Verdict *v)
{
	const Lead lead = FindLead(e.blame, figure, true);
	if (lead.kind == Lead::Kind::Unattributed) {
		v->cause = CauseName(Cause::Unknown);
		v->reason = common::FormatPercent(e.blame.RowOf(Cause::Unknown).share) +
			    " of the slow requests' time has no recorded cause";
		return;
	}
	if (!lead.without_ns)
		return;
	std::string names;
	for (Cause cause : lead.causes)
		names += (names.empty()			? ""
			  : cause == lead.causes.back() ? " and "
							: ", ") +
			 std::string(CauseName(cause));
	v->cause = CauseName(lead.causes[0]);
	v->reason = "without " + names + " it would be " + common::FormatDuration(lead.without_ns);
	AddEpisode(e, lead.causes[0], 0, v);
}

void AddMostTime(const RunFigures &run, const std::string &operation, Verdict *v)
{
	const std::array<uint64_t, kCauses> times = run.TimesOf(operation);
	const auto most = std::max_element(times.begin(), times.end());
	uint64_t all_ns = 0;
	for (uint64_t ns : times)
		all_ns += ns;
	const Cause cause = static_cast<Cause>(most - times.begin());
	if (!*most || cause == Cause::Unknown)
		return;
	v->cause = CauseName(cause);
	v->reason = v->cause + " took " +
		    common::FormatShare(static_cast<double>(*most) / static_cast<double>(all_ns)) + " of " +
		    (operation.empty() ? "" : "its ") + "slow requests' time";
	AddEpisode(run.explanation(), cause, 0, v);
}

void AddCause(const RunFigures &run, const limit &l, Cause cause, Verdict *v)
{
	const Explanation &e = run.explanation();
	const CauseWatch &watch = run.watch(cause);
	v->cause = CauseName(cause);
	const bool longest = l.figure == LIMIT_MAXIMUM && watch.longest_ns;
	if (longest)
		v->reason = "in the request that was due at " +
			    common::FormatOffset(watch.start_ns, e.zero_ns) + " and took " +
			    common::FormatDuration(watch.latency_ns);
	AddEpisode(e, cause, longest ? watch.start_ns : 0, v);
}

void AddReason(const RunFigures &run, const limit &l, Verdict *v)
{
	Cause cause;
	if (RunFigures::CauseOf(l, &cause)) {
		if (run.watch(cause).longest_ns)
			AddCause(run, l, cause, v);
		return;
	}
	const NamedLatency *latency = ExplainedLatency(l);
	const bool has_what_if = latency && latency->percentile >= kLowestWithout;
	if (has_what_if && !*l.of)
		AddWhatIf(run.explanation(), *latency, v);
	else if (has_what_if || l.figure == LIMIT_EPISODES || l.figure == LIMIT_STDDEV ||
		 (l.figure == LIMIT_PERCENTILE && l.percentile > 90))
		AddMostTime(run, l.of, v);
}

std::string Subject(const limit &l)
{
	return std::string(l.of) + (*l.of ? " " : "") + l.figure_name;
}

// "1.2 ms": a value of the base.
std::string Number(const limit &l, double value)
{
	char text[64];
	const bool time = l.figure <= LIMIT_STDDEV || l.figure == LIMIT_TOTAL;
	if (time)
		return common::FormatDuration(static_cast<uint64_t>(std::llround(value)));
	snprintf(text, sizeof text, "%.5g%s%s", value, *l.unit ? " " : "", l.unit);
	return text;
}

Verdict JudgeOne(const AskedLimit &asked, const limit &l, limit_reading reading, const RunFigures &run,
		 const RunFigures *base)
{
	Verdict v;
	v.asked = asked;
	v.by = l;
	v.base = l.comparison == LIMIT_NO_WORSE;
	std::string why;
	v.value = run.Value(l, &why);
	if (v.base && !std::isnan(v.value)) {
		v.base_value = base ? base->Value(l, &why) : NAN;
		if (!std::isnan(v.base_value))
			v.by = limit_against(&l, v.base_value);
	}
	if (std::isnan(v.value) || std::isnan(v.base_value)) {
		v.sentence = Subject(l) + " is unknown" + (std::isnan(v.base_value) ? " for BASE" : "") +
			     (why.empty() ? "" : ": " + why);
		return v;
	}
	char text[700];
	limit_sentence(&v.by, reading, v.value, text, sizeof text);
	v.sentence = text;
	if (v.base)
		v.sentence += " (BASE: " + Number(v.by, v.base_value) + ")";
	v.outcome = limit_broken(&v.by, reading, v.value) ? Verdict::kBroken : Verdict::kKept;
	// Too little work, or a figure that is too low, has no cause to blame.
	const bool high = v.value >= v.by.value && limit_more_is_worse(v.by.figure);
	if (v.outcome == Verdict::kBroken && (high || l.cause))
		AddReason(run, l, &v);
	return v;
}

} // namespace

std::string Verdict::text() const
{
	return sentence + (reason.empty() ? "" : ": " + reason) + (evidence.empty() ? "" : "; " + evidence);
}

std::vector<Verdict> Judge(const AskedLimits &limits, limit_reading reading, const RunFigures &run,
			   const RunFigures *base)
{
	std::vector<Verdict> verdicts;
	for (size_t i = 0; i < limits.asked.size(); i++)
		verdicts.push_back(JudgeOne(limits.asked[i], limits.limits[i], reading, run, base));
	return verdicts;
}

int StatusOf(const std::vector<Verdict> &verdicts)
{
	auto any = [&](Verdict::Outcome outcome) {
		return std::any_of(verdicts.begin(), verdicts.end(),
				   [&](const Verdict &v) { return v.outcome == outcome; });
	};
	return any(Verdict::kBroken) ? 1 : any(Verdict::kNotKnown) ? 4 : 0;
}

// An unknown key is an error: a misspelled limit must not count as met.

namespace
{

using common::Table;

void ReadOne(Table *file, const toml::node &node, AskedLimits *limits)
{
	AskedLimit asked;
	std::string why;
	if (const auto *text = node.as_string())
		asked.text = text->get();
	else if (const toml::table *table = node.as_table()) {
		for (const auto &[key, value] : *table) {
			const auto *string = value.as_string();
			if (!string || (key.str() != "limit" && key.str() != "name"))
				return file->RefuseAt(
				    value, "`" + std::string(key.str()) +
					       "`: a limit takes only `limit` and `name`, both strings");
			(key.str() == "limit" ? asked.text : asked.name) = string->get();
		}
	} else {
		return file->RefuseAt(node,
				      "a limit must be a string or { limit = \"...\", name = \"...\" }");
	}
	if (!AddLimit(asked, LIMIT_HAS_TO_HOLD, limits, &why))
		file->RefuseAt(node, why);
}

void ReadAll(Table *file, AskedLimits *limits)
{
	for (const auto &[key, node] : file->nodes()) {
		const toml::array *list = key.str() == "limits" ? node.as_array() : nullptr;
		if (key.str() == "slow" && node.is_string())
			limits->slow = node.as_string()->get();
		else if (!list)
			file->RefuseAt(node,
				       "`" + std::string(key.str()) +
					   "`: only `limits` (a list) and `slow` (a string) are allowed");
		else
			for (const toml::node &one : *list)
				ReadOne(file, one, limits);
	}
}

} // namespace

bool AddLimit(const AskedLimit &asked, limit_reading reading, AskedLimits *limits, std::string *error)
{
	if (strncasecmp(asked.text.c_str(), "no worse than ", 14) == 0) {
		for (const char *figure : {"p50 ", "p99 ", "p99.9 "})
			if (!AddLimit({figure + asked.text, asked.name}, reading, limits, error))
				return false;
		return true;
	}
	limit l;
	char why[700];
	if (!limit_parse(asked.text.c_str(), &l, why, sizeof why) ||
	    (reading == LIMIT_HAS_TO_HOLD && !limit_can_hold(&l, asked.text.c_str(), why, sizeof why))) {
		*error = why;
		return false;
	}
	Cause cause;
	if (l.cause && !CauseByName(l.of, &cause)) {
		*error = "unknown cause \"" + std::string(l.of) + "\" in \"" + asked.text +
			 "\". forktail causes lists them";
		return false;
	}
	limits->asked.push_back(asked);
	limits->limits.push_back(l);
	return true;
}

bool ReadLimitsFile(const std::string &path, AskedLimits *limits, std::string *error)
{
	errno = 0;
	std::ifstream file(path);
	std::stringstream text;
	if (!file || !(text << file.rdbuf())) {
		*error = "cannot read " + path + ": " + (errno ? strerror(errno) : "the file is empty");
		return false;
	}
	return common::ReadTables(
	    text.str(), path, "a limits file", [&](Table *all) { ReadAll(all, limits); }, error);
}

namespace
{

void Count(const Requests &q, size_t i, OperationFigures *f)
{
	f->requests++;
	f->misses += q.status[i] == FT_STATUS_MISS;
	if (IsError(q.status[i])) {
		f->errors++;
		return;
	}
	const uint64_t latency = q.Latency(i);
	f->latencies.Add(latency);
	f->min_ns = std::min(f->min_ns, latency);
	const double value = static_cast<double>(latency), off = value - f->mean_ns;
	f->mean_ns += off / static_cast<double>(f->answered());
	f->square_sum += off * (value - f->mean_ns);
}

// Finds the percentiles of one operation.
struct Search {
	OperationFigures *figures;
	std::unique_ptr<RankFinder> finder;
};

void FindPercentiles(const Run &run, Log *log, Operations *wanted)
{
	std::vector<Search> searches;
	for (auto &[name, f] : *wanted) {
		std::vector<uint64_t> ranks;
		for (const auto &[p, value] : f.percentiles)
			ranks.push_back(Rank(f.answered(), p));
		if (f.answered() && !ranks.empty())
			searches.push_back({&f, std::make_unique<RankFinder>(f.latencies, ranks)});
	}
	auto done = [](const Search &s) { return s.finder->Done(); };
	while (!std::all_of(searches.begin(), searches.end(), done)) {
		ForWindows(log, [&] {
			const Requests &q = run.requests;
			for (size_t i = q.lead; i < q.size(); i++)
				for (const Search &s : searches)
					if (s.figures->ops[q.op[i]] && !IsError(q.status[i]))
						s.finder->Add(q.Latency(i));
		});
		for (const Search &s : searches)
			if (!s.finder->Done())
				s.finder->EndPass();
	}
	for (const Search &s : searches) {
		size_t i = 0;
		for (auto &[p, value] : s.figures->percentiles)
			value = s.finder->Value(i++);
	}
}

} // namespace

double OperationFigures::stddev_ns() const
{
	return answered() ? std::sqrt(square_sum / static_cast<double>(answered())) : 0;
}

void FindOperations(const Run &run, Log *log, Operations *wanted)
{
	if (wanted->empty())
		return;
	for (auto &[name, f] : *wanted)
		for (size_t op = 0; op < f.ops.size(); op++)
			f.ops[op] = name.empty() || (op < run.ops.size() &&
						     strcasecmp(run.ops[op].c_str(), name.c_str()) == 0);
	ForWindows(log, [&] {
		const Requests &q = run.requests;
		for (size_t i = q.lead; i < q.size(); i++)
			for (auto &[name, f] : *wanted)
				if (f.ops[q.op[i]])
					Count(q, i, &f);
	});
	for (auto &[name, f] : *wanted)
		f.known = f.requests > 0;
	FindPercentiles(run, log, wanted);
}

namespace
{

using Out = nlohmann::ordered_json;

// Met, broken, unknown.
const char *const kWords[] = {"ok  ", "FAIL", "NONE"};

const char *UnitOf(const limit &l)
{
	if (l.figure <= LIMIT_STDDEV || l.figure == LIMIT_TOTAL)
		return "ns";
	if (l.figure == LIMIT_ERROR_PERCENT || l.figure == LIMIT_SHARE)
		return "percent";
	return "";
}

Out NumberOrNull(double value)
{
	return std::isfinite(value) ? Out(value) : Out();
}

std::string NameOf(const AskedLimit &asked)
{
	return asked.name.empty() ? asked.text : asked.name + " (" + asked.text + ")";
}

Out JsonOf(const Verdict &v)
{
	const bool known = v.outcome != Verdict::kNotKnown;
	Out out = {{"limit", common::Visible(v.asked.text)}, {"name", common::Visible(v.asked.name)}};
	out["kept"] = known ? Out(v.outcome == Verdict::kKept) : Out();
	out["value"] = NumberOrNull(v.value);
	out["bound"] = known ? NumberOrNull(v.by.value) : Out();
	if (v.base)
		out["base_value"] = NumberOrNull(v.base_value);
	out["unit"] = UnitOf(v.by);
	out["sentence"] = common::Visible(v.sentence);
	out["cause"] = v.cause;
	out["reason"] = common::Visible(v.reason);
	out["evidence"] = common::Visible(v.evidence);
	return out;
}

void AddNotes(const Run &run, const std::string &whose, std::vector<std::string> *notes)
{
	for (const std::string &warning : run.warnings)
		notes->push_back(whose + warning);
	for (const Missing &missing : run.missing)
		notes->push_back(whose + "not recorded: " + missing.what + " (" + missing.why + ")");
}

} // namespace

Gated GatedOf(const Explanation &run, const Explanation *base)
{
	Gated gated = {run.run.path, base ? base->run.path : "", AnswerText(run), {}};
	AddNotes(run.run, "", &gated.notes);
	if (base)
		AddNotes(base->run, "BASE: ", &gated.notes);
	return gated;
}

std::string GateText(const Gated &gated, const std::vector<Verdict> &verdicts)
{
	// The reason comes first for the reader of a broken build.
	std::string out = StatusOf(verdicts) == 1 ? common::Visible(gated.answer) + "\n" : "";
	size_t broken = 0, unknown = 0;
	for (const Verdict &v : verdicts) {
		out += std::string(kWords[v.outcome]) + " " +
		       common::Visible((v.asked.name.empty() ? "" : v.asked.name + ": ") + v.text()) + "\n";
		broken += v.outcome == Verdict::kBroken;
		unknown += v.outcome == Verdict::kNotKnown;
	}
	for (const std::string &note : gated.notes)
		out += "note " + common::Visible(note) + "\n";
	const size_t all = verdicts.size();
	if (!broken && !unknown)
		return out + (all == 1 ? "The limit is met.\n"
				       : "All " + std::to_string(all) + " limits are met.\n");
	return out + std::to_string(broken) + " of " + std::to_string(all) +
	       (all == 1 ? " limit" : " limits") + " broken" +
	       (unknown ? ", " + std::to_string(unknown) + " unknown" : "") + ".\n";
}

std::string GateJson(const Gated &gated, const std::vector<Verdict> &verdicts)
{
	Out out = {{"forktail", FORKTAIL_VERSION}, {"run", common::Visible(gated.run)}};
	if (!gated.base.empty())
		out["base"] = common::Visible(gated.base);
	out["kept"] = StatusOf(verdicts) == 0;
	out["answer"] = common::Visible(gated.answer);
	out["limits"] = Out::array();
	for (const Verdict &v : verdicts)
		out["limits"].push_back(JsonOf(v));
	out["notes"] = Out::array();
	for (const std::string &note : gated.notes)
		out["notes"].push_back(common::Visible(note));
	return out.dump(2, ' ', false, Out::error_handler_t::replace) + "\n";
}

JunitSuite GateJunit(const Gated &gated, const std::vector<Verdict> &verdicts, double seconds)
{
	static const JunitCase::Outcome outcomes[] = {JunitCase::kPassed, JunitCase::kFailed,
						      JunitCase::kError};
	JunitSuite suite = {"forktail gate " + gated.run, {}};
	for (const Verdict &v : verdicts) {
		const bool kept = v.outcome == Verdict::kKept;
		// The run was read once for all limits.
		suite.cases.push_back({NameOf(v.asked), "forktail.gate", outcomes[v.outcome],
				       kept ? "" : v.text(), kept ? v.sentence : "",
				       seconds / static_cast<double>(verdicts.size())});
	}
	return suite;
}

} // namespace forktail::analysis::gate
