/* SPDX-License-Identifier: MIT */
/* Embeds docs/reference/causes.md in the program, so that a terminal shows the same words as the
 * documentation. */
/* clang-format off */
__asm__(".pushsection .rodata\n"
	".globl ft_causes_page\n"
	".type ft_causes_page, %object\n"
	"ft_causes_page:\n"
	".incbin \"" FORKTAIL_CAUSES_PAGE "\"\n"
	".byte 0\n"
	".size ft_causes_page, . - ft_causes_page\n"
	".popsection\n");
/* clang-format on */
extern const char ft_causes_page[];
