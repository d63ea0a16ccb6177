/* SPDX-License-Identifier: MIT */
/* Carries the page inside the program: one file to install, and no path to get wrong. The assembler's .incbin
 * because a C array of 140 kB takes a compiler longer than all the rest of report/. */
#include "template.h"

/* clang-format off */
__asm__(".pushsection .rodata\n"
	".globl ft_report_template\n"
	".type ft_report_template, %object\n"
	"ft_report_template:\n"
	".incbin \"" FORKTAIL_TEMPLATE "\"\n"
	".size ft_report_template, . - ft_report_template\n"
	".globl ft_report_template_end\n"
	"ft_report_template_end:\n"
	".byte 0\n"
	".popsection\n");
/* clang-format on */

extern const char ft_report_template_end[];

size_t ft_report_template_size(void)
{
	return (size_t)(ft_report_template_end - ft_report_template);
}
