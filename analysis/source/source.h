// SPDX-License-Identifier: MIT
// A run on disk. What there is little of is read when it is opened: threads, names, connections, notes,
// metrics. What there is much of (requests; spans and the like) is read when it is asked for, by blocks, of
// which is known where they lie and which time they cover.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/part.h"
#include "analysis/run/run.h"
#include "log_reader.h"
#include "read_blocks.h"
#include "survey.h"

namespace forktail::analysis
{

struct Found;

class RunSource
{
public:
	// Is told of passes over files and what servers' threads did, and outlives this.
	void OnProgress(Progress *progress) { progress_ = progress; }
	// Reads what there is little of into *run. `scan`: don't trust the files' indexes. Of a ring only
	// what the part may need that will be asked for. False: *error is one sentence for the user.
	bool Open(const std::string &path, bool scan, Run *run, std::string *error,
		  const PartAsked &asked = {});
	// When the first request was due, and the last answer came, of a run without a log when the recording
	// began and ended: as blocks' times say.
	TimeSpan Span(Run *run) const;
	bool has_log() const { return has_log_; }
	// From here on the run is the requests due in that part, and what threads did then and somewhat
	// earlier: other blocks are not read. Of a run without a log, what threads did then.
	void Restrict(const TimeSpan &part);
	// Reads what the servers' threads did, all of it, and puts it in order (IndexRun).
	void LoadServers(Run *run);
	// The same if that takes no more than so many bytes; else finds out what has to be known of all of
	// it, and Cover() reads stretches that do.
	void OpenServers(uint64_t bytes, Run *run);
	// Stretches that follow each other and together are all of it, each a stretch that Cover() reads.
	struct Stretch {
		uint64_t from_ns, to_ns;
	};
	// Leaves of stretches what is in [from_ns, to_ns).
	void Bound(uint64_t from_ns, uint64_t to_ns);
	const std::vector<Stretch> &stretches() const { return stretches_; }
	// Makes that what threads did in [from_ns, to_ns) is there, as if all of it were. True: it was not
	// before, and all that was made of the stretch before has to be made again. What comes next is read
	// as far as there is room, but not beyond until_ns.
	bool Cover(uint64_t from_ns, uint64_t to_ns, Run *run, uint64_t until_ns = UINT64_MAX);
	// Until when a stretch that begins at from_ns can go on. One that is asked to cover more than twice
	// as much begins later than it is asked to.
	uint64_t Reach(uint64_t from_ns) const;
	// Whether blocks were not where the files' indexes say: opened with `scan` they will be found.
	bool Misled() const;
	// The request log, in windows of about so many requests. It goes with the source.
	std::unique_ptr<LogReader> OpenLog(size_t window, Run *run);
	// From when on what threads did before the part is there.
	uint64_t BeforePart() const;
	// Of requests due before the part, as long before as what threads did is there, in windows; null:
	// there are none. Its windows take the place of the log's.
	std::unique_ptr<LogReader> OpenLogBefore(size_t window, Run *run);
	// Says in *run's warnings what was found out about the files; once, after the log was gone through.
	void Finish(Run *run);

private:
	struct ServerBlock {
		OpenFile *file;
		ft_place place;
	};
	bool OpenFiles(const std::string &path, const PartAsked &asked, Run *run, std::string *error);
	bool OpenFileOf(const Found &found, bool hold, OpenFile *f, Run *run, std::string *error);
	ft_reader *ReaderOf(OpenFile *f);
	bool Get(OpenFile *f, const ft_place &place, ft_block *block);
	void List(const OpenFile &f, Run *run);
	static void NoteEnds(OpenFile *f, const Run &run, size_t first_span, size_t first_tally);
	std::vector<ft_span> Standing() const;
	void DecideClocks(bool scan, Run *run);
	bool ReadFile(OpenFile *f, bool scan, Run *run, std::string *error);
	void Load(uint64_t from_ns, uint64_t to_ns, Run *run);
	std::vector<std::pair<uint64_t, uint64_t>> Ends(uint64_t from_ns) const;
	void CutStretches();
	uint64_t Bytes(uint64_t from_ns, uint64_t to_ns) const; // of records of what threads did

	Progress *progress_ = nullptr;
	std::vector<std::unique_ptr<OpenFile>> files_;
	std::vector<OpenFile *> recent_; // segments that have a reader, the last one was asked for last
	std::optional<TimeSpan> whole_;	 // of a ring of which a part is opened
	std::vector<ft_span> open_;	 // what had not ended, if stretches are read
	std::vector<ServerBlock> servers_;
	std::vector<LogBlock> log_, log_before_; // the latter, of requests due before the part
	std::vector<Stretch> stretches_ = {{0, UINT64_MAX}};
	std::vector<Survey::Wide> wide_;
	bool has_log_ = false;
	TimeSpan part_;
	uint64_t stretch_bytes_ = 0; // of records, that a stretch may have; 0: all of it is there
	size_t warnings_at_ = 0;     // where those of the files belong
};

// Reads a run directory or a single recording. False: *error is one sentence for the user. Damage is no
// failure: what is whole is read, and *run's warnings say what was lost.
bool LoadRun(const std::string &path, Run *run, std::string *error);

} // namespace forktail::analysis
