/* SPDX-License-Identifier: MIT */
/* The reader of /proc/PID/maps under libFuzzer: the returned file names are inside the text and terminated,
 * and their number is limited. */
#include <stdlib.h>
#include <string.h>

#include "loader/samples.h"
#include "tests/fuzz/check.h"

static void on_file(void *context, const struct mapped_file *f)
{
	char name[16];
	if (++*(size_t *)context > MAPPED_FILES || f->start >= f->end || f->code_start >= f->code_end ||
	    f->code_start < f->start || memchr(f->path, 0, sizeof f->path) == NULL || strchr(f->path, '\n'))
		abort();
	mappings_base_name(f->path, name, sizeof name);
	if (strchr(name, '/'))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t count = 0;
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	mappings_each(text, on_file, &count);
	free(text);
	return 0;
}
