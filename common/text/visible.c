/* SPDX-License-Identifier: MIT */
/* Untrusted text in printable form.
 *
 * UTF-8 is decoded strictly: no overlong forms, no surrogates, nothing above U+10FFFF. Bytes that a lenient
 * decoder would take for ESC (c0 9b) are two invalid bytes here. */
#include "common/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The character that begins here, and its bytes; 0: not a character. */
static size_t decode(const unsigned char *at, size_t left, uint32_t *character)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t bytes = at[0] < 0x80   ? 1
		       : at[0] < 0xc2 ? 0
		       : at[0] < 0xe0 ? 2
		       : at[0] < 0xf0 ? 3
		       : at[0] < 0xf5 ? 4
				      : 0;

	if (!bytes || bytes > left)
		return 0;
	*character = bytes == 1 ? at[0] : at[0] & (0x7fu >> bytes);
	for (size_t i = 1; i < bytes; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		*character = *character << 6 | (at[i] & 0x3f);
	}
	if (*character < least[bytes] || *character > 0x10ffff ||
	    (*character >= 0xd800 && *character < 0xe000))
		return 0;
	return bytes;
}

static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

/* A character that is invisible and changes how others look: joiners and direction marks, line separators,
 * embeddings, overrides and isolates, the byte order mark, annotations, tags. */
static bool is_hidden(uint32_t c)
{
	return c == 0xad || c == 0x61c || c == 0x180e || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

/* The escaped form of a character that must not be printed. False: it may be printed. 0 `bytes`: an invalid
 * byte. */
static bool escaped(char escape[16], uint32_t c, size_t bytes)
{
	if (bytes && !is_control(c) && !is_hidden(c))
		return false;
	if (!bytes || is_control(c))
		snprintf(escape, 16, "\\x%02x", (unsigned)c);
	else
		snprintf(escape, 16, c > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)c);
	return true;
}

/* How the first character of `text` is printed: *width bytes from *shown on, which may be in `escape`.
 * Returns its number of bytes in the text. */
static size_t show(const char *text, size_t left, char escape[16], const char **shown, size_t *width)
{
	uint32_t c = 0;
	size_t bytes = decode((const unsigned char *)text, left, &c);

	*shown = text;
	*width = bytes;
	if (escaped(escape, bytes ? c : (unsigned char)*text, bytes)) {
		*shown = escape;
		*width = strlen(escape);
	}
	return bytes ? bytes : 1;
}

size_t visible_text(char *out, size_t size, const char *text, size_t length)
{
	size_t all = 0, used = 0, width;
	const char *shown;
	char escape[16];

	for (size_t i = 0; i < length; all += width) {
		i += show(text + i, length - i, escape, &shown, &width);
		/* After something that did not fit, nothing else is added, however short. */
		if (used == all && all + width < size) {
			memcpy(out + used, shown, width);
			used += width;
		}
	}
	if (size)
		out[used] = 0;
	return all;
}

void put_visible(FILE *to, const char *text)
{
	size_t left = strlen(text), width;
	const char *shown;
	char escape[16];

	while (left) {
		size_t bytes = show(text, left, escape, &shown, &width);

		fwrite(shown, 1, width, to);
		text += bytes;
		left -= bytes;
	}
}
