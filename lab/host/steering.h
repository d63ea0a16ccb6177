// SPDX-License-Identifier: MIT
// The CPUs of the kernel's network code: receive and send steering (RPS, XPS) of an interface. The keeper
// restores the settings, however the lab ends.
#pragma once

#include <string>

#include "session.h"

namespace forktail::lab
{

// Sets receive and send steering (RPS, XPS) of the interface to all CPUs, or to none: then softirqs stay on
// the CPU of the interrupt, or of the sender on the loopback interface. False: *error says what this host
// lacks.
bool SpreadSoftirqs(Session *session, const std::string &interface, bool on, std::string *error);

} // namespace forktail::lab
