/* SPDX-License-Identifier: MIT */
/* The report's base and what is the lab's own, one behind the other, by the assembler: style sheets stay
 * files that an editor knows as such. */
#include "style.h"

/* clang-format off */
__asm__(".pushsection .rodata\n"
	".globl lab_style\n"
	".type lab_style, %object\n"
	"lab_style:\n"
	".incbin \"" FORKTAIL_BASE_STYLE "\"\n"
	".incbin \"" FORKTAIL_LAB_STYLE "\"\n"
	".byte 0\n"
	".size lab_style, . - lab_style\n"
	".popsection\n");
/* clang-format on */
