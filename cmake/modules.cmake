# SPDX-License-Identifier: MIT
# Modules: one static library per folder of sources. Who may include whom is said by what a module links: its public headers are in
# include/ of its folder, which only those that link it have in their include path.
#
#   forktail_library(analysis/timeline
#     SOURCES timeline.cc waits.cc
#     LINKS forktail_analysis_run)        libraries, for this module and for those that link it
#
# The target is called forktail_ and the folder with _ for /.
function(forktail_library folder)
  cmake_parse_arguments(M "" "" "SOURCES;LINKS" ${ARGN})
  string(REPLACE / _ target forktail_${folder})
  list(TRANSFORM M_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/${folder}/)
  if(M_SOURCES)
    add_library(${target} STATIC ${M_SOURCES})
    target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/${folder}/include)
    target_link_libraries(${target} PUBLIC ${M_LINKS})
    forktail_precompile(${target} ${M_SOURCES})
  else() # headers only
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${CMAKE_SOURCE_DIR}/${folder}/include)
    target_link_libraries(${target} INTERFACE ${M_LINKS})
  endif()
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

# C++ sources of cli, most of which are short and include CLI11, are compiled several at a time (FORKTAIL_UNITY).
function(forktail_unite target)
  set(c ${ARGN})
  list(FILTER c INCLUDE REGEX "[.]c$")
  set_source_files_properties(${c} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FORKTAIL_UNITY} UNITY_BUILD_BATCH_SIZE 12)
endfunction()
