/* SPDX-License-Identifier: MIT */
/* The file that a recording goes to. Private to recording/. */
#ifndef FORKTAIL_OUTPUT_H
#define FORKTAIL_OUTPUT_H

/* Opens it, empty and locked, for reading and writing; or a negative errno, as ft_writer_open has them. */
int ft_output_open(const char *path);

/* Makes a file that is not there yet, in an open directory; likewise empty, locked and nobody else's. */
int ft_output_create(int dir, const char *name);

#endif
