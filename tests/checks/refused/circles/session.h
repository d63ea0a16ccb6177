// SPDX-License-Identifier: MIT
// Which closes the circle.
#include "connection.h"
