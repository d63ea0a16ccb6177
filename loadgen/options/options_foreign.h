/* SPDX-License-Identifier: MIT */
/* Options of other load generators that forktail-load does not have. Users try them, because many names are
 * the same; each is refused with one sentence that names our option. */
#ifndef FORKTAIL_LOADGEN_OPTIONS_FOREIGN_H
#define FORKTAIL_LOADGEN_OPTIONS_FOREIGN_H

#include <argp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A name of one character is a short option. */
struct foreign_option {
	const char *name, *sentence;
};

/* Ends with a name of NULL. */
extern const struct foreign_option foreign_options[];

/* For the parser of options_read.c: accepts these options, with or without a value, and hides them in --help.
 */
const struct argp_child *options_foreign(void);

#ifdef __cplusplus
}
#endif

#endif
