# SPDX-License-Identifier: MIT
# Is the table of modules in docs/how-it-works/modules.md that of the build? cmake -DBUILT=build/modules.md -DPAGE=docs/how-it-works/modules.md
# -P modules.cmake. If not, prints what belongs there.
file(READ ${BUILT} built)
file(READ ${PAGE} page)
string(FIND "${page}" "${built}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "The table of modules in ${PAGE} should be:\n${built}")
endif()
