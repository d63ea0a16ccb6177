// SPDX-License-Identifier: MIT
// With connection.c, net/socket.h and session.h one circle, for circles.py to refuse.
#include "connection_parts.h"
