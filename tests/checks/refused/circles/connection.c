// SPDX-License-Identifier: MIT
// Includes its own header, and one of another folder.
#include "connection.h"
#include "net/socket.h"
