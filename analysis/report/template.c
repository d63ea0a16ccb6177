/* SPDX-License-Identifier: MIT */
/* Embeds the pages in the program. */
#include "template.h"

#include "common/embed.h"

FT_EMBED("ft_report_template", FORKTAIL_TEMPLATE);
FT_EMBED("ft_compare_template", FORKTAIL_COMPARE_TEMPLATE);

extern const char ft_report_template_end[], ft_compare_template_end[];

size_t ft_report_template_size(void)
{
	return (size_t)(ft_report_template_end - ft_report_template);
}

size_t ft_compare_template_size(void)
{
	return (size_t)(ft_compare_template_end - ft_compare_template);
}
