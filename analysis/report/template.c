/* SPDX-License-Identifier: MIT */
/* Embeds the pages in the program, so that there is one file to install. It uses the assembler's .incbin,
 * because a C array of 140 kB takes longer to compile than the rest of report/. */
#include "template.h"

/* clang-format off */
#define CARRY(name, file) \
	__asm__(".pushsection .rodata\n" \
		".globl " name "\n" \
		".type " name ", %object\n" \
		name ":\n" \
		".incbin \"" file "\"\n" \
		".size " name ", . - " name "\n" \
		".globl " name "_end\n" \
		name "_end:\n" \
		".byte 0\n" \
		".popsection\n")
CARRY("ft_report_template", FORKTAIL_TEMPLATE);
CARRY("ft_compare_template", FORKTAIL_COMPARE_TEMPLATE);
/* clang-format on */

extern const char ft_report_template_end[], ft_compare_template_end[];

size_t ft_report_template_size(void)
{
	return (size_t)(ft_report_template_end - ft_report_template);
}

size_t ft_compare_template_size(void)
{
	return (size_t)(ft_compare_template_end - ft_compare_template);
}
