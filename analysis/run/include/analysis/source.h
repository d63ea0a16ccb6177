// SPDX-License-Identifier: MIT
// A run on disk. Small data is read when it is opened: threads, names, connections, notes, metrics. Large
// data (requests; spans and similar) is read on demand, by blocks with known place and time range.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../log_reader.h"
#include "../../read_blocks.h"
#include "../../survey.h"
#include "analysis/run.h"
#include "recording/recording.h"

namespace forktail::analysis
{

struct Found;

class RunSource
{
public:
	// Gets the progress of passes over files and over what threads did; must outlive this object.
	void OnProgress(Progress *progress) { progress_ = progress; }
	// Reads the small data into *run. `scan`: ignore the files' indexes. `asked`: of a ring, read only
	// what this part may need. False: *error is one sentence for the user.
	bool Open(const std::string &path, bool scan, Run *run, std::string *error,
		  const PartAsked &asked = {});
	// From the due time of the first request to the last answer. Without a log: from the recording's
	// begin to its end. Both by the blocks' times.
	TimeSpan Span(Run *run) const;
	bool has_log() const { return has_log_; }
	// Restricts the run to the requests due in the part, and to what threads did then and somewhat
	// before; other blocks are not read. Without a log only to what threads did then.
	void Restrict(const TimeSpan &part);
	// Reads all that the servers' threads did and indexes it (IndexRun).
	void LoadServers(Run *run);
	// The same if it needs at most this many bytes. Else it only reads what must be known of the whole,
	// and Cover() reads stretches.
	void OpenServers(uint64_t bytes, Run *run);
	// Consecutive stretches that together are the whole run, each of a size that Cover() can read.
	struct Stretch {
		uint64_t from_ns, to_ns;
	};
	// Cuts stretches to [from_ns, to_ns).
	void Bound(uint64_t from_ns, uint64_t to_ns);
	const std::vector<Stretch> &stretches() const { return stretches_; }
	// Loads what threads did in [from_ns, to_ns), as if everything were loaded. True: it was not loaded
	// before, and what was computed of the former stretch must be recomputed. As much as fits is read
	// beyond it, up to until_ns.
	bool Cover(uint64_t from_ns, uint64_t to_ns, Run *run, uint64_t until_ns = UINT64_MAX);
	// The end of the longest stretch from from_ns. If Cover() must load more than twice as much, the
	// stretch begins later than requested.
	uint64_t Reach(uint64_t from_ns) const;
	// Whether blocks were not where the files' indexes say. Opening with `scan` finds them.
	bool Misled() const;
	// The request log, in windows of about `window` requests. It must not outlive this object.
	std::unique_ptr<LogReader> OpenLog(size_t window, Run *run);
	// The begin of the loaded records of threads before the part.
	uint64_t BeforePart() const;
	// Requests due before the part, as far back as records of threads are loaded, in windows; null: none.
	// Its windows replace the log's.
	std::unique_ptr<LogReader> OpenLogBefore(size_t window, Run *run);
	// Adds warnings about the files to *run. Call it once, after the log was read.
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
	std::vector<ft_span> StillOpen() const;
	void DecideClocks(bool scan, Run *run);
	void ChooseLog(Run *run);
	bool ReadFile(OpenFile *f, bool scan, Run *run, std::string *error);
	std::unique_ptr<LogReader> OpenJoined(const std::vector<LogBlock> &blocks, size_t window,
					      const TimeSpan &part, Run *run);
	void Load(uint64_t from_ns, uint64_t to_ns, Run *run);
	std::vector<std::pair<uint64_t, uint64_t>> Ends(uint64_t from_ns) const;
	void CutStretches();
	uint64_t Bytes(uint64_t from_ns, uint64_t to_ns) const; // size of the records of what threads did

