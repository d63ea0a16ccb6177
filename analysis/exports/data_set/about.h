// SPDX-License-Identifier: MIT
// _forktail.json of a data set: its schema's version, the tables with their columns, and what causes look
// like on a page. Who reads the data set needs nothing else of forktail's.
#pragma once

#include <string>
#include <vector>

namespace forktail::analysis::exports
{

constexpr char kAboutName[] = "_forktail.json";

// False: there is no such table; *error is one sentence.
bool CheckTables(const std::vector<std::string> &tables, std::string *error);

// Makes the file at `path`, or adds to it what this forktail knows and it doesn't. `asked`: tables (none:
// those that it has, else all); *tables: those that it has then. False: *error is one sentence, and it is as
// it was.
bool UpdateAbout(const std::string &path, const std::vector<std::string> &asked,
		 std::vector<std::string> *tables, std::string *error);

} // namespace forktail::analysis::exports
