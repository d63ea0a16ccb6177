# SPDX-License-Identifier: MIT
# Rooms: one static library per folder of sources, and who may use whom.
#
# A room uses only rooms that are named in its USES, each of which must have been made before it: so there are no
# circles. Of those it may include the headers that they name as PUBLIC; the others are their own. What a file
# includes is held against that at each build (check_room.cmake), because a static library alone would take any
# header of the tree; and the table in docs/data-flow.md against all rooms together (forktail_rooms_table).
#
#   forktail_room(loadgen/net
#     SOURCES socket.c link.c        none: the room is headers only
#     PUBLIC socket.h link.h         headers that other rooms may include
#     USES recording                 rooms, as their folders are called
#     LIBRARIES PkgConfig::OPENSSL)  other libraries, for this room and for whoever uses it
#
# The target is called forktail_ and the folder with _ for /: forktail_loadgen_net. TARGET calls it otherwise, where
# that name is wanted for a folder and all rooms in it.
function(forktail_room folder)
  cmake_parse_arguments(R "" "TARGET" "SOURCES;PUBLIC;USES;LIBRARIES" ${ARGN})
  if(R_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "forktail_room(${folder}): what is ${R_UNPARSED_ARGUMENTS}?")
  endif()
  string(REPLACE / _ target forktail_${folder})
  if(R_TARGET)
    set(target ${R_TARGET})
  endif()
  set_property(GLOBAL PROPERTY forktail_room_${folder} ${target})
  set(directory ${CMAKE_SOURCE_DIR}/${folder})
  set(libraries ${R_LIBRARIES})
  foreach(used ${R_USES})
    get_property(library GLOBAL PROPERTY forktail_room_${used})
    if(NOT library)
      message(FATAL_ERROR "${folder} uses ${used}, which is no room made before it")
    endif()
    list(APPEND libraries ${library})
  endforeach()
  list(TRANSFORM R_SOURCES PREPEND ${directory}/)
  if(R_SOURCES)
    add_library(${target} STATIC ${R_SOURCES})
    target_link_libraries(${target} PUBLIC ${libraries})
    forktail_precompile(${target} ${R_SOURCES})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${libraries})
  endif()
  forktail_check_room(${target} ${folder} "${R_USES}")
  list(JOIN R_PUBLIC " " doors)
  list(JOIN R_USES " " uses)
  set_property(GLOBAL APPEND_STRING PROPERTY forktail_rooms_table "| ${folder} | ${doors} | ${uses} |\n")
  list(TRANSFORM R_PUBLIC PREPEND ${folder}/)
  set_property(GLOBAL APPEND PROPERTY forktail_doors ${R_PUBLIC})
  set_property(GLOBAL APPEND PROPERTY forktail_rooms ${folder})
endfunction()

# C++ sources read the headers that most of them share precompiled: the first room that has any makes them.
function(forktail_precompile target)
  set(c ${ARGN})
  set(cxx ${ARGN})
  list(FILTER c INCLUDE REGEX "[.]c$")
  list(FILTER cxx INCLUDE REGEX "[.]cc$")
  if(NOT cxx)
    return()
  endif()
  set_source_files_properties(${c} TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  get_property(owner GLOBAL PROPERTY forktail_precompiled)
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE <algorithm> <filesystem> <fstream> <functional> <map> <memory>
                              <nlohmann/json.hpp> <sstream> <string> <vector>)
    set_property(GLOBAL PROPERTY forktail_precompiled ${target})
  endif()
endfunction()

# Holds what the sources in a folder include against what it says it uses. Once they are as they should be, a
# stamp says so until one of them changes.
function(forktail_check_room target folder uses)
  set(directory ${CMAKE_SOURCE_DIR}/${folder})
  file(GLOB files CONFIGURE_DEPENDS ${directory}/*.c ${directory}/*.cc ${directory}/*.h)
  get_property(doors GLOBAL PROPERTY forktail_doors)
  set(stamp ${CMAKE_BINARY_DIR}/rooms/${target})
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -DROOM=${folder} "-DUSES=${uses}" "-DDOORS=${doors}" -DSOURCE=${CMAKE_SOURCE_DIR}
            -DSTAMP=${stamp} -P ${CMAKE_SOURCE_DIR}/cmake/check_room.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/check_room.cmake
    COMMENT "Who ${folder} uses" VERBATIM)
  add_custom_target(${target}_uses ALL DEPENDS ${stamp})
endfunction()

# Writes the table of all rooms made so far, as it stands in docs/data-flow.md, into a file.
function(forktail_rooms_table file)
  get_property(table GLOBAL PROPERTY forktail_rooms_table)
  file(WRITE ${file} "| room | what others may include of it | whom it uses |\n|---|---|---|\n${table}")
endfunction()
