// SPDX-License-Identifier: MIT
// See formats.h.
#include "formats.h"

#include "export/perfetto/perfetto.h"

namespace forktail
{

const std::vector<ExportFormat> &ExportFormats()
{
	static const std::vector<ExportFormat> formats = {
	    {"perfetto", {".perfetto-trace", ".pftrace"}, Pending::kFile, MakePerfetto},
	};
	return formats;
}

} // namespace forktail
