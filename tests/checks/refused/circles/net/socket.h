// SPDX-License-Identifier: MIT
// By way of the folder above.
#include "tests/checks/refused/circles/session.h"
