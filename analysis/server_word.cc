// SPDX-License-Identifier: MIT
// Redis dates slow commands and latency events by the second, so the observer says for each how far off its
// time may be; an entry belongs to an episode if it may have lain in it.
#include "analysis/server_word.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/units.h"

namespace forktail
{

namespace
{

using Json = nlohmann::json;

constexpr size_t kCommandBytes = 60;
// What a poll every second leaves open of when a fork was.
constexpr uint64_t kPollNs = 1'100'000'000;

struct Word {
	uint64_t duration_ns;
	std::string text;
};

uint64_t Number(const Json &j, const char *name)
{
	auto found = j.find(name);
	return found != j.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

std::string CommandText(const Json &j)
{
	std::string text;
	auto words = j.find("command");
	if (words == j.end() || !words->is_array())
		return "a command";
	for (const Json &word : *words)
		if (word.is_string())
			text += (text.empty() ? "" : " ") + word.get<std::string>();
	if (text.size() > kCommandBytes)
		text = text.substr(0, kCommandBytes) + "...";
	return text;
}

// How certain the time is, in words.
std::string Within(uint64_t error_ns)
{
	return error_ns ? ", at a time known to within " + FormatDuration(error_ns) : "";
}

bool MayOverlap(uint64_t start_ns, uint64_t end_ns, uint64_t from_ns, uint64_t to_ns)
{
	return start_ns <= to_ns && end_ns >= from_ns;
}

} // namespace

std::vector<std::string> ServerWords(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t worst_ns,
				     size_t limit)
{
	std::vector<Word> words;
	for (const ServerReport &r : run.reports) {
		if (r.kind != "slowlog" && r.kind != "latency-event" && r.kind != "fork")
			continue;
		Json j = Json::parse(r.text, nullptr, false);
		uint64_t error = Number(j, "t_error_ns"), duration = 0;
		std::string text;
		if (r.kind == "slowlog") {
			duration = Number(j, "duration_us") * 1000;
			text = "Redis' slow log has " + CommandText(j) + " with " + FormatDuration(duration) +
			       Within(error);
		} else if (r.kind == "latency-event" && j.contains("event") && j["event"].is_string()) {
			duration = Number(j, "latest_ms") * 1'000'000;
			text = "Redis' latency monitor has \"" + j["event"].get<std::string>() + "\" with " +
			       FormatDuration(duration) + Within(error);
		} else if (r.kind == "fork" && run.spans.empty()) { // else the fork's own sentence says it
			duration = r.latest_fork_usec * 1000;
			error = kPollNs;
			text = "Redis forked within a second of it and says that took " +
			       FormatDuration(duration);
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

} // namespace forktail
