// SPDX-License-Identifier: MIT
// Together with connection.c, net/socket.h and session.h a circle, which circles.py must refuse.
#include "connection_parts.h"
