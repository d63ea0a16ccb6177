// SPDX-License-Identifier: MIT
// Starts the Python package `forktail` (python/), in which commands are written that only start programs and
// read their output. The package is found by path and runs isolated: no variable, virtual environment or file
// in the working directory changes which code runs. Optional libraries (Arrow, DuckDB, Spark) come with
// forktail's wheel.
#pragma once

#include <string>
#include <vector>

namespace forktail::cli
{

// Replaces this process by `python3 -I DIR COMMAND` with the arguments. DIR is PREFIX/lib/forktail/python, or
// python/ of the source tree in which forktail was built. `modules`: libraries that the command may need. If
// no Python has them, one without runs, and the command reports what is missing. The package finds forktail's
// programs through $FORKTAIL_BIN_DIR, which is set here. Returns kCant if there is no Python 3.11 or later:
// the error is printed.
//
// The Python is the first with the modules of: $FORKTAIL_PYTHON (if set, no other); the source tree's
// build-python/ and build-spark/; forktail-python, which the wheel installs, on PATH; the one in
// /opt/forktail; /usr/bin/python3; python3 on PATH; python3.14 to python3.11 on PATH. Without modules it is
// $FORKTAIL_PYTHON, /usr/bin/python3, python3, or python3.14 to python3.11 on PATH.
int RunPython(const std::string &command, const std::vector<std::string> &modules, int argc, char **argv);

} // namespace forktail::cli
