// SPDX-License-Identifier: MIT
// All tables are made before any chart is drawn: what is wrong with one is known at once.
#include "output.h"

#include <algorithm>

#include "lab/run/files.h"

namespace forktail::lab
{
namespace
{

constexpr size_t kManyRows = 12;

bool HasPublished(const MadeTable &table, const std::vector<Cell> &row)
{
	for (size_t i = 0; i < row.size(); i++)
		if (table.heads[i].published && row[i].text != "-")
			return true;
	return false;
}

bool StaysInShort(const MadeTable &table, size_t column)
{
	const Head &head = table.heads[column];
	bool paired = column + 1 < table.heads.size() && table.heads[column + 1].published;
	return head.key || head.published || paired || !head.number;
}

MadeTable ShortTable(MadeTable table)
{
	if (std::none_of(table.heads.begin(), table.heads.end(), [](const Head &h) { return h.published; }))
		return table;
	if (table.rows.size() > kManyRows)
		table.rows.erase(std::remove_if(table.rows.begin(), table.rows.end(),
						[&](const auto &row) { return !HasPublished(table, row); }),
				 table.rows.end());
	for (size_t i = table.heads.size(); i-- > 0;) {
		if (StaysInShort(table, i))
			continue;
		table.heads.erase(table.heads.begin() + i);
		for (std::vector<Cell> &row : table.rows)
			row.erase(row.begin() + i);
	}
	return table;
}

} // namespace

bool MakeOutput(Session *session, const Scenario &scenario, const Results &results, Output *output,
		std::string *error)
{
	std::vector<MadeChart> charts;
	return MakeTables(scenario, results, &output->tables, error) &&
	       MakeCharts(scenario, results, &charts, error) &&
	       DrawCharts(session, charts, &output->charts, &output->note, error);
}

Output ShortOutput(const Output &output, bool chart)
{
	Output part;
	part.note = output.note;
	if (!output.tables.empty())
		part.tables = {ShortTable(output.tables[0])};
	if (chart && !output.charts.empty())
		part.charts = {output.charts[0]};
	return part;
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
