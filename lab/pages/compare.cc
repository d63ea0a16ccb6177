// SPDX-License-Identifier: MIT
// Figures are paired by table, row and column, so that runs at different scales can be compared where they
// overlap.
#include "compare.h"

#include <algorithm>

#include "common/format.h"
#include "format.h"
#include "tables.h"

namespace forktail::lab
{
namespace
{

const char *const kApart = "*";

using Cells = std::vector<Cell>;

std::string Versions(const Results &results)
{
	std::string text;
	for (const auto &[name, version] : results.versions)
		text += (text.empty() ? "" : ", ") + name + " " + version;
	return text;
}

// Differences between the runs other than figures, one sentence each.
std::string Differences(const Results &first, const Results &second)
{
	std::string text;
	auto add = [&](const char *what, const std::string &one, const std::string &other) {
		if (one != other)
			text += std::string("The ") + what + " differ: " + (one.empty() ? "unknown" : one) +
				" and " + (other.empty() ? "unknown" : other) + ".\n";
	};
	add("scales", first.scale, second.scale);
	add("hosts", first.host, second.host);
	add("CPUs", first.cpu, second.cpu);
	add("kernels", first.kernel, second.kernel);
	add("versions", Versions(first), Versions(second));
	return text;
}

// The smallest number of repeats of a point; 0 without points.
int Repeats(const Results &results)
{
	int fewest = 0;
	for (const Point &point : results.points)
		fewest = fewest ? std::min(fewest, point.repeats) : point.repeats;
	return fewest;
}

// The probability that the ranges of identical runs do not overlap: of all orders of the figures, which are
// equally likely, two have all of one side before all of the other.
double ChanceApart(int first, int second)
{
	double ways = 1;
	for (int i = 1; i <= first; i++)
		ways *= static_cast<double>(second + i) / i;
	return 2 / ways;
}

std::vector<std::string> KeysOf(const MadeTable &table, const Cells &row)
{
	std::vector<std::string> keys;
	for (size_t i = 0; i < row.size() && table.heads[i].key; i++)
		keys.push_back(row[i].text);
	return keys;
}

const Cells *FindRow(const MadeTable &table, const std::vector<std::string> &keys)
{
	for (const Cells &row : table.rows)
		if (KeysOf(table, row) == keys)
			return &row;
	return nullptr;
}

std::string Ratio(double first, double second)
{
	if (first == 0)
		return "-";
	double ratio = second / first;
	return FormatFigure(ratio, ratio >= 0.1 ? Format::kDecimals2 : Format::kNumber);
}

bool Apart(const Cell &first, const Cell &second)
{
	return first.least && second.least && (*first.most < *second.least || *second.most < *first.least);
}

// Adds the figures of a row, one line each; only the first line has the keys.
void AddFigures(const MadeTable &table, std::vector<std::string> keys, const Cells *first,
		const Cells *second, MadeTable *compared)
{
	const Cell none = {"-", {}, {}, {}};
	for (size_t i = keys.size(); i < table.heads.size(); i++) {
		const Cell &one = first ? (*first)[i] : none, &other = second ? (*second)[i] : none;
		if (table.heads[i].published || !table.heads[i].number || (!one.value && !other.value))
			continue;
		Cells row;
		for (std::string &key : keys) {
			row.push_back({key, {}, {}, {}});
			key.clear();
		}
		row.push_back({table.heads[i].title, {}, {}, {}});
		row.push_back(one);
		row.push_back(other);
		row.push_back({one.value && other.value ? Ratio(*one.value, *other.value) : "-", {}, {}, {}});
		row.push_back({Apart(one, other) ? kApart : "", {}, {}, {}});
		compared->rows.push_back(row);
	}
}

MadeTable Compared(const MadeTable &first, const MadeTable &second)
{
	MadeTable compared{first.title, "", {}, {}};
	for (const Head &head : first.heads)
		if (head.key)
			compared.heads.push_back({head.title, true, false, false});
	compared.heads.push_back({"", true, false, false});
	for (const char *title : {"first", "second", "ratio"})
		compared.heads.push_back({title, false, false, true});
	compared.heads.push_back({"", false, false, false});
	for (const Cells &row : first.rows) {
		std::vector<std::string> keys = KeysOf(first, row);
		AddFigures(first, keys, &row, FindRow(second, keys), &compared);
	}
	for (const Cells &row : second.rows) {
		std::vector<std::string> keys = KeysOf(second, row);
		if (!FindRow(first, keys))
			AddFigures(second, keys, nullptr, &row, &compared);
	}
	return compared;
}

} // namespace

bool CompareResults(const Scenario &scenario, const Results &first, const Results &second, size_t width,
		    std::string *text, std::string *error)
{
	if (first.scenario != second.scenario) {
		*error =
		    "cannot compare runs of two scenarios: " + first.scenario + " and " + second.scenario;
		return false;
	}
	std::vector<MadeTable> ours, theirs;
	if (!MakeTables(scenario, first, &ours, error) || !MakeTables(scenario, second, &theirs, error))
		return false;
	*text = Differences(first, second);
	int once = Repeats(first), again = Repeats(second);
	bool repeated = once > 1 && again > 1;
	if (!repeated)
		*text += "A single run cannot distinguish a change from noise: run both with --repeat 4 or "
			 "more.\n";
	for (size_t i = 0; i < ours.size(); i++) {
		MadeTable compared = Compared(ours[i], theirs[i]);
		if (!compared.rows.empty())
			*text += (text->empty() ? "" : "\n") + compared.title + "\n\n" +
				 TableText(compared, width);
	}
	if (repeated)
		*text += std::string("\n") + kApart + ": the ranges of the repeats do not overlap. With " +
			 std::to_string(once) + " and " + std::to_string(again) +
			 " repeats of identical runs, this happens by chance for " +
			 common::FormatPercent(ChanceApart(once, again)) + " of the figures.\n";
	return true;
}

} // namespace forktail::lab
