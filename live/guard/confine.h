// SPDX-License-Identifier: MIT
// What the guard may do: nothing that whom the ring belongs to may not, and of that not all.
#pragma once

#include <string>

namespace forktail::live::guard
{

// Becomes the user whom `path` belongs to, if it is root and that is somebody else; gives up all
// capabilities, for good and for its children; shuts system calls that neither it nor they need and that
// reach into other processes or the kernel. False: *error is one sentence.
bool Confine(const std::string &path, std::string *error);

} // namespace forktail::live::guard
