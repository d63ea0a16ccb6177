// SPDX-License-Identifier: MIT
// Converts names of other programs to names of figures, and all times to ns, so tables have one unit.
#include "program_figures.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "common/format.h"
#include "common/json.h"
#include "files.h"
#include "lab/scenario/formula.h"

namespace forktail::lab
{
namespace
{

constexpr size_t kCausesShown = 4, kWorstShown = 3;
constexpr double kLeastShare = 0.01; // smaller causes are not named

bool Read(const std::string &path, common::Json *json, std::string *error)
{
	*json = common::ParseJson(ReadFile(path));
	if (!json->is_discarded() && json->is_object())
		return true;
	*error = path + " does not contain JSON";
	return false;
}

// "25ms", or "100us" if it is not a whole number of ms.
std::string BucketName(uint64_t up_to_ns)
{
	return up_to_ns % 1000000 == 0 ? std::to_string(up_to_ns / 1000000) + "ms"
				       : std::to_string(up_to_ns / 1000) + "us";
}

void AddBuckets(const std::string &name, const common::Json &buckets, Point *point)
{
	for (const common::Json &bucket : buckets) {
		std::string limit =
		    bucket.contains("up_to_ns") ? BucketName(bucket.at("up_to_ns").get<uint64_t>()) : "over";
		point->numbers[name + ".bucket_" + limit] = bucket.at("requests").get<double>();
	}
}

// Figures of an operation or of all.
void AddOperation(const std::string &name, const common::Json &operation, Point *point)
{
	auto &numbers = point->numbers;
	double requests = operation.at("requests").get<double>(),
	       errors = operation.at("errors").get<double>();
	numbers[name + ".requests"] = requests;
	numbers[name + ".succeeded"] = requests - errors;
	numbers[name + ".errors"] = errors;
	numbers[name + ".misses"] = operation.at("misses").get<double>();
	numbers[name + ".error_percent"] = requests > 0 ? 100 * errors / requests : 0;
	numbers[name + ".rps"] = operation.at("requests_per_s").get<double>();
	numbers[name + ".mb_s"] = operation.at("mb_per_s").get<double>();
	const common::Json &latency = operation.at("latency_ns");
	if (latency.value("count", 0.0) > 0)
		for (const auto &[figure, value] : latency.items())
			numbers[name + "." + FigureName(figure)] = value.get<double>();
	if (operation.contains("buckets"))
		AddBuckets(name, operation.at("buckets"), point);
}

void AddOutages(const std::string &name, const common::Json &outages, Point *point)
{
	double longest = 0, failed = 0, delayed = 0;
	for (const common::Json &outage : outages) {
		longest = std::max(longest, outage.value("gap_ns", 0.0));
		failed += outage.value("failed", 0.0);
		delayed += outage.value("delayed", 0.0);
	}
	point->numbers[name + ".outages"] = static_cast<double>(outages.size());
	point->numbers[name + ".outage"] = longest;
	point->numbers[name + ".outage_failed"] = failed;
	point->numbers[name + ".outage_delayed"] = delayed;
}

void AddNodes(const std::string &step, const common::Json &nodes,
	      const std::map<std::string, std::string> &names, Point *point)
{
	for (const common::Json &node : nodes) {
		auto name = names.find(node.at("server").get<std::string>());
		if (name == names.end())
			continue;
		std::string figure = step + "." + name->second + ".";
		for (const char *count : {"requests", "errors"})
			point->numbers[figure + count] = node.at(count).get<double>();
		for (const char *time : {"p50", "p99", "p99.9", "max"})
			point->numbers[figure + FigureName(time)] =
			    node.at(std::string(time) + "_ns").get<double>();
	}
}

// The largest shares by name: "fork 52 %, run-queue 33 %". `name` is the member that names one.
std::string SharesText(const common::Json &shares, const char *name)
{
	std::string text;
	size_t shown = 0;
	for (const common::Json &one : shares) {
		double share = one.at("share").get<double>();
		if (shown == kCausesShown || share < kLeastShare)
			break;
		text += (shown++ ? ", " : "") + one.at(name).get<std::string>() + " " +
			common::FormatShare(share);
	}
	return text;
}

// The scenario's name of a hop.
std::string HopName(const common::Json &hop, const std::map<std::string, std::string> &names)
{
	auto name = names.find(hop.value("address", ""));
	return name == names.end() ? hop.at("name").get<std::string>() : name->second;
}

// "redis3 61 %, proxy 12 %".
std::string HopsText(const common::Json &hops, const std::map<std::string, std::string> &names)
{
	std::string text;
	for (const common::Json &hop : hops)
		if (hop.at("share").get<double>() >= kLeastShare)
			text += (text.empty() ? "" : ", ") + HopName(hop, names) + " " +
				common::FormatShare(hop.at("share").get<double>());
	return text;
}

// The causes of the longest request: "fork 8.20 ms, run-queue 3.10 ms".
std::string LongestText(const common::Json &requests)
{
	const common::Json *longest = nullptr;
	for (const common::Json &request : requests)
		if (!longest || request.at("latency_ns") > longest->at("latency_ns"))
			longest = &request;
	std::string text;
	size_t shown = 0;
	if (longest)
		for (const common::Json &part : longest->at("parts")) {
			uint64_t ns =
			    part.at("direct_ns").get<uint64_t>() + part.at("queued_ns").get<uint64_t>();
			if (shown == kCausesShown ||
			    static_cast<double>(ns) < kLeastShare * longest->at("latency_ns").get<double>())
				break;
			text += (shown++ ? ", " : "") + part.at("cause").get<std::string>() + " " +
				common::FormatDuration(ns);
		}
	return text;
}

// "1795378503.123456".
std::string SecondsText(const common::Json &us)
{
	char text[40];
	const auto number = us.get<uint64_t>();
	snprintf(text, sizeof text, "%llu.%06llu", static_cast<unsigned long long>(number / 1000000),
		 static_cast<unsigned long long>(number % 1000000));
	return text;
}

std::string EpisodeText(const common::Json &episode)
{
	char when[64];
	snprintf(when, sizeof when, "+%.3f s: ", episode.at("t_s").get<double>());
	std::string text = when + common::FormatCount(episode.at("requests").get<uint64_t>()) +
			   " requests, worst " +
			   common::FormatDuration(episode.at("worst_ns").get<uint64_t>()) + ": " +
			   SharesText(episode.at("causes"), "cause");
	for (const common::Json &sentence : episode.at("evidence"))
		text += "\n  " + sentence.get<std::string>();
	return text;
}

} // namespace

bool AddLoadFigures(const std::string &step, const std::string &path,
		    const std::map<std::string, std::string> &names, Point *point, std::string *error)
{
	common::Json json;
	if (!Read(path, &json, error))
		return false;
	try {
		double requests = 0, errors = 0, seconds = 0, cpu_s = 0;
		for (const common::Json &run : json.at("runs")) {
			for (const auto &[operation, figures] : run.at("operations").items())
				AddOperation(step + "." + FigureName(operation), figures, point);
			if (json.at("runs").size() == 1)
				AddOperation(step, run.at("total"), point);
			requests += run.at("total").at("requests").get<double>();
			errors += run.at("total").at("errors").get<double>();
			seconds += run.at("seconds").get<double>();
			cpu_s += run.at("client").at("cpu_s").get<double>();
			point->numbers[step + ".late_mean"] = run.at("sent_late_ns").at("mean").get<double>();
			point->numbers[step + ".late_max"] = run.at("sent_late_ns").at("max").get<double>();
			if (run.contains("nodes"))
				AddNodes(step, run.at("nodes"), names, point);
			if (run.contains("redirects"))
				for (const auto &[redirect, count] : run.at("redirects").items())
					point->numbers[step + ".redirects_" + redirect] = count.get<double>();
			if (run.contains("outages"))
				AddOutages(step, run.at("outages"), point);
		}
		point->numbers[step + ".requests"] = requests;
		point->numbers[step + ".errors"] = errors;
		point->numbers[step + ".seconds"] = seconds;
		point->numbers[step + ".client_cpu_s"] = cpu_s;
		if (requests > 0)
			point->numbers[step + ".client_us_per_request"] = cpu_s * 1e6 / requests;
		return true;
	} catch (const common::Json::exception &e) {
		*error = path + " is not output of forktail-load: " + e.what();
		return false;
	}
}

bool AddSearch(const std::string &step, const std::string &path, Point *point,
	       std::vector<SearchedRate> *rates, std::string *error)
{
	common::Json json;
	if (!Read(path, &json, error))
		return false;
	if (!json.contains("search"))
		return true;
	try {
		const common::Json &search = json.at("search");
		point->texts[step + ".search"] = search.at("result").get<std::string>();
		for (const char *name : {"highest", "beyond"}) {
			if (!search.contains(name))
				continue;
			const common::Json &rate = search.at(name);
			const std::string figure = step + "." + name;
			point->numbers[figure] = rate.at("rate").get<double>();
			point->numbers[figure + ".runs"] = rate.at("runs").get<double>();
			point->numbers[figure + ".held"] = rate.at("held").get<double>();
			rates->push_back({name, SecondsText(rate.at("start_unix_us")),
					  SecondsText(rate.at("end_unix_us")),
					  rate.at("client_at_limit").get<bool>()});
		}
		for (const common::Json &run : search.at("curve"))
			if (search.contains("highest") && run.at("rate") == search.at("highest").at("rate"))
				point->numbers[step + ".rps"] = run.at("requests_per_s").get<double>();
		return true;
	} catch (const common::Json::exception &e) {
		*error = path + " is not output of forktail-load: " + e.what();
		return false;
	}
}

void NameCause(const std::string &name, bool client_at_limit, Point *point)
{
	std::string &named = point->texts[name + ".named"];
	const auto first = [point](const std::string &text) {
		const std::string &list = point->texts[text];
		return list.substr(0, list.find(','));
	};
	named = client_at_limit ? "client at its limit" : first(name + ".causes");
	if (!client_at_limit && named.rfind("server-busy ", 0) == 0)
		named += ": " + first(name + ".own");
}

bool AddBenchmarkFigures(const std::string &step, const std::string &path, Point *point, std::string *error)
{
	// "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_...","p99_...","max_latency_ms"
	static const char *const kFigures[] = {"rps", "mean", "min", "p50", "p95", "p99", "max"};
	std::ifstream in(path);
	size_t tests = 0;
	for (std::string line; std::getline(in, line);) {
		std::vector<std::string> fields;
		std::istringstream cells(line);
		for (std::string before, field;
		     std::getline(cells, before, '"') && std::getline(cells, field, '"');)
			fields.push_back(field);
		// The commands that fill its lists are not tests.
		if (fields.size() < 8 || fields[0] == "test" ||
		    fields[0].find("needed to benchmark") != std::string::npos)
			continue;
		std::string name = step + "." + FigureName(fields[0].substr(0, fields[0].find(' ')));
		for (size_t i = 0; i < std::size(kFigures); i++) {
			char *end = nullptr;
			double number = strtod(fields[i + 1].c_str(), &end);
			if (end == fields[i + 1].c_str() || *end) {
				*error =
				    path + " is not output of redis-benchmark: \"" + fields[i + 1] + "\"";
				return false;
			}
			point->numbers[name + "." + kFigures[i]] = number * (i == 0 ? 1 : 1e6);
		}
		tests++;
	}
	if (tests > 0)
		return true;
	*error = "redis-benchmark printed no results (" + path + ")";
	return false;
}

bool AddExplanation(const std::string &step, const std::string &path,
		    const std::map<std::string, std::string> &names, Point *point, std::string *error)
{
	common::Json json;
	if (!Read(path, &json, error))
		return false;
	try {
		const common::Json &slow = json.at("slow");
		point->numbers[step + ".slow_from"] = slow.at("threshold_ns").get<double>();
		point->numbers[step + ".slow"] = slow.at("count").get<double>();
		double unknown = 0;
		for (const common::Json &cause : json.at("causes")) {
			std::string name = cause.at("cause").get<std::string>();
			if (name == "unknown")
				unknown = cause.at("share").get<double>();
			std::string figure = step + ".cause." + FigureName(name);
			point->numbers[figure + ".percent"] = 100 * cause.at("share").get<double>();
			point->numbers[figure + ".time"] = cause.at("time_ns").get<double>();
			for (const auto &[percentile, value] : cause.at("what_if").items())
				point->numbers[figure + ".without_" + FigureName(percentile)] =
				    value.get<double>();
		}
		point->numbers[step + ".explained_percent"] = 100 * (1 - unknown);
		for (const common::Json &activity : json.at("own_code").at("activities"))
			point->numbers[step + ".own." + FigureName(activity.at("name").get<std::string>()) +
				       ".percent"] = 100 * activity.at("share").get<double>();
		for (const common::Json &hop : json.value("hops", common::Json::array()))
			point->numbers[step + ".hop." + FigureName(HopName(hop, names)) + ".percent"] =
			    100 * hop.at("share").get<double>();
		point->texts[step + ".hops"] = HopsText(json.value("hops", common::Json::array()), names);
		point->texts[step + ".causes"] = SharesText(json.at("causes"), "cause");
		point->texts[step + ".own"] = SharesText(json.at("own_code").at("activities"), "name");
		point->texts[step + ".longest"] = LongestText(json.at("slow_requests"));
		std::vector<common::Json> episodes = json.at("episodes");
		std::sort(episodes.begin(), episodes.end(), [](const common::Json &a, const common::Json &b) {
			return a.at("worst_ns") > b.at("worst_ns");
		});
		std::string worst;
		for (size_t i = 0; i < std::min(kWorstShown, episodes.size()); i++)
			worst += (i ? "\n" : "") + EpisodeText(episodes[i]);
		point->texts[step + ".worst"] = worst;
		return true;
	} catch (const common::Json::exception &e) {
		*error = path + " is not output of forktail explain: " + e.what();
		return false;
	}
}

} // namespace forktail::lab
