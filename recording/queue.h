/* SPDX-License-Identifier: MIT */
/* Blocks waiting for the disk, so that recording never waits for it. Private to recording/. A separate thread
 * compresses and writes queued blocks. The queue has a limited size in bytes: when the disk stalls until it
 * is full, blocks of records are dropped and counted by kind, with their time range. A drop block replaces
 * them in the file. Blocks that other records refer to, and facts written once, would be missing in the whole
 * recording: such blocks have an additional half of the space. */
#ifndef FORKTAIL_QUEUE_H
#define FORKTAIL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "append.h"

struct ft_queue;

/* Starts the thread, which owns the file from here on; it is running when this returns. Negative errno. */
int ft_queue_start(struct ft_queue **out, struct ft_file *file, size_t bytes);

/* Copies a block in the form of ft_file_append. Returns the file's error, if any. Never waits, except for
 * space once ft_queue_wait_for_space was called. */
int ft_queue_put(struct ft_queue *q, const struct ft_block_header *header, struct ft_cover cover,
		 const void *payload, bool pack);

/* Makes the thread call `job`, which may use the file, after everything queued so far is written. `renews`:
 * it clears the file's error, so that later blocks are not refused. -ENOMEM: it is not called. */
int ft_queue_run(struct ft_queue *q, void (*job)(void *arg), void *arg, bool renews);

void ft_queue_wait_for_space(struct ft_queue *q);

/* Waits until everything is written, including drop blocks. */
void ft_queue_drain(struct ft_queue *q);

/* Records dropped so far. */
uint64_t ft_queue_lost(struct ft_queue *q);

/* Drains, ends the thread and frees; the caller owns the file again. Accepts NULL. */
void ft_queue_end(struct ft_queue *q);

#endif
