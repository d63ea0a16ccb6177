# SPDX-License-Identifier: MIT
# Tests of the analysis: runs built by hand, recordings written for the purpose, and the command itself.
forktail_test(analysis unit
  SOURCES unit/analysis/timeline/causes_test.cc unit/analysis/timeline/timeline_test.cc unit/analysis/timeline/waits_test.cc unit/analysis/timeline/locks_test.cc
          unit/analysis/blame/blame_test.cc unit/analysis/blame/property_test.cc unit/analysis/passes/slowest_test.cc unit/analysis/passes/speculative_test.cc
          unit/analysis/evidence/episodes_test.cc unit/analysis/text/render_test.cc unit/analysis/source/read_test.cc unit/analysis/run/holders_test.cc
           unit/cli/command_test.cc unit/analysis/run/column_test.cc unit/analysis/run/part_test.cc unit/analysis/run/progress_test.cc unit/common/format/sanitize_test.cc unit/analysis/timeline/client_test.cc unit/analysis/timeline/serving_test.cc unit/analysis/timeline/spins_test.cc
           unit/analysis/evidence/activity_test.cc unit/analysis/evidence/busy_test.cc unit/analysis/blame/hops_test.cc unit/analysis/blame/threads_test.cc unit/analysis/blame/outages_test.cc
          unit/analysis/blame/arrivals_test.cc unit/analysis/blame/legs_test.cc unit/analysis/blame/route_test.cc unit/analysis/blame/head_of_line_test.cc unit/analysis/passes/first_look_test.cc
  LIBRARIES forktail_analysis forktail_test_support)
target_compile_definitions(test_analysis PRIVATE FORKTAIL_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
add_dependencies(test_analysis forktail forktail-load forktail-record)
forktail_test(explain system SOURCES system/explain/run_test.cc LIBRARIES forktail_analysis forktail_test_support
  TIMEOUT 300)
add_dependencies(test_explain forktail forktail-load forktail-record)

forktail_test(explain_own_code system SOURCES system/explain/own_code_test.cc
  LIBRARIES forktail_analysis forktail_test_support TIMEOUT 300)
add_dependencies(test_explain_own_code forktail forktail-record)

forktail_test(explain_clients system SOURCES system/explain/clients_test.cc
  LIBRARIES forktail_analysis forktail_test_support TIMEOUT 300)
add_dependencies(test_explain_clients forktail forktail-load forktail-record)

# Writes a run of any number of requests: ${CMAKE_SOURCE_DIR}/bench/explain.sh measures `forktail explain` on it.
add_executable(bench_explain_run ${CMAKE_SOURCE_DIR}/bench/explain_run.cc)
target_link_libraries(bench_explain_run PRIVATE forktail_recording)
forktail_test(explain_server_word system
  SOURCES system/explain/server_word_test.cc
  LIBRARIES forktail_recording forktail_test_support)
if(TARGET forktail-load)
  add_dependencies(test_explain_server_word forktail forktail-load)
endif()
forktail_test(explain_client system SOURCES system/explain/client_test.cc
  LIBRARIES forktail_analysis forktail_test_support TIMEOUT 300)
add_dependencies(test_explain_client forktail forktail-load forktail-record)
forktail_test(explain_arrivals system SOURCES system/explain/arrivals_test.cc
  LIBRARIES forktail_recording forktail_test_support TIMEOUT 300)
add_dependencies(test_explain_arrivals forktail forktail-load forktail-record)
forktail_test(explain_disk system SOURCES system/explain/disk_test.cc
  LIBRARIES forktail_analysis forktail_test_support TIMEOUT 300)
add_dependencies(test_explain_disk forktail forktail-record)
forktail_test(explain_hops system SOURCES system/explain/hops_test.cc
  LIBRARIES forktail_analysis forktail_test_support TIMEOUT 300)
add_dependencies(test_explain_hops forktail forktail-load forktail-record)

add_executable(tracer system/explain/tracer.c)
forktail_test(explain_held system SOURCES system/explain/held_test.cc
  LIBRARIES forktail_analysis forktail_test_support TIMEOUT 300)
target_compile_definitions(test_explain_held PRIVATE FORKTAIL_TRACER="$<TARGET_FILE:tracer>")
add_dependencies(test_explain_held forktail forktail-load forktail-record tracer)

add_executable(uring_server system/explain/uring_server.c)
set_target_properties(uring_server PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
forktail_test(explain_rings system SOURCES system/explain/rings_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
target_compile_definitions(test_explain_rings PRIVATE FORKTAIL_URING_SERVER="$<TARGET_FILE:uring_server>")
add_dependencies(test_explain_rings forktail forktail-load forktail-record uring_server)

add_library(mmap_lock_holder MODULE system/explain/mmap_lock_holder.c)
target_link_libraries(mmap_lock_holder PRIVATE Threads::Threads)
forktail_test(explain_mmap_lock system SOURCES system/explain/mmap_lock_test.cc
  LIBRARIES forktail_analysis forktail_test_support TIMEOUT 300)
target_compile_definitions(test_explain_mmap_lock PRIVATE FORKTAIL_MMAP_LOCK_HOLDER="$<TARGET_FILE:mmap_lock_holder>")
add_dependencies(test_explain_mmap_lock forktail forktail-record mmap_lock_holder)
forktail_test(explain_names system SOURCES system/explain/names_test.cc
  LIBRARIES forktail_common_text forktail_test_support)
add_dependencies(test_explain_names forktail forktail-record)
add_library(lock_keeper MODULE system/explain/lock_keeper.c)
target_link_libraries(lock_keeper PRIVATE Threads::Threads)
forktail_test(explain_locks system SOURCES system/explain/locks_test.cc
  LIBRARIES forktail_analysis forktail_test_support TIMEOUT 300)
target_compile_definitions(test_explain_locks PRIVATE FORKTAIL_LOCK_KEEPER="$<TARGET_FILE:lock_keeper>"
                           FORKTAIL_TRACER="$<TARGET_FILE:tracer>")
add_dependencies(test_explain_locks forktail forktail-load forktail-record lock_keeper tracer)

forktail_test(explain_memory system SOURCES system/explain/memory_test.cc
  LIBRARIES forktail_test_support TIMEOUT 600 BESIDE_OTHERS)
add_dependencies(test_explain_memory forktail forktail-load forktail-record bench_explain_run)

forktail_test(explain_reading system SOURCES system/explain/reading_test.cc
  LIBRARIES forktail_recording forktail_test_support util)
add_dependencies(test_explain_reading forktail forktail-load forktail-record)
