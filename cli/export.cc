// SPDX-License-Identifier: MIT
// forktail export.
#include "command.h"
#include "export/formats/formats.h"

namespace forktail
{

int ExportCommand(int argc, char **argv)
{
	return ExportTo(ExportFormats(), argc, argv);
}

} // namespace forktail
