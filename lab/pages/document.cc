// SPDX-License-Identifier: MIT
// The comments that mark a section remain, so that it can be replaced again.
#include "document.h"

#include <filesystem>
#include <fstream>

#include "lab/run/files.h"

namespace forktail::lab
{

namespace
{

struct Place {
	size_t from, to; // what is replaced
	bool whole, chart;
};

bool FindPlace(const std::string &text, const std::string &name, Place *place)
{
	struct {
		const char *words;
		bool whole, chart;
	} kinds[] = {{"", true, true}, {" short", false, false}, {" short chart", false, true}};
	place->to = text.find("<!-- /lab:" + name + " -->");
	for (const auto &kind : kinds) {
		std::string begin = "<!-- lab:" + name + kind.words + " -->\n";
		size_t at = text.find(begin);
		if (at == std::string::npos)
			continue;
		place->from = at + begin.size();
		place->whole = kind.whole;
		place->chart = kind.chart;
		return place->to != std::string::npos && place->to >= place->from;
	}
	return false;
}

} // namespace

bool WriteSection(const std::string &document, const Scenario &scenario, const Results &results,
		  const Output &output, std::string *error)
{
	std::string text = ReadFile(document);
	Place place;
	if (!FindPlace(text, scenario.name, &place)) {
		*error = document + " has no section for " + scenario.name +
			 ": add the lines <!-- lab:" + scenario.name + " --> and <!-- /lab:" + scenario.name +
			 " -->";
		return false;
	}
	std::filesystem::path charts = std::filesystem::path(document).replace_extension();
	Output part = place.whole ? output : ShortOutput(output, place.chart);
	auto markdown = place.whole ? MarkdownOf : ShortMarkdownOf;
	text.replace(place.from, place.to - place.from, markdown(scenario, results, part, charts.filename()));
	std::error_code ec;
	std::filesystem::create_directories(charts, ec);
	return WriteCharts(charts, scenario.name, part, error) && ReplaceFile(document, text, error);
}

} // namespace forktail::lab
