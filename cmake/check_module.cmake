# SPDX-License-Identifier: MIT
# One module's sources against what it says: cmake -DMODULE=folder -DNAMESPACE=forktail::x -DUSES=a;b -DHEADERS=a/x.h;b/y.h
# -DSOURCE=root -DSTAMP=file -P check_module.cmake. Fails with a line for each include that reaches where it should not,
# and for each namespace that is not the module's.
cmake_minimum_required(VERSION 3.22) # IN_LIST
file(GLOB files ${SOURCE}/${MODULE}/*.c ${SOURCE}/${MODULE}/*.cc ${SOURCE}/${MODULE}/*.h)
set(wrong "")
foreach(file ${files})
  file(RELATIVE_PATH name ${SOURCE} ${file})
  file(STRINGS ${file} lines REGEX "^#include \"[^\"]+\"")
  foreach(line ${lines})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" header "${line}")
    if(EXISTS ${SOURCE}/${MODULE}/${header} OR NOT EXISTS ${SOURCE}/${header})
      continue() # our own; or made by the build
    endif()
    get_filename_component(module ${header} DIRECTORY)
    if(NOT module STREQUAL MODULE AND NOT module IN_LIST USES)
      string(APPEND wrong "${name} includes ${header}, but ${MODULE} does not say that it uses ${module}\n")
    elseif(NOT module STREQUAL MODULE AND NOT header IN_LIST HEADERS)
      string(APPEND wrong "${name} includes ${header}, which is ${module}'s own\n")
    endif()
  endforeach()
  file(STRINGS ${file} lines REGEX "^(inline )?namespace [a-z_:]+( {)?$")
  foreach(line ${lines})
    string(REGEX REPLACE "^.*namespace ([a-z_:]+).*$" "\\1" namespace "${line}")
    if(NOT namespace STREQUAL NAMESPACE)
      string(APPEND wrong "${name} opens namespace ${namespace}, but ${MODULE} is ${NAMESPACE}\n")
    endif()
  endforeach()
endforeach()
if(wrong)
  message("${wrong}") # as it is: an error's text is broken into lines
  message(FATAL_ERROR "${MODULE} is not what its list of CMake says")
endif()
get_filename_component(directory ${STAMP} DIRECTORY)
file(MAKE_DIRECTORY ${directory})
file(WRITE ${STAMP} "")
