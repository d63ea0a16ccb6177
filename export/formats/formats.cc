// SPDX-License-Identifier: MIT
// See formats.h.
#include "formats.h"

#include "export/tables/csv.h"
#include "export/tables/tables.h"

namespace forktail
{

namespace
{

std::unique_ptr<Exporter> Csv(const std::string &path, std::string *)
{
	return MakeTables(MakeCsv(path));
}

} // namespace

const std::vector<ExportFormat> &ExportFormats()
{
	static const std::vector<ExportFormat> formats = {
	    {"parquet", {".parquet"}, Pending::kDirectory, nullptr, "forktail-parquet"},
	    {"csv", {".csv"}, Pending::kDirectory, Csv},
	};
	return formats;
}

} // namespace forktail
