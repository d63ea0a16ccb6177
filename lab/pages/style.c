/* SPDX-License-Identifier: MIT */
/* Embeds the report's base style and the lab's style with the assembler, so that style sheets remain .css
 * files. */
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
