// SPDX-License-Identifier: MIT
// The first block of a recording: the program, its settings, and the host.
#pragma once

#include <string>

#include "read_blocks.h"

namespace forktail::analysis
{

// Reads what describes the file.
void ReadManifest(OpenFile *f, const std::string &text);
// Copies what describes the run as a whole. The file is the next one of the run. `of_log` gets what describes
// the file's requests.
void UseManifest(OpenFile *f, Run *run, Run *of_log);

} // namespace forktail::analysis
