/* SPDX-License-Identifier: MIT */
/* Flight recorder: writes a ring of segments instead of one file (output/segments.h) and continues whatever
 * happens to its targets or the disk. */
#ifndef FORKTAIL_LOADER_FLIGHT_RECORDER_H
#define FORKTAIL_LOADER_FLIGHT_RECORDER_H

#include "loader/recorder.h"

/* Opens the ring's directory. Returns the exit status. */
int flight_recorder_open(struct recorder *r);
/* Starts the guard if it is wanted. Returns the exit status. */
int flight_recorder_start_guard(struct recorder *r);
/* Begins the first segment. Returns 0 or a negative errno. */
int flight_recorder_begin(struct recorder *r);
/* Called at every tick of the recorder. */
void flight_recorder_tick(struct recorder *r);
/* The configuration was changed: writes a note for the guard, which reads it. */
void flight_recorder_reload(struct recorder *r);
/* A user requests a snapshot of what just happened: writes a note for programs that read the ring. */
void flight_recorder_trigger(struct recorder *r);

#endif
