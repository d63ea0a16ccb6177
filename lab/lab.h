// SPDX-License-Identifier: MIT
// `forktail lab`: experiments that start a server, a load and the recorder, and explain what happened.
#pragma once

namespace forktail::lab
{

// The command line of `forktail lab ...`; argv[0] is "lab". Returns the exit status: 0 done, 2 usage, 3 a
// failure of the environment. After a stop signal it cleans up and then dies of that signal.
int LabMain(int argc, char **argv);

} // namespace forktail::lab