	Progress *progress_ = nullptr;
	std::vector<std::unique_ptr<OpenFile>> files_;
	RequestClients clients_;
	std::vector<OpenFile *> recent_; // segments with an open reader, the last used one last
	std::optional<TimeSpan> whole_;	 // the extent of a ring of which only a part is opened
	std::vector<ft_span> open_;	 // spans still open, if stretches are read
	std::vector<ServerBlock> servers_;
	std::vector<LogBlock> log_, log_before_; // the second: requests due before the part
	std::vector<LogBlock> kernel_log_;	 // joined with them
	Run kernel_run_;			 // its connections, servers and operations
	SocketPairs same_sockets_;		 // of these connections
	std::vector<PassedOn> passed_on_;	 // connections of the kernel log, by index
	std::vector<Stretch> stretches_ = {{0, UINT64_MAX}};
	std::vector<Survey::Wide> wide_;
	bool has_log_ = false;
	TimeSpan part_;
	bool crowded_ = false; // a stretch had more records than may be in memory, and a warning says so
	uint64_t stretch_bytes_ = 0; // maximum size of a stretch's records; 0: everything is loaded
	size_t warnings_at_ = 0;     // where warnings about files are inserted
};

// Reads a run directory or a single recording. False: *error is one sentence for the user. Damage is not an
// error: whatever is intact is read, and *run's warnings report the rest.
bool LoadRun(const std::string &path, Run *run, std::string *error);

// A flight recorder's directory (forktail-record --keep): segments, each a complete recording of some
// seconds, which together are one. There may be thousands, so facts of a segment are looked up on demand.

// A segment's place in the ring, from its manifest.
struct SegmentHead {
	bool known = false; // false: it was evicted, or its beginning is damaged
	uint64_t start_ns = 0;
	std::string boot_id;
	bool has_requests = false; // its manifest announces requests that the kernel saw
};

SegmentHead ReadHead(const std::string &path);

// Whether a file's name is a segment's: "segment-0000000042.forktail".
bool IsSegment(const std::string &path);

// Whether a process is writing to an open file: the writer holds a lock on it.
bool BeingWritten(int fd);

class Ring
{
public:
	Ring() = default;
	// Of files of one directory; those that are no segments are ignored.
	explicit Ring(std::vector<std::string> paths);

	size_t size() const { return segments_.size(); }
	const std::string &path(size_t i) const { return segments_[i].path; }
	// Reads its manifest on the first call.
	const SegmentHead &Head(size_t i);
	// Keeps only segments of the newest one's boot, because times of different boots cannot be compared.
	// Returns the number of dropped ones.
	size_t LeaveNewestBoot();
	// [first, end) of the segments with data of [from_ns, to_ns].
	std::pair<size_t, size_t> Reaching(uint64_t from_ns, uint64_t to_ns);
	// Keeps only those.
	void Leave(std::pair<size_t, size_t> range);

private:
	struct Segment {
		std::string path;
		std::optional<SegmentHead> head;
	};
	size_t FirstAfter(uint64_t t_ns);

	std::vector<Segment> segments_; // by number
};

// The segments of a directory. False: *error is one sentence.
bool FindRing(const std::string &directory, Ring *ring, std::string *error);

// The earliest and latest instant of a recording's blocks of a kind (0: any kind), and, if `clocks` is not
// null, its readings of the time of day. False: no such blocks or readings, or the file is unreadable.
bool TimeOfBlocks(const std::string &path, uint32_t kind, uint64_t *start_ns, uint64_t *end_ns,
		  std::vector<ft_clock> *clocks);

// Marks: what a user noted about an instant, such as a deployment. They are lines of text in a file next to
// the recordings, so that any program can add one without a library and without the recorder.

// Where the marks of a ring, a run or a single recording are: DIR/marks or FILE.marks.
std::string MarksPath(const std::string &run);

// The end of that file, at most 1 MB of whole lines; "" without a file. Symbolic links are not followed.
std::string ReadMarks(const std::string &run);

struct DatedMark {
	uint64_t realtime_ns = 0; // since 1970
	std::string text;	  // sanitized
};
// The marks in it, in the file's order. *ignored is the number of lines in another format.
std::vector<DatedMark> MarksIn(const std::string &file_text, size_t *ignored);

// Adds a mark at a time of day (0: now): a line with the seconds since 1970 and the text. False: *error is
// one sentence.
bool AddMark(const std::string &run, uint64_t realtime_ns, const std::string &text, std::string *error);

// Sets run->marks to those from a minute before the run to its end. Lines in another format are ignored, with
// a warning. A run without readings of both clocks has no marks.
void FindMarks(Run *run);

} // namespace forktail::analysis
