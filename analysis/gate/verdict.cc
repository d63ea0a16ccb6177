// SPDX-License-Identifier: MIT
// See verdict.h. The reason for a percentile is what-if, by the rule of the answer (lead.h). Without
// what-if (for one operation, say) it is the cause with most of the slow requests' time.
#include "verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/format/units.h"

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
	return any(Verdict::kBroken) ? 1 : any(Verdict::kNotKnown) ? 3 : 0;
}

} // namespace forktail::analysis::gate
