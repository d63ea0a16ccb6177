// SPDX-License-Identifier: MIT
// Redis dates slow commands and latency events by the second. The observer adds the error of each time. An
// entry belongs to an episode if it may overlap it. A slow command is dated better where event-loop
// iterations were recorded: it ran in the shortest iteration of that time that is at least as long, or, where
// there is none, in the longest that is nearly as long.
#include "server_reports.h"

#include <algorithm>
#include <cctype>

#include "common/format/units.h"
#include "common/json/json_read.h"

namespace forktail::analysis
{

namespace
{

constexpr size_t kCommandBytes = 60;
// The error of a fork's time, because Redis is polled every second.
constexpr uint64_t kPollNs = 1'100'000'000;

struct ReportSentence {
	uint64_t duration_ns;
	std::string text;
};

bool IsLarge(const ServerReport &r)
{
	return r.kind == "large-request" || r.kind == "large-reply";
}

std::string CommandText(const common::Json &j)
{
	std::string text;
	auto words = j.find("command");
	if (words == j.end() || !words->is_array())
		return "a command";
	for (const common::Json &word : *words) {
		if (!word.is_string())
			continue;
		if (!text.empty())
			text += ' ';
		text += word.get<std::string>();
	}
	if (text.size() > kCommandBytes)
		text.replace(kCommandBytes, std::string::npos, "...");
	return text;
}

// The error of a time, as a clause.
std::string ErrorText(uint64_t error_ns)
{
	return error_ns ? ", at a time known to within " + common::FormatDuration(error_ns) : "";
}

bool MayOverlap(uint64_t start_ns, uint64_t end_ns, uint64_t from_ns, uint64_t to_ns)
{
	return start_ns <= to_ns && end_ns >= from_ns;
}

// A slow command as long as most of an iteration was that iteration.
bool Fits(const ft_span &iteration, uint64_t duration_ns)
{
	return iteration.duration_ns <= duration_ns + duration_ns / 10 + 1'000'000;
}

// Whether a command of this duration may have run in the iteration, whose begin may not have been seen
// (FT_SPAN_SAMPLED), and whose end is when the next wait began, by another clock than the server's.
bool Holds(const ft_span &iteration, uint64_t duration_ns)
{
	return iteration.duration_ns + duration_ns / 20 + 1'000'000 >= duration_ns;
}

// The iteration of [from_ns, to_ns] in which a command of this duration ran: the shortest that is as long, or
// else the longest that may be; nullptr: none is long enough.
const ft_span *IterationOf(const Run &run, uint64_t duration_ns, uint64_t from_ns, uint64_t to_ns)
{
	const ft_span *found = nullptr, *shorter = nullptr;
	for (const Thread &t : run.threads) {
		const ft_span *first = run.iterations.data() + t.first_iteration,
			      *end = first + t.iteration_count;
		auto ends_before = [&](const ft_span &s) { return s.start_ns + s.duration_ns < from_ns; };
		for (const ft_span *i = std::partition_point(first, end, ends_before);
		     i != end && i->start_ns <= to_ns; i++) {
			if (i->duration_ns >= duration_ns && (!found || i->duration_ns < found->duration_ns))
				found = i;
			if (i->duration_ns < duration_ns && Holds(*i, duration_ns) &&
			    (!shorter || i->duration_ns > shorter->duration_ns))
				shorter = i;
		}
	}
	return found ? found : shorter;
}

// Whether an entry of the slow log may be of [from_ns, to_ns]. If it is known when it ran, *error_ns becomes
// 0.
bool MayBeOf(const Run &run, uint64_t t_ns, uint64_t duration_ns, uint64_t from_ns, uint64_t to_ns,
	     uint64_t *error_ns)
{
	const uint64_t early_ns = t_ns - std::min(t_ns, *error_ns + duration_ns), late_ns = t_ns + *error_ns;
	if (!MayOverlap(early_ns, late_ns, from_ns, to_ns))
		return false;
	if (run.iterations.empty())
		return true;
	const ft_span *iteration = IterationOf(run, duration_ns, early_ns, late_ns);
	if (!iteration ||
	    !MayOverlap(iteration->start_ns, iteration->start_ns + iteration->duration_ns, from_ns, to_ns))
		return false;
	if (Fits(*iteration, duration_ns))
		*error_ns = 0;
	return true;
}

// An outage as the load generator saw it: keys without a server. Both ends are exact. An outage without an
// end lasted to the end of the load. Empty if it does not overlap the interval.
ReportSentence OutageSentence(const common::Json &j, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t last = common::Whole(j, "last_ok_ns"), first = common::Whole(j, "first_ok_ns");
	uint64_t begin = last ? last : common::Whole(j, "noticed_ns"),
		 end = first ? first : std::max(begin, to_ns);
	if (!j.contains("server") || !j["server"].is_string() || !MayOverlap(begin, end, from_ns, to_ns))
		return {};
	std::string text = "the keys of " + j["server"].get<std::string>() + " had no server for " +
			   common::FormatDuration(end - begin);
	if (first && j.contains("after") && j["after"].is_string())
		text += ", until " +
			(j["after"] == j["server"] ? std::string("the same server")
						   : j["after"].get<std::string>()) +
			" served them";
	return {end - begin, std::move(text)};
}

} // namespace

std::vector<std::string> ServerReportSentences(const Run &run, uint64_t from_ns, uint64_t to_ns,
					       uint64_t worst_ns, size_t limit)
{
	std::vector<ReportSentence> reports;
	for (const ServerReport &r : run.reports) {
		if (r.kind != "slowlog" && r.kind != "latency-event" && r.kind != "fork" &&
		    r.kind != "outage" && !IsLarge(r))
			continue;
		common::Json j = common::ParseJson(r.text);
		if (r.kind == "outage") {
			ReportSentence outage = OutageSentence(j, from_ns, to_ns);
			if (!outage.text.empty() && outage.duration_ns >= worst_ns / 4)
				reports.push_back(std::move(outage));
			continue;
		}
		uint64_t error = common::Whole(j, "t_error_ns"), duration = 0;
		std::string text;
		if (r.kind == "slowlog") {
			duration = common::Whole(j, "duration_us") * 1000;
			if (!MayBeOf(run, r.t_ns, duration, from_ns, to_ns, &error))
				continue;
			text = "Redis' slow log lists " + CommandText(j) + " with " +
			       common::FormatDuration(duration) + ErrorText(error);
		} else if (r.kind == "latency-event" && j.contains("event") && j["event"].is_string()) {
			duration = common::Whole(j, "latest_ms") * 1'000'000;
			text = "Redis' latency monitor lists \"" + j["event"].get<std::string>() +
			       "\" with " + common::FormatDuration(duration) + ErrorText(error);
		} else if (IsLarge(r)) {
			text = "Valkey's command log lists " + CommandText(j) + " with a " +
			       r.kind.substr(r.kind.find('-') + 1) + " of " +
			       common::FormatBytes(common::Whole(j, "bytes")) + ErrorText(error);
		} else if (r.kind == "fork" && run.spans.empty()) { // otherwise ForkSentence reports it
			duration = r.latest_fork_usec * 1000;
			error = kPollNs;
			text =
			    "Redis forked within one second of this episode and reports that fork() took " +
			    common::FormatDuration(duration);
		}
		if (text.empty() || (duration < worst_ns / 4 && !IsLarge(r)))
			continue;
		uint64_t early = r.t_ns - std::min(r.t_ns, error + duration);
		if (r.kind == "slowlog" || MayOverlap(early, r.t_ns + error, from_ns, to_ns))
			reports.push_back({duration, std::move(text)});
	}
	std::stable_sort(
	    reports.begin(), reports.end(),
	    [](const ReportSentence &a, const ReportSentence &b) { return a.duration_ns > b.duration_ns; });
	std::vector<std::string> sentences;
	for (size_t i = 0; i < reports.size() && i < limit; i++)
		sentences.push_back(std::move(reports[i].text));
	return sentences;
}

std::string SlowCommand(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t at_least_ns)
{
	std::string name;
	uint64_t longest_ns = at_least_ns;
	for (const ServerReport &r : run.reports) {
		if (r.kind != "slowlog")
			continue;
		const common::Json j = common::ParseJson(r.text);
		const uint64_t ns = common::Whole(j, "duration_us") * 1000;
		uint64_t error_ns = common::Whole(j, "t_error_ns");
		if (ns < longest_ns || !j.contains("command") ||
		    !MayBeOf(run, r.t_ns, ns, from_ns, to_ns, &error_ns))
			continue;
		longest_ns = ns;
		name = CommandText(j);
		name.resize(std::min(name.find(' '), name.size()));
	}
	std::transform(name.begin(), name.end(), name.begin(),
		       [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
	return name;
}

std::string OutageClause(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t *ns)
{
	ReportSentence longest = {0, ""};
	for (const ServerReport &r : run.reports)
		if (r.kind == "outage")
			if (ReportSentence one = OutageSentence(common::ParseJson(r.text), from_ns, to_ns);
			    one.duration_ns > longest.duration_ns)
				longest = std::move(one);
	*ns = longest.duration_ns;
	if (!longest.text.empty())
		longest.text[0] = 'T'; // "The keys of ..."
	return longest.text;
}

} // namespace forktail::analysis
