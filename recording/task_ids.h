/* SPDX-License-Identifier: MIT */
/* Ids of tasks in recordings, for the kernel programs and the analysis. */
#ifndef FORKTAIL_TASK_IDS_H
#define FORKTAIL_TASK_IDS_H

/* Added to the id of a task that the recorder's pid namespace does not contain, in CPU slices, block I/O and
 * writes: it is the host's id, which may be another task's in the namespace. */
#define FT_TASK_OUTSIDE 0x80000000u

#endif
