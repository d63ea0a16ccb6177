# SPDX-License-Identifier: MIT
# Modules: one static library per folder of sources, and which modules it may use.
#
# A module uses only modules named in its USES, each of which must be declared before it, so there are no cycles. It may
# include the headers that they list as PUBLIC; other headers are private. C++ code is in the module's namespace. The
# includes and namespaces of each file are checked at each build (check_module.cmake), because a static library alone
# would accept any header of the tree. The table in docs/how-it-works/modules.md is checked against all modules
# together (forktail_modules_table).
#
#   forktail_module(loadgen/net
#     SOURCES socket.c link.c        none: the module is headers only
#     PUBLIC socket.h link.h         headers that other modules may include
#     USES recording                 modules, by their folders
#     LIBRARIES PkgConfig::OPENSSL)  other libraries, for this module and for modules that use it
#
# The target is called forktail_ and the folder with _ for /: forktail_loadgen_net. Its namespace is that of
# the nearest folder above it which is in FORKTAIL_NAMESPACES, with :: for /: forktail::analysis in analysis/timeline.
function(forktail_module folder)
  cmake_parse_arguments(M "" "" "SOURCES;PUBLIC;USES;LIBRARIES" ${ARGN})
  if(M_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "forktail_module(${folder}): what is ${M_UNPARSED_ARGUMENTS}?")
  endif()
  string(REPLACE / _ target forktail_${folder})
  set_property(GLOBAL PROPERTY forktail_module_${folder} ${target})
  set(directory ${CMAKE_SOURCE_DIR}/${folder})
  set(libraries ${M_LIBRARIES})
  foreach(used ${M_USES})
    get_property(library GLOBAL PROPERTY forktail_module_${used})
    if(NOT library)
      message(FATAL_ERROR "${folder} uses ${used}, which is no module made before it")
    endif()
    list(APPEND libraries ${library})
  endforeach()
  list(TRANSFORM M_SOURCES PREPEND ${directory}/)
  if(M_SOURCES)
    add_library(${target} STATIC ${M_SOURCES})
    target_link_libraries(${target} PUBLIC ${libraries})
    forktail_precompile(${target} ${M_SOURCES})
    forktail_unite(${target} ${M_SOURCES})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${libraries})
  endif()
  forktail_check_module(${target} ${folder} "${M_USES}")
  list(JOIN M_PUBLIC " " headers)
  list(JOIN M_USES " " uses)
  set_property(GLOBAL APPEND_STRING PROPERTY forktail_modules_table "| ${folder} | ${headers} | ${uses} |\n")
  list(TRANSFORM M_PUBLIC PREPEND ${folder}/)
  set_property(GLOBAL APPEND PROPERTY forktail_public_headers ${M_PUBLIC})
endfunction()

# A module whose public header is in include/ of its folder, which is in the include path of those that link it only:
#
#   forktail_library(analysis/timeline
#     SOURCES timeline.cc waits.cc
#     LINKS forktail_analysis_run)        libraries, for this module and for those that link it
#
# The target is called forktail_ and the folder with _ for /.
function(forktail_library folder)
  cmake_parse_arguments(M "" "" "SOURCES;LINKS" ${ARGN})
  string(REPLACE / _ target forktail_${folder})
  set_property(GLOBAL PROPERTY forktail_module_${folder} ${target})
  list(TRANSFORM M_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/${folder}/)
  add_library(${target} STATIC ${M_SOURCES})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/${folder}/include)
  target_link_libraries(${target} PUBLIC ${M_LINKS})
  forktail_precompile(${target} ${M_SOURCES})
endfunction()

# Folders that define a namespace: code there and below is in it.
set(FORKTAIL_NAMESPACES common analysis analysis/compare analysis/exports analysis/gate analysis/report live live/guard
    live/metrics live/snapshot live/watch lab hosts cli)

function(forktail_namespace_of folder result)
  while(NOT folder STREQUAL "" AND NOT folder IN_LIST FORKTAIL_NAMESPACES)
    get_filename_component(folder "${folder}" DIRECTORY)
  endwhile()
  string(REPLACE / :: folder "${folder}") # in none of them: C
  set(${result} forktail::${folder} PARENT_SCOPE)
endfunction()
# C++ sources use precompiled headers: the first module with C++ sources builds the ones that most of them share.
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

# C++ sources of a module are compiled several at a time (FORKTAIL_UNITY): shared includes are then compiled once.
function(forktail_unite target)
  set(c ${ARGN})
  list(FILTER c INCLUDE REGEX "[.]c$")
  set_source_files_properties(${c} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FORKTAIL_UNITY} UNITY_BUILD_BATCH_SIZE 12)
endfunction()

# Checks the includes and namespaces of the sources in a folder. After a successful check, a stamp stays valid until one
# of the sources changes.
function(forktail_check_module target folder uses)
  set(directory ${CMAKE_SOURCE_DIR}/${folder})
  file(GLOB files CONFIGURE_DEPENDS ${directory}/*.c ${directory}/*.cc ${directory}/*.h)
  get_property(headers GLOBAL PROPERTY forktail_public_headers)
  forktail_namespace_of(${folder} namespace)
  set(stamp ${CMAKE_BINARY_DIR}/modules/${target})
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -DMODULE=${folder} -DNAMESPACE=${namespace} "-DUSES=${uses}" "-DHEADERS=${headers}"
            -DSOURCE=${CMAKE_SOURCE_DIR} -DSTAMP=${stamp} -P ${CMAKE_SOURCE_DIR}/cmake/check_module.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/check_module.cmake
    COMMENT "What ${folder} uses" VERBATIM)
  add_custom_target(${target}_uses ALL DEPENDS ${stamp})
endfunction()

# Writes the table of all modules declared so far to a file, in the form of docs/how-it-works/modules.md.
function(forktail_modules_table file)
  get_property(table GLOBAL PROPERTY forktail_modules_table)
  file(WRITE ${file} "| module | headers for others | uses |\n|---|---|---|\n${table}")
endfunction()
