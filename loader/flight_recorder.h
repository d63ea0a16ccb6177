/* SPDX-License-Identifier: MIT */
/* A recorder that runs all the time: it writes a ring instead of one file (ring.h), and goes on whatever
 * becomes of its targets or of the disk. */
#ifndef FORKTAIL_LOADER_KEEP_H
#define FORKTAIL_LOADER_KEEP_H

#include "loader/recorder.h"

/* Takes the ring's directory. Returns the exit status. */
int keep_open(struct recorder *r);
/* Has it watched, if that is wanted. Returns the exit status. */
int keep_guarded(struct recorder *r);
/* Begins its first segment. 0 or a negative errno. */
int keep_begin(struct recorder *r);
/* Every turn of the recorder's loop. */
void keep_tick(struct recorder *r);
/* Somebody has changed the configuration: a note for the guard, whose it is. */
void keep_reload(struct recorder *r);
/* Somebody wants what has just happened to be saved: a note, for whoever reads the ring. */
void keep_trigger(struct recorder *r);

#endif
