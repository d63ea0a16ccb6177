// SPDX-License-Identifier: MIT
// What the first block of a recording says: who recorded what, and where.
#pragma once

#include <string>

#include "read_blocks.h"

namespace forktail::analysis
{

// What it says of its file.
void ReadManifest(OpenFile *f, const std::string &text);
// Takes over what it says about the run as a whole. The file is the run's next.
void UseManifest(OpenFile *f, Run *run);

} // namespace forktail::analysis
