// SPDX-License-Identifier: MIT
// The name of a connection's client, for sentences.
#pragma once

#include <string>

#include "analysis/run.h"

namespace forktail::analysis
{

// The client of a connection in a kernel log and its port: "127.0.0.1:5123", "python3 (4711)"; "" if it is
// unknown.
std::string NameOfSender(const Run &run, const Connection &connection);

} // namespace forktail::analysis
