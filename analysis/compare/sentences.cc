// SPDX-License-Identifier: MIT
// See sentences.h. "Because" is used only if a rule knows what lengthens the cause, and that changed in the
// same direction. Other changed settings that are related to the cause follow "with".
#include "sentences.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "common/format/units.h"

namespace forktail::analysis::compare
{

const char *VerdictName(Verdict verdict)
{
	static const char *const names[] = {"same", "better", "worse", "inconclusive", "advisory"};
	return names[static_cast<size_t>(verdict)];
}

std::string ValueText(Unit unit, double value)
{
	double size = std::abs(value);
	char text[48];
	switch (unit) {
	case Unit::Nanoseconds:
		return common::FormatDuration(static_cast<uint64_t>(size + 0.5));
	case Unit::Seconds:
		return common::FormatDuration(static_cast<uint64_t>(size * 1e9 + 0.5));
	case Unit::Bytes:
		return common::FormatBytes(static_cast<uint64_t>(size + 0.5));
	case Unit::PerSecond:
		return common::FormatCount(static_cast<uint64_t>(size + 0.5)) + "/s";
	case Unit::Count:
		break;
	}
	if (size == std::floor(size))
		return common::FormatCount(static_cast<uint64_t>(size));
	snprintf(text, sizeof text, "%.1f", size);
	return text;
}

std::string ChangeText(Unit unit, double change)
{
	if (std::isinf(change))
		return change > 0 ? "unbounded" : "-unbounded";
	return (change < 0 ? "-" : "+") + ValueText(unit, change);
}

std::string IntervalText(const Difference &d)
{
	if (!d.change_interval.known)
		return "";
	return " [" + ChangeText(d.unit, d.change_interval.low) + ", " +
	       ChangeText(d.unit, d.change_interval.high) + "]";
}

std::string RatioText(const Difference &d)
{
	if (!std::isfinite(d.ratio))
		return "";
	char text[32];
	snprintf(text, sizeof text, "%+.1f %%", (d.ratio - 1) * 100);
	return text;
}

namespace
{

constexpr double kMuchOfIt = 0.15; // share of a percentile's change from which a cause is named
constexpr size_t kMostNamed = 3;
constexpr double kGrown = 1.05;

// A setting that may be related to a cause.
struct Lead {
	Cause cause;
	const char *setting;
};
const Lead kLeads[] = {
    {Cause::Fork, "save"},
    {Cause::Fork, "thp"},
    {Cause::CowCopy, "thp"},
    {Cause::PageZero, "thp"},
    {Cause::Fsync, "appendfsync"},
    {Cause::Fsync, "appendonly"},
    {Cause::FileWrite, "appendonly"},
    {Cause::FileWrite, "appendfsync"},
    {Cause::PageIn, "maxmemory"},
    {Cause::Reclaim, "maxmemory"},
    {Cause::ServerBusy, "tls"},
    {Cause::ServerBusy, "value_bytes"},
    {Cause::ServerBusy, "pipeline"},
    {Cause::ServerBusy, "rate"},
    {Cause::ServerBusy, "redis's version"},
    {Cause::RunQueue, "CPUs"},
};

// "because RSS 1.10 GB -> 2.30 GB", "with appendfsync everysec -> always", or "".
std::string ReasonFor(const Comparison &c, Cause cause, bool more)
{
	bool by_memory = cause == Cause::Fork || cause == Cause::CowCopy || cause == Cause::PageIn;
	double grown = c.rss.a > 0 ? c.rss.b / c.rss.a : 1;
	if (by_memory && (more ? grown > kGrown : grown < 1 / kGrown))
		return "because RSS " + ValueText(Unit::Bytes, c.rss.a) + " -> " +
		       ValueText(Unit::Bytes, c.rss.b);
	for (const Lead &lead : kLeads)
		for (const FactChange &fact : c.facts)
			if (lead.cause == cause && fact.name == lead.setting)
				return "with " + fact.name + " " + (fact.a.empty() ? "none" : fact.a) +
				       " -> " + (fact.b.empty() ? "none" : fact.b);
	return "";
}

// ": fork +11.9 ms, because RSS 1.10 GB -> 2.30 GB"
std::string CausesText(const Comparison &c, const Difference &d)
{
	std::string text;
	size_t named = 0;
	for (const CauseChange &cause : d.causes) {
		double change = cause.change_ns();
		if (change * d.change <= 0 || std::abs(change) < kMuchOfIt * std::abs(d.change) ||
		    named++ >= kMostNamed)
			continue;
		text += (text.empty() ? ": " : "; ") + std::string(CauseName(cause.cause)) + " " +
			ChangeText(Unit::Nanoseconds, change);
		if (std::string why = ReasonFor(c, cause.cause, change > 0); !why.empty())
			text += ", " + why;
	}
	return text;
}

std::string Sentence(const Comparison &c, const Difference &d)
{
	if (d.a == d.b)
		return "";
	std::string text = d.name + " " + ChangeText(d.unit, d.change) + IntervalText(d);
	return text + CausesText(c, d);
}

bool IsSignificant(const Difference &d)
{
	return d.change_interval.known && (d.change_interval.low > 0 || d.change_interval.high < 0);
}

// With few runs there is no interval: then large changes are reported.
bool IsLarge(const Comparison &c, const Difference &d)
{
	return d.judged && !d.change_interval.known && std::abs(d.ratio - 1) > c.excluded;
}

std::string Percent(double share)
{
	char text[32];
	snprintf(text, sizeof text, "%.3g %%", share * 100);
	return text;
}

std::string Names(const Comparison &c, Verdict verdict)
{
	std::string names;
	for (const Difference &d : c.percentiles)
		if (d.judged && d.verdict == verdict)
			names += (names.empty() ? "" : ", ") + d.name;
	return names;
}

std::string ReasonOf(const Comparison &c)
{
	const double allowed = std::max(c.allowed, c.noise);
	const std::string pairs = common::Plural(c.a.runs.size(), "pair", "pairs");
	switch (c.verdict) {
	case Verdict::Worse:
		return "B is more than " + Percent(allowed) + " worse at " + Names(c, Verdict::Worse) + " (" +
		       pairs + ", Holm p < 0.05)";
	case Verdict::Better:
		return "B is better at " + Names(c, Verdict::Better) +
		       ", and no judged percentile is worse (" + pairs + ")";
	case Verdict::Same:
		return "no judged percentile is more than " + Percent(allowed) +
		       " worse, and a regression of " + Percent(c.excluded) + " is ruled out (" + pairs + ")";
	case Verdict::Advisory:
		return "only one pair of runs: the intervals show the scatter within these runs, not between "
		       "runs. A verdict needs at least 6 pairs (forktail lab pairs)";
	case Verdict::Inconclusive:
		break;
	}
	if (c.a.runs.size() < kLeastPairs)
		return pairs + " cannot decide: a verdict needs at least 6 pairs, better 8";
	return "the runs cannot decide: for " + Names(c, Verdict::Inconclusive) +
	       " they neither show a regression above " + Percent(allowed) + " nor rule out one of " +
	       Percent(c.excluded) + " (" + pairs + "). Use more pairs, longer runs or a quieter host";
}

} // namespace

void PutIntoWords(Comparison *c)
{
	std::vector<Difference *> all;
	for (Difference &d : c->percentiles)
		all.push_back(&d);
	all.push_back(&c->throughput);
	for (Difference *d : all)
		d->sentence = Sentence(*c, *d);
	for (auto d = c->percentiles.rbegin(); d != c->percentiles.rend(); ++d)
		if (!d->sentence.empty() &&
		    (IsSignificant(*d) || d->verdict == Verdict::Worse || IsLarge(*c, *d)))
			c->changes.push_back(d->sentence);
	if (IsSignificant(c->throughput))
		c->changes.push_back(c->throughput.sentence);
	for (Difference &d : c->causes) {
		d.sentence =
		    "slow requests' time in " + d.name + " " + ChangeText(d.unit, d.change) + IntervalText(d);
		Cause cause;
		if (CauseByName(d.name.c_str(), &cause))
			if (std::string why = ReasonFor(*c, cause, d.change > 0); !why.empty())
				d.sentence += ", " + why;
		if (IsSignificant(d) && c->changes.size() < 8)
			c->changes.push_back(d.sentence);
	}
	c->reason = ReasonOf(*c);
}

} // namespace forktail::analysis::compare
