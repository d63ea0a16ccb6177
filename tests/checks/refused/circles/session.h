// SPDX-License-Identifier: MIT
// Closes the circle.
#include "connection.h"
