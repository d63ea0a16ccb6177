// SPDX-License-Identifier: MIT
// Exact blame of a request sent to a server directly. proxy.h has requests through a proxy.
#pragma once

#include "blamed_requests.h"
#include "context.h"

namespace forktail::analysis
{

// Adds request i of the current window of the log, with its parts.
void BlameDirectly(const Context &context, size_t i, Sheet *sheet);

} // namespace forktail::analysis
