// SPDX-License-Identifier: MIT
// Its own header, and one of another folder.
#include "connection.h"
#include "net/socket.h"
