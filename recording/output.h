/* SPDX-License-Identifier: MIT */
/* The output file of a recording. Private to recording/. */
#ifndef FORKTAIL_OUTPUT_H
#define FORKTAIL_OUTPUT_H

/* Opens it, empty and locked, for reading and writing; or a negative errno as in ft_writer_open. */
int ft_output_open(const char *path);

/* Creates a new file in an open directory; also empty, locked and accessible to its owner only. */
int ft_output_create(int dir, const char *name);

#endif
