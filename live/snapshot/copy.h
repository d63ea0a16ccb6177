// SPDX-License-Identifier: MIT
// A segment in a second place.
#pragma once

#include <cstdint>
#include <string>

namespace forktail::live::snapshot
{

// 0, or an errno: of a file that is complete. `linked` says that it is the same file by a second name.
int LinkOrCopy(const std::string &from, const std::string &to, bool *linked);

// Copies the whole blocks of a recording that is being written, and ends the copy as recordings end. 0, or an
// errno; ENODATA: nothing whole is there yet.
int SealedCopy(const std::string &from, const std::string &to);

} // namespace forktail::live::snapshot
