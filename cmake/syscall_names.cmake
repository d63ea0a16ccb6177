# SPDX-License-Identifier: MIT
# The kernel's list of system calls as a C table: cmake -DHEADER=asm/unistd_64.h -DTABLE=file -P syscall_names.cmake.
# Generated, because a list written by hand would be incomplete. It uses the header that the kernel programs are
# compiled with, so that nothing has to be linked or installed for it.
file(STRINGS ${HEADER} lines REGEX "^#define __NR_[a-z0-9_]+ [0-9]+$")
if(NOT lines)
  message(FATAL_ERROR "${HEADER} lists no system calls")
endif()
set(table "")
foreach(line ${lines})
  string(REGEX REPLACE "^#define __NR_([a-z0-9_]+) ([0-9]+)$" "[\\2] = \"\\1\",\n" line "${line}")
  string(APPEND table "${line}")
endforeach()
file(WRITE ${TABLE} "${table}")
