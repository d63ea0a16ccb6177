// SPDX-License-Identifier: MIT
// forktail export.
#include "analysis/exports.h"
#include "command.h"

namespace forktail::cli
{

int ExportCommand(int argc, char **argv)
{
	return ExportTo(analysis::exports::ExportFormats(), argc, argv);
}

} // namespace forktail::cli
