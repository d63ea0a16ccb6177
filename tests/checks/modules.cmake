# SPDX-License-Identifier: MIT
# Is the table of rooms in docs/data-flow.md that of the build? cmake -DBUILT=build/rooms.md -DPAGE=docs/data-flow.md
# -P rooms.cmake. If not, prints what belongs there.
file(READ ${BUILT} built)
file(READ ${PAGE} page)
string(FIND "${page}" "${built}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "The table of rooms in ${PAGE} should be:\n${built}")
endif()
