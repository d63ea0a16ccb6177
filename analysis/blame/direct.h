// SPDX-License-Identifier: MIT
// Exact blame of a request that a server was asked directly; through.h has those that went through a proxy.
#pragma once

#include "blamed_requests.h"
#include "context.h"

namespace forktail::analysis
{

// Adds request i of the window of the log that is in memory, with its parts.
void BlameDirectly(const Context &context, size_t i, Sheet *sheet);

} // namespace forktail::analysis
