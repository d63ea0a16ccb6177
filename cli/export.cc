// SPDX-License-Identifier: MIT
// forktail export.
#include "analysis/exports/formats/formats.h"
#include "command.h"

namespace forktail
{

int ExportCommand(int argc, char **argv)
{
	return ExportTo(ExportFormats(), argc, argv);
}

} // namespace forktail
