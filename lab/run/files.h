// SPDX-License-Identifier: MIT
// Files that are replaced atomically.
#pragma once

#include <string>

namespace forktail::lab
{

// The content of a file; "" if it cannot be read.
std::string ReadFile(const std::string &path);
// Writes a temporary file in the same directory, then renames it (common/files.h). False: *error is
// one sentence.
bool ReplaceFile(const std::string &path, const std::string &text, std::string *error);

// True if a directory contains no file, except an unfinished one of ReplaceFile(): its run was killed before
// it wrote its identity.
bool HoldsNothing(const std::string &directory);

} // namespace forktail::lab
