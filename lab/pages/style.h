/* SPDX-License-Identifier: MIT */
/* The style sheet that is embedded in each of the lab's pages. */
#ifndef FORKTAIL_LAB_PAGES_STYLE_H
#define FORKTAIL_LAB_PAGES_STYLE_H

#ifdef __cplusplus
extern "C" {
#endif

extern const char lab_style[]; /* ends with a NUL */

#ifdef __cplusplus
}
#endif
#endif
