/* SPDX-License-Identifier: MIT */
/* A recorder that runs all the time: it writes a ring instead of one file (output/segments.h), and
 * continues whatever becomes of its targets or of the disk. */
#ifndef FORKTAIL_LOADER_FLIGHT_RECORDER_H
#define FORKTAIL_LOADER_FLIGHT_RECORDER_H

#include "loader/recorder.h"

/* Takes the ring's directory. Returns the exit status. */
int flight_recorder_open(struct recorder *r);
/* Has it watched, if that is wanted. Returns the exit status. */
int flight_recorder_start_guard(struct recorder *r);
/* Begins its first segment. 0 or a negative errno. */
int flight_recorder_begin(struct recorder *r);
/* At every tick of the recorder. */
void flight_recorder_tick(struct recorder *r);
/* Somebody has changed the configuration: a note for the guard, whose it is. */
void flight_recorder_reload(struct recorder *r);
/* Somebody wants what has just happened to be saved: a note, for whoever reads the ring. */
void flight_recorder_trigger(struct recorder *r);

#endif
