// SPDX-License-Identifier: MIT
// Redis dates slow commands and latency events by the second, so the observer says for each how far off its
// time may be; an entry belongs to an episode if it may have lain in it.
#include "server_word.h"

#include <algorithm>

#include "common/format/units.h"
#include "common/json/json_read.h"

namespace forktail::analysis
{

namespace
{

constexpr size_t kCommandBytes = 60;
// What a poll every second leaves open of when a fork was.
constexpr uint64_t kPollNs = 1'100'000'000;

struct Word {
	uint64_t duration_ns;
	std::string text;
};

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

// How certain the time is, in words.
std::string Within(uint64_t error_ns)
{
	return error_ns ? ", at a time known to within " + common::FormatDuration(error_ns) : "";
}

bool MayOverlap(uint64_t start_ns, uint64_t end_ns, uint64_t from_ns, uint64_t to_ns)
{
	return start_ns <= to_ns && end_ns >= from_ns;
}

// What the load generator saw of keys without a server. It knows both ends exactly; an outage without an end
// lasted to the end of the load. Nothing, if it wasn't then.
Word OutageWord(const common::Json &j, uint64_t from_ns, uint64_t to_ns)
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

std::vector<std::string> ServerWords(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t worst_ns,
				     size_t limit)
{
	std::vector<Word> words;
	for (const ServerReport &r : run.reports) {
		if (r.kind != "slowlog" && r.kind != "latency-event" && r.kind != "fork" &&
		    r.kind != "outage")
			continue;
		common::Json j = common::ParseJson(r.text);
		if (r.kind == "outage") {
			Word word = OutageWord(j, from_ns, to_ns);
			if (!word.text.empty() && word.duration_ns >= worst_ns / 4)
				words.push_back(std::move(word));
			continue;
		}
		uint64_t error = common::Whole(j, "t_error_ns"), duration = 0;
		std::string text;
		if (r.kind == "slowlog") {
			duration = common::Whole(j, "duration_us") * 1000;
			text = "Redis' slow log lists " + CommandText(j) + " with " +
			       common::FormatDuration(duration) + Within(error);
		} else if (r.kind == "latency-event" && j.contains("event") && j["event"].is_string()) {
			duration = common::Whole(j, "latest_ms") * 1'000'000;
			text = "Redis' latency monitor lists \"" + j["event"].get<std::string>() +
			       "\" with " + common::FormatDuration(duration) + Within(error);
		} else if (r.kind == "fork" && run.spans.empty()) { // else the fork's own sentence says it
			duration = r.latest_fork_usec * 1000;
			error = kPollNs;
			text =
			    "Redis forked within one second of this episode and reports that fork() took " +
			    common::FormatDuration(duration);
		}
		if (text.empty() || duration < worst_ns / 4)
			continue;
		uint64_t early = r.t_ns - std::min(r.t_ns, error + duration);
		if (MayOverlap(early, r.t_ns + error, from_ns, to_ns))
			words.push_back({duration, std::move(text)});
	}
	std::stable_sort(words.begin(), words.end(),
			 [](const Word &a, const Word &b) { return a.duration_ns > b.duration_ns; });
	std::vector<std::string> sentences;
	for (size_t i = 0; i < words.size() && i < limit; i++)
		sentences.push_back(std::move(words[i].text));
	return sentences;
}

} // namespace forktail::analysis
