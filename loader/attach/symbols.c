/* SPDX-License-Identifier: MIT */
/* A sorted table of kernel functions. Symbolizers such as libdw and blazesym read ELF files. For the kernel,
 * /proc/kallsyms is the only source that needs no debug package, and it is almost sorted. */
#include "loader/attach/symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/system/affinity.h"
#include "loader/system/grow.h"

/* No function is longer than this: an address further beyond a name has no name. */
enum { FUNCTION_BYTES = 1 << 20 };

struct symbol {
	uint64_t address;
	uint32_t name; /* offset into names */
};

static struct symbol *symbols;
static size_t symbol_count;
static char *names;

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const struct symbol *)a)->address, y = ((const struct symbol *)b)->address;
	return x < y ? -1 : x > y;
}

size_t symbols_load(void)
{
	if (symbol_count)
		return symbol_count;
	FILE *f = fopen("/proc/kallsyms", "re");
	size_t room = 0, names_size = 0, names_room = 0;
	char line[512], name[256], type;
	uint64_t address;
	while (f && fgets(line, sizeof line, f)) {
		cpu_offer_in_loop();
		if (sscanf(line, "%" SCNx64 " %c %255s", &address, &type, name) != 3 || !address ||
		    (type != 't' && type != 'T'))
			continue;
		size_t length = strlen(name) + 1;
		if (!grow(&symbols, &room, symbol_count, sizeof *symbols))
			break;
		if (names_size + length > names_room) {
			names_room = names_room ? names_room * 2 : 1 << 20;
			char *grown = realloc(names, names_room);
			if (!grown)
				break;
			names = grown;
		}
		memcpy(names + names_size, name, length);
		symbols[symbol_count++] = (struct symbol){address, (uint32_t)names_size};
		names_size += length;
	}
	if (f)
		fclose(f);
	if (symbol_count)
		qsort(symbols, symbol_count, sizeof *symbols, by_address);
	return symbol_count;
}

void symbol_name(uint64_t address, char *text, size_t size)
{
	size_t low = 0, high = symbol_count; /* first symbol above the address */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - symbols[low - 1].address >= FUNCTION_BYTES)
		snprintf(text, size, "?");
	else
		snprintf(text, size, "%s+0x%" PRIx64, names + symbols[low - 1].name,
			 address - symbols[low - 1].address);
}
