// SPDX-License-Identifier: MIT
// By way of the folder above.
#include "../session.h"
