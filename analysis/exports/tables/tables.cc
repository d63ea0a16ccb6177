// SPDX-License-Identifier: MIT
// The exporter of tables, independent of their file format.
#include "tables.h"

#include <algorithm>
#include <cstdio>

#include "filler.h"
#include "schema.h"

namespace forktail::analysis::exports
{

namespace
{

// The hash uses only whole numbers and texts from the recordings, so that a run keeps its id wherever it is
// stored.
uint64_t Hash(const std::string &text, uint64_t hash)
{
	for (unsigned char c : text) // FNV-1a
		hash = (hash ^ c) * 1099511628211u;
	return (hash ^ 0xff) * 1099511628211u;
}

// A sink that passes on only some of the tables.
class Chosen : public TableSink
{
public:
	Chosen(std::unique_ptr<TableSink> sink, const std::vector<std::string> &names)
	    : sink_(std::move(sink)), names_(names)
	{
	}
	bool Open(const std::vector<TableKind> &tables) override
	{
		std::vector<TableKind> kinds;
		for (const TableKind &kind : tables) {
			const bool wanted =
			    std::find(names_.begin(), names_.end(), kind.name) != names_.end();
			at_.push_back(wanted ? kinds.size() : SIZE_MAX);
			if (wanted)
				kinds.push_back(kind);
		}
		return sink_->Open(kinds) || Fail(sink_->error());
	}
	bool Write(size_t table, const Batch &batch) override
	{
		return at_[table] == SIZE_MAX || sink_->Write(at_[table], batch) || Fail(sink_->error());
	}
	bool Close() override { return sink_->Close() || Fail(sink_->error()); }

private:
	std::unique_ptr<TableSink> sink_;
	std::vector<std::string> names_;
	std::vector<size_t> at_;
};

class TablesExporter : public Exporter
{
public:
	TablesExporter(std::unique_ptr<TableSink> sink, Wants wants)
	    : sink_(std::move(sink)), filler_(sink_.get()), wants_(wants)
	{
	}
	Wants wants() const override { return wants_; }
	bool Blamed(const Run &run, const SlowRequest &request, const Part *parts) override
	{
		return Checked(Opened(run) && filler_.AddSlow(run, request, parts));
	}
	bool Begin(const Explanation &e) override { return Checked(Opened(e.run)); }
	bool Stretch(const Explanation &e, uint64_t from_ns, uint64_t to_ns) override
	{
		return Checked(filler_.AddStretch(e, from_ns, to_ns));
	}
	bool Window(const Explanation &e) override { return Checked(filler_.AddWindow(e)); }
	bool End(const Explanation &e) override
	{
		return Checked(filler_.AddFacts(e) && filler_.Flush() && sink_->Close());
	}

private:
	bool Opened(const Run &run) { return filler_.opened() || filler_.Open(run, RunId(run)); }
	bool Checked(bool ok) { return ok || Fail(sink_->error()); }

	std::unique_ptr<TableSink> sink_;
	Filler filler_;
	Wants wants_;
};

} // namespace

std::string RunId(const Run &run)
{
	std::vector<std::string> manifests;
	for (const RecordingFile &f : run.files)
		manifests.push_back(f.manifest.bytes);
	std::sort(manifests.begin(), manifests.end());
	uint64_t hash = 14695981039346656037u;
	for (const std::string &m : manifests)
		hash = Hash(m, hash);
	char text[17];
	snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
	return text;
}

std::unique_ptr<Exporter> MakeTables(std::unique_ptr<TableSink> sink, const std::vector<std::string> &tables)
{
	if (tables.empty())
		return std::make_unique<TablesExporter>(std::move(sink), Exporter::Wants{true, true, true});
	auto any = [&](const std::vector<TableId> &of) {
		return std::any_of(of.begin(), of.end(), [&](TableId t) {
			return std::find(tables.begin(), tables.end(), Tables()[t].name) != tables.end();
		});
	};
	const Exporter::Wants wants = {any({kSlow, kParts}),
				       any({kSpans, kTallies, kIterations, kSamples, kStacks, kDisk}),
				       any({kRequests})};
	return std::make_unique<TablesExporter>(std::make_unique<Chosen>(std::move(sink), tables), wants);
}

} // namespace forktail::analysis::exports
