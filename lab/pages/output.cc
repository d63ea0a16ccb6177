// SPDX-License-Identifier: MIT
// All tables are made before any chart is drawn, so that errors are found early.
#include "output.h"

#include "lab/run/files.h"

namespace forktail::lab
{

bool MakeOutput(Session *session, const Scenario &scenario, const Results &results, Output *output,
		std::string *error)
{
	std::vector<MadeChart> charts;
	return MakeTables(scenario, results, &output->tables, error) &&
	       MakeCharts(scenario, results, &charts, error) &&
	       DrawCharts(session, charts, &output->charts, &output->note, error);
}

bool WriteCharts(const std::string &directory, const std::string &name, const Output &output,
		 std::string *error)
{
	for (size_t i = 0; i < output.charts.size(); i++)
		if (!ReplaceFile(directory + "/" + name + "-" + std::to_string(i + 1) + ".svg",
				 output.charts[i].svg, error))
			return false;
	return true;
}

} // namespace forktail::lab
