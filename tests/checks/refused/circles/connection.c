// SPDX-License-Identifier: MIT
// Its own header, and one of another folder.
#include "connection.h"
#include "tests/checks/refused/circles/net/socket.h"
