// SPDX-License-Identifier: MIT
// Results as JSON, also for other programs: docs/reference/lab-and-scenarios.md. The file is replaced
// atomically, so readers and resumed runs never see half of it.
#include "results.h"

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "files.h"

namespace forktail::lab
{
namespace
{

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;

// JSON has no NaN and no infinity: such figures are left out.
Json Finite(const std::map<std::string, double> &numbers)
{
	Json json = Json::object();
	for (const auto &[name, value] : numbers)
		if (std::isfinite(value))
			json[name] = value;
	return json;
}

Json ToJson(const Point &point)
{
	Json json = {{"values", point.values},
		     {"numbers", Finite(point.numbers)},
		     {"texts", point.texts},
		     {"recorded", point.recorded},
		     {"repeats", point.repeats}};
	if (!point.least.empty())
		json["least"] = Finite(point.least);
	if (!point.most.empty())
		json["most"] = Finite(point.most);
	return json;
}

// These throw if something is missing or has another type; ReadResults converts that to a sentence.
Point PointOf(const Json &json)
{
	Point point;
	json.at("values").get_to(point.values);
	json.at("numbers").get_to(point.numbers);
	json.at("texts").get_to(point.texts);
	json.at("recorded").get_to(point.recorded);
	json.at("repeats").get_to(point.repeats);
	point.least = json.value("least", point.least);
	point.most = json.value("most", point.most);
	return point;
}

void FromJson(const Json &json, Results *results)
{
	json.at("scenario").get_to(results->scenario);
	json.at("title").get_to(results->title);
	json.at("host").get_to(results->host);
	json.at("kernel").get_to(results->kernel);
	json.at("cpu").get_to(results->cpu);
	json.at("versions").get_to(results->versions);
	json.at("scale").get_to(results->scale);
	json.at("command").get_to(results->command);
	json.at("seconds").get_to(results->seconds);
	json.at("started_unix").get_to(results->started_unix);
	json.at("notes").get_to(results->notes);
	for (const Json &point : json.at("points"))
		results->points.push_back(PointOf(point));
}

} // namespace

bool WriteResults(const std::string &path, const Results &results, std::string *error)
{
	Json json = {{"version", kVersion},
		     {"scenario", results.scenario},
		     {"title", results.title},
		     {"host", results.host},
		     {"kernel", results.kernel},
		     {"cpu", results.cpu},
		     {"versions", results.versions},
		     {"scale", results.scale},
		     {"command", results.command},
		     {"seconds", results.seconds},
		     {"started_unix", results.started_unix},
		     {"notes", results.notes},
		     {"points", Json::array()}};
	for (const Point &point : results.points)
		json["points"].push_back(ToJson(point));

	return ReplaceFile(path, json.dump(1, '\t', false, Json::error_handler_t::replace) + "\n", error);
}

bool ReadResults(const std::string &path, Results *results, std::string *error)
{
	std::ifstream in(path);
	if (!in) {
		*error = "cannot read " + path + ": " + std::strerror(errno);
		return false;
	}
	Results read;
	Json json = Json::parse(in, nullptr, false);
	if (!json.is_object()) {
		*error = path + " is damaged, or no results of a scenario: it holds no JSON object";
		return false;
	}
	if (json.value("version", Json()) != kVersion) {
		*error = path + " is damaged, or of another version of forktail: its version is not " +
			 std::to_string(kVersion);
		return false;
	}
	try {
		FromJson(json, &read);
	} catch (const Json::exception &e) {
		// "[json.exception.out_of_range.403] key 'host' not found"
		std::string reason = e.what();
		*error = path + " is damaged: " + reason.substr(reason.find("] ") + 2);
		return false;
	}
	*results = std::move(read);
	return true;
}

} // namespace forktail::lab
