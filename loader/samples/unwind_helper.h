/* SPDX-License-Identifier: MIT */
/* The helper process that reads untrusted data of targets: ELF files, unwind tables, stacks. */
#ifndef FORKTAIL_LOADER_UNWIND_HELPER_H
#define FORKTAIL_LOADER_UNWIND_HELPER_H

#include "loader/system/helper_process.h"

#ifdef __cplusplus
extern "C" {
#endif

/* It cannot look for anything on the host: it has no capabilities, no files except those it is given
 * (unwind_messages.h), and few system calls. Its note says which file it is reading. */
extern const struct helper_setup unwind_helper;

#ifdef __cplusplus
}
#endif

#endif
