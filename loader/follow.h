/* SPDX-License-Identifier: MIT */
/* Targets that come and go while a ring is kept: restarted, appeared, ended. */
#ifndef FORKTAIL_LOADER_FOLLOW_H
#define FORKTAIL_LOADER_FOLLOW_H

#include "loader/recorder.h"

/* At every tick of the recorder: looks once a second who is there, and less often where that takes long.
 */
void follow_tick(struct recorder *r);
/* Looks at the next tick, whatever it takes. */
void follow_soon(struct recorder *r);

#endif
