// SPDX-License-Identifier: MIT
// forktail-parquet: `forktail export --to parquet`, a separate program because it needs the Arrow libraries.
#include "analysis/exports.h"
#include "analysis/parquet.h"
#include "command.h"

namespace
{

std::unique_ptr<forktail::analysis::exports::Exporter> Some(const std::string &path,
							    const std::vector<std::string> &tables)
{
	return forktail::analysis::exports::MakeTables(forktail::analysis::exports::MakeParquet(path),
						       tables);
}

std::unique_ptr<forktail::analysis::exports::Exporter> Parquet(const std::string &path, std::string *)
{
	return Some(path, {});
}

} // namespace

int main(int argc, char **argv)
{
	const std::vector<forktail::analysis::exports::ExportFormat> formats = {
	    {"parquet", {".parquet"}, forktail::common::Pending::kDirectory, Parquet, Some}};
	return forktail::cli::ExportTo(formats, argc - 1, argv + 1);
}
