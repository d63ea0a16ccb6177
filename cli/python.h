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

// Replaces this process by `python3 -I DIR COMMAND` with the arguments. DIR is PREFIX/lib/forktail/python or
// python/ of the source tree. `modules`: libraries that the command may need. If no Python has them, one
// without runs, and the command reports what is missing. The package finds forktail's programs through
// $FORKTAIL_BIN_DIR, which is set here. Returns kCant if there is no Python 3.11 or later, or no package: the
// error is printed.
//
// The Python is the first with the modules of: $FORKTAIL_PYTHON (if set, no other); the source tree's
// build-python/ and build-spark/; forktail-python, which the wheel installs, on PATH; the one in
// /opt/forktail; /usr/bin/python3; python3 on PATH.
int RunPython(const std::string &command, const std::vector<std::string> &modules, int argc, char **argv);

} // namespace forktail::cli
