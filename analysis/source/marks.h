// SPDX-License-Identifier: MIT
// Marks: what a user noted about an instant, such as a deployment. They are lines of text in a file next to
// the recordings, so that any program can add one without a library and without the recorder.
#pragma once

#include <string>
#include <vector>

#include "analysis/run/run.h"

namespace forktail::analysis
{

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
