// SPDX-License-Identifier: MIT
// Links or copies a segment.
#pragma once

#include <cstdint>
#include <string>

namespace forktail::live::snapshot
{

// Links or copies a complete file. Returns 0 or an errno; *linked: it is a hard link.
int LinkOrCopy(const std::string &from, const std::string &to, bool *linked);

// Copies the complete blocks of a recording that is being written, and seals the copy. Returns 0 or an errno;
// ENODATA: no complete block yet.
int SealedCopy(const std::string &from, const std::string &to);

} // namespace forktail::live::snapshot
