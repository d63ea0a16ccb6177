// SPDX-License-Identifier: MIT
// The first block of a recording: the program, its settings, and the host.
#pragma once

#include <string>

#include "read_blocks.h"

namespace forktail::analysis
{

// Reads what describes the file.
void ReadManifest(OpenFile *f, const common::Raw &text);
// The sample of a kernel log: requests are of one in this many connections.
uint32_t SampleOf(const common::Json &j);
// Adds what is not in the recording, unless it was added before.
void AddMissing(const common::Json &j, Run *run);
// Copies what describes the run as a whole. The file is the next one of the run. Its `of_log` gets what
// describes its requests.
void UseManifest(OpenFile *f, Run *run);

} // namespace forktail::analysis
