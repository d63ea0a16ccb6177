// SPDX-License-Identifier: MIT
// Reads files that may come from a stranger: a run directory that was unpacked can have a FIFO, a device or a
// file without end in place of any file.
#pragma once

#include <cstddef>
#include <string>

namespace forktail::common
{

// Reads a whole regular file of at most `most` bytes, without blocking. False: it is absent, something else,
// or larger; errno says which (EFBIG: larger; EINVAL: no regular file).
bool ReadRegular(const std::string &path, size_t most, std::string *text);

} // namespace forktail::common
