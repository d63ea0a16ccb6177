// SPDX-License-Identifier: MIT
// Drives an exporter over a run.
#include "export.h"

#include <algorithm>

namespace forktail::analysis::exports
{

const ExportFormat *FindExportFormat(const std::vector<ExportFormat> &formats, const std::string &name,
				     const std::string &asked, std::string *error)
{
	const std::string out = asked.substr(0, asked.find_last_not_of('/') + 1);
	std::string names;
	for (const ExportFormat &f : formats) {
		if (name == f.name)
			return &f;
		if (name.empty())
			for (const std::string &end : f.extensions)
				if (out.ends_with(end))
					return &f;
		names += (names.empty() ? "" : ", ") + std::string(f.name);
	}
	*error = name.empty() ? "the name " + out + " does not show the format. Give --to FORMAT: " + names
			      : "unknown format '" + name + "'. Formats: " + names;
	return nullptr;
}

namespace
{

bool Drive(Exporter *exporter, Explanation *e)
{
	const Exporter::Wants wants = exporter->wants();
	if (!exporter->Begin(*e))
		return false;
	bool ok = true;
	if (wants.stretches)
		e->stretches.each([&](uint64_t from_ns, uint64_t to_ns) {
			e->activities = ActivitiesOf(e->run);
			ok = ok && exporter->Stretch(*e, from_ns, to_ns);
		});
	if (wants.windows && ok && e->log)
		for (e->log->Rewind(); ok && e->log->Next();)
			ok = exporter->Window(*e);
	return ok && exporter->End(*e);
}

} // namespace

bool ExportRun(const std::string &run, const ExplainOptions &asked, const ExportFormat &format,
	       const std::string &out, std::string *error, int *status, std::vector<std::string> *warnings)
{
	*status = 3;
	common::Pending pending;
	if (!pending.Begin(out, format.kind, error))
		return false;
	std::unique_ptr<Exporter> exporter = format.make(pending.at(), error);
	if (!exporter)
		return false;
	ExplainOptions options = asked;
	bool ok = true;
	if (exporter->wants().blamed)
		options.tell = [&](const Run &r, const SlowRequest &request, const Part *parts) {
			ok = ok && exporter->Blamed(r, request, parts);
		};
	Explanation e;
	if (!ExplainRun(run, options, &e, error, status))
		return false;
	*status = 3;
	if (!ok || !Drive(exporter.get(), &e)) {
		*error = exporter->error();
		return false;
	}
	exporter.reset();
	if (!pending.Commit(error, e.run.shared_mode))
		return false;
	if (warnings)
		*warnings = e.run.warnings;
	*status = 0;
	return true;
}

} // namespace forktail::analysis::exports
