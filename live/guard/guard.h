// SPDX-License-Identifier: MIT
// The guard of a ring: follows the recording, checks the trigger rules, takes snapshots, answers on the
// control socket and reports to the service manager. It never communicates with the recorder, which never
// waits for it.
#pragma once

#include <string>

#include "options.h"

namespace forktail::live::guard
{

// Runs until SIGTERM or SIGINT, or until the recorder that started it ends. False: it could not start; *error
// is one sentence.
bool RunGuard(const GuardOptions &options, const Config &config, std::string *error);

} // namespace forktail::live::guard
