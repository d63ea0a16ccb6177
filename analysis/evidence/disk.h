// SPDX-License-Identifier: MIT
// Describes the disks' activity while a server thread waited for a disk.
#pragma once

#include <cstdint>
#include <string>

#include "scene.h"

namespace forktail::analysis
{

// "; meanwhile block device vda wrote 84.0 MB, most for kworker/u4:1 (55); the device was busy 97 % of the
// time, with 3.4 requests in flight on average; files were written by dd (4377), 80.1 MB in 2.31 s", of the
// device that moved most in [from_ns, to_ns); "" if no device moved data. Writers include the
// 5 s before the interval, because pages are written back late.
std::string DiskText(const Scene &scene, uint64_t from_ns, uint64_t to_ns);

} // namespace forktail::analysis
