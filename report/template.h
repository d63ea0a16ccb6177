/* SPDX-License-Identifier: MIT */
/* The report page without its data, as build.mjs made it: HTML with "@DATA@" where the data goes. */
#ifndef FORKTAIL_REPORT_TEMPLATE_H
#define FORKTAIL_REPORT_TEMPLATE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const char ft_report_template[];
size_t ft_report_template_size(void);

#ifdef __cplusplus
}
#endif
#endif
