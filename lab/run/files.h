// SPDX-License-Identifier: MIT
// Files that are there as a whole or as they were before, whatever happens meanwhile.
#pragma once

#include <string>

namespace forktail
{

// Writes beside the file under a hidden name, then renames. False: *error is one sentence.
bool ReplaceFile(const std::string &path, const std::string &text, std::string *error);

} // namespace forktail
