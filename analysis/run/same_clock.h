// SPDX-License-Identifier: MIT
// The recordings whose clock is the run's. A recording of another boot in the same directory is listed too,
// but its host and load are not those of the run.
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
