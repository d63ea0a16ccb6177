// SPDX-License-Identifier: MIT
// The comments that mark a section remain, so that it can be replaced again.
#include "document.h"

#include <filesystem>
#include <fstream>

#include "lab/run/files.h"

namespace forktail::lab
{

bool WriteSection(const std::string &document, const Scenario &scenario, const Results &results,
		  const Output &output, std::string *error)
{
	std::string text = ReadFile(document);
	std::string begin = "<!-- lab:" + scenario.name + " -->\n",
		    end = "<!-- /lab:" + scenario.name + " -->";
	size_t from = text.find(begin), to = text.find(end);
	if (from == std::string::npos || to == std::string::npos || to < from) {
		*error = document + " has no section for " + scenario.name + ": add the lines " +
			 begin.substr(0, begin.size() - 1) + " and " + end;
		return false;
	}
	from += begin.size();
	std::filesystem::path charts = std::filesystem::path(document).replace_extension();
	text.replace(from, to - from, MarkdownOf(scenario, results, output, charts.filename()));
	std::error_code ec;
	std::filesystem::create_directories(charts, ec);
	return WriteCharts(charts, scenario.name, output, error) && ReplaceFile(document, text, error);
}

} // namespace forktail::lab
