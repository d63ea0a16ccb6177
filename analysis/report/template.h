/* SPDX-License-Identifier: MIT */
/* The pages without their data, as build.mjs made them: HTML with "@DATA@" where the data goes. */
#ifndef FORKTAIL_ANALYSIS_REPORT_TEMPLATE_H
#define FORKTAIL_ANALYSIS_REPORT_TEMPLATE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of a run. */
extern const char ft_report_template[];
size_t ft_report_template_size(void);
/* Of a comparison. */
extern const char ft_compare_template[];
size_t ft_compare_template_size(void);

#ifdef __cplusplus
}
#endif
#endif
