// SPDX-License-Identifier: MIT
// Which CPUs the kernel's network code runs on: receive and send steering (RPS, XPS) of an interface. The
// keeper puts back what was, however the lab ends.
#pragma once

#include <string>

#include "session.h"

namespace forktail::lab
{

// Receive and send steering (RPS, XPS) of the interface over all CPUs, or none: softirqs then stay on the CPU
// where the interrupt came, or on the loopback interface where the sender runs. A single send queue leaves
// nothing to steer. The keeper puts back what was. False: *error says what this host lacks.
bool SpreadSoftirqs(Session *session, const std::string &interface, bool on, std::string *error);

} // namespace forktail::lab
