/* SPDX-License-Identifier: MIT */
/* Embeds docs/reference/causes.md in the program, so that a terminal shows the same words as the
 * documentation. */
#include "common/embed.h"

FT_EMBED("ft_causes_page", FORKTAIL_CAUSES_PAGE);
