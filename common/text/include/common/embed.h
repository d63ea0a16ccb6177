/* SPDX-License-Identifier: MIT */
/* Embeds a file in a program, so that there is one file to install. It uses the assembler's .incbin, because
 * a C array of 140 kB takes longer to compile than the rest of the program. */
#ifndef FORKTAIL_COMMON_EMBED_H
#define FORKTAIL_COMMON_EMBED_H

/* At file scope: defines NAME, the bytes of `file` and a zero, and NAME_end, where the zero is. Declare them
 * as `extern const char NAME[], NAME_end[]`. The build has to know that the object depends on the file. */
/* clang-format off */
#define FT_EMBED(name, file) \
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
/* clang-format on */

#endif
