# SPDX-License-Identifier: MIT
# One room's sources against what it says it uses: cmake -DROOM=folder -DUSES=a;b -DDOORS=a/x.h;b/y.h -DSOURCE=root
# -DSTAMP=file -P check_room.cmake. Fails with a line for each include that reaches where it should not.
cmake_minimum_required(VERSION 3.22) # IN_LIST
file(GLOB files ${SOURCE}/${ROOM}/*.c ${SOURCE}/${ROOM}/*.cc ${SOURCE}/${ROOM}/*.h)
set(wrong "")
foreach(file ${files})
  file(RELATIVE_PATH name ${SOURCE} ${file})
  file(STRINGS ${file} lines REGEX "^#include \"[^\"]+\"")
  foreach(line ${lines})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" header "${line}")
    if(EXISTS ${SOURCE}/${ROOM}/${header} OR NOT EXISTS ${SOURCE}/${header})
      continue() # our own; or made by the build
    endif()
    get_filename_component(room ${header} DIRECTORY)
    if(NOT room STREQUAL ROOM AND NOT room IN_LIST USES)
      string(APPEND wrong "${name} includes ${header}, but ${ROOM} does not say that it uses ${room}\n")
    elseif(NOT room STREQUAL ROOM AND NOT header IN_LIST DOORS)
      string(APPEND wrong "${name} includes ${header}, which is ${room}'s own\n")
    endif()
  endforeach()
endforeach()
if(wrong)
  message("${wrong}") # as it is: an error's text is broken into lines
  message(FATAL_ERROR "${ROOM} reaches into rooms that it does not say it uses")
endif()
get_filename_component(directory ${STAMP} DIRECTORY)
file(MAKE_DIRECTORY ${directory})
file(WRITE ${STAMP} "")
