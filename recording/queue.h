/* SPDX-License-Identifier: MIT */
/* Blocks on their way to the disk: whoever records never waits for it. Private to recording/.
 *
 * A thread of its own compresses and writes what is queued. The queue holds so many bytes and no more: when
 * the disk stands still for so long that it is full, blocks of records are dropped and counted, by kind and
 * with the time that they cover. A drop block takes their place in the file.
 *
 * What other records refer to by a number, and what is said once, would be missing in all of the recording:
 * such blocks have half as much room again for themselves.
 */
#ifndef FORKTAIL_QUEUE_H
#define FORKTAIL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "append.h"

struct ft_queue;

/* Starts the thread, which alone has the file from here on; it has begun when this returns. Negative errno.
 */
int ft_queue_start(struct ft_queue **out, struct ft_file *file, size_t bytes);

/* Copies a block as ft_file_append would take it. The file's error, if it has one. Never waits, but of a
 * patient queue for room. */
int ft_queue_put(struct ft_queue *q, const struct ft_block_header *header, struct ft_cover cover,
		 const void *payload, bool pack);

/* Has the thread call `job`, which may touch the file, when all that was put so far is written. `renews`:
 * with it the file's error is over, so that what is put behind it isn't refused for that. -ENOMEM: it is not
 * called. */
int ft_queue_run(struct ft_queue *q, void (*job)(void *arg), void *arg, bool renews);

void ft_queue_patient(struct ft_queue *q);

/* Waits until all is written, also what was dropped. */
void ft_queue_drain(struct ft_queue *q);

/* Records dropped so far. */
uint64_t ft_queue_lost(struct ft_queue *q);

/* Drains, ends the thread and frees; the file is the caller's again. NULL is none. */
void ft_queue_end(struct ft_queue *q);

#endif
