// SPDX-License-Identifier: MIT
// Files that are there as a whole or as they were before, whatever happens meanwhile.
#pragma once

#include <string>

namespace forktail::lab
{

// What is in a file; "" if it can't be read.
std::string ReadFile(const std::string &path);
// Writes beside the file under a hidden name, then renames. False: *error is one sentence.
bool ReplaceFile(const std::string &path, const std::string &text, std::string *error);

// Whether a directory holds no file but one that ReplaceFile() didn't finish: what began it was killed before
// it could write down what the directory is of.
bool HoldsNothing(const std::string &directory);

} // namespace forktail::lab
