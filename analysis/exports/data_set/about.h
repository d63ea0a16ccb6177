// SPDX-License-Identifier: MIT
// _forktail.json of a data set: the version of its schema, the tables with their columns, and the causes'
// colours for a page. Readers of the data set need nothing else from forktail.
#pragma once

#include <string>
#include <vector>

namespace forktail::analysis::exports
{

constexpr char kAboutName[] = "_forktail.json";

// False: an unknown table; *error is one sentence.
bool CheckTables(const std::vector<std::string> &tables, std::string *error);

// Creates the file at `path`, or adds what is missing in it. `asked`: tables (empty: those of the file, else
// all); *tables: the resulting ones. False: *error is one sentence, and the file is unchanged.
bool UpdateAbout(const std::string &path, const std::vector<std::string> &asked,
		 std::vector<std::string> *tables, std::string *error);

} // namespace forktail::analysis::exports
