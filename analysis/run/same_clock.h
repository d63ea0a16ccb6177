// SPDX-License-Identifier: MIT
// The recordings that make up a run. One that lies in its directory but is of another boot is listed with
// them, and what it says of its host or its load must not be said of this run.
#pragma once

#include <vector>

#include "run.h"

namespace forktail::analysis
{

inline std::vector<const RecordingFile *> OverlaidFiles(const Run &run)
{
	std::vector<const RecordingFile *> files;
	for (const RecordingFile &f : run.files)
		if (f.overlaid)
			files.push_back(&f);
	return files;
}

} // namespace forktail::analysis
