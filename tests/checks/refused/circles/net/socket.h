// SPDX-License-Identifier: MIT
// Goes through the folder above.
#include "../session.h"
