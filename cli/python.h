// SPDX-License-Identifier: MIT
// Finding Python packages: DuckDB for `forktail sql`, Arrow for Parquet, Spark for `forktail fleet`. Users
// install them with forktail's wheel (cli/wheel/), developers with script/python and script/spark.
#pragma once

#include <string>
#include <vector>

namespace forktail::cli
{

// A Python that has all of these modules, and no other version of the wheel. The first of: $FORKTAIL_PYTHON
// (if set, no other); the source tree's; forktail-python, which the wheel installs, on PATH; the one in
// /opt/forktail; python3 on PATH. "": none of them.
std::string PythonWith(const std::vector<std::string> &modules);

// Prints that something is missing and which command installs it. Returns kCant. `extra`: the wheel's extra
// that contains it ("": none). `script`: what installs it in the source tree.
int RefuseWithoutPackage(const std::string &missing, const std::string &extra, const std::string &script);

// The first words of a command that runs forktail-parquet. None: the error is printed.
std::vector<std::string> ParquetProgram();

} // namespace forktail::cli
