# SPDX-License-Identifier: MIT
# The kernel's list of system calls as a C table: cmake -DCOMPILER=cc [-DSYSROOT=directory] -DTABLE=file -P
# syscall_names.cmake. Generated, because a list written by hand would be incomplete. The compiler finds its machine's
# <asm/unistd.h>, whose macros are numbers or, on arm64, names of numbers, so the table's source includes it too.
file(WRITE ${TABLE}.c "#include <asm/unistd.h>\n")
set(command ${COMPILER} -E -dM ${TABLE}.c)
if(SYSROOT)
  list(APPEND command --sysroot=${SYSROOT})
endif()
execute_process(COMMAND ${command} OUTPUT_VARIABLE macros COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "#define __NR_[a-z0-9_]+ [^\n]+" lines "${macros}")
set(table "")
foreach(line ${lines})
  # Not __NR_syscalls, their number.
  if(line MATCHES "^#define __NR_([a-z0-9_]+) ([0-9]+|__NR3264_[a-z0-9_]+)$" AND NOT CMAKE_MATCH_1 STREQUAL "syscalls")
    string(APPEND table "[__NR_${CMAKE_MATCH_1}] = \"${CMAKE_MATCH_1}\",\n")
  endif()
endforeach()
if(NOT table)
  message(FATAL_ERROR "<asm/unistd.h> lists no system calls")
endif()
file(WRITE ${TABLE} "${table}")
