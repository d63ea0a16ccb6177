// SPDX-License-Identifier: MIT
// The causes of lanes: the disks' are here, all others are those of timelines.
#include "lane.h"

namespace forktail::analysis::report
{

namespace
{

// In the order of enum LaneCause, colours as in causes.def.
struct DiskCause {
	const char *name;
	const char *light, *dark;
	const char *meaning;
};
constexpr DiskCause kDiskCauses[] = {
    {"disk-read", "#3aa0c9", "#64c4ea", "the device was reading"},
    {"disk-write", "#2f6fb5", "#5b9be0", "the device was writing"},
    {"disk-flush", "#6a4fb0", "#9a82de", "the device was flushing its cache"},
    {"disk-discard", "#8fa3b8", "#a9bbcd", "the device was discarding free blocks (TRIM)"},
};

} // namespace

const char *LaneCauseName(int cause)
{
	return cause < kTimelineCauses ? CauseName(static_cast<Cause>(cause))
				       : kDiskCauses[cause - kDiskRead].name;
}

LaneCauseLook LaneCauseLookOf(int cause)
{
	if (cause >= kTimelineCauses) {
		const DiskCause &disk = kDiskCauses[cause - kDiskRead];
		return {FamilyName(Family::Files), disk.light, disk.dark, disk.meaning};
	}
	const CauseInfo &info = InfoOf(static_cast<Cause>(cause));
	return {FamilyName(info.family), info.light, info.dark, info.meaning};
}

} // namespace forktail::analysis::report
