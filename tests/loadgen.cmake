# SPDX-License-Identifier: MIT
# Tests of the load generator: its parts, and the program on real servers.
add_subdirectory(unit/loadgen)
forktail_test(loadgen_run system TIMEOUT 300
  SOURCES system/load/run_test.cc
  LIBRARIES forktail_test_support)
forktail_test(loadgen_open_loop system TIMEOUT 300
  SOURCES system/load/open_loop_test.cc
  LIBRARIES forktail_test_support)
forktail_test(loadgen_busy_poll system TIMEOUT 300
  SOURCES system/load/busy_poll_test.cc
  LIBRARIES forktail_test_support)
forktail_test(loadgen_input system TIMEOUT 300
  SOURCES system/load/input_test.cc
  LIBRARIES forktail_test_support)
forktail_test(loadgen_workloads system TIMEOUT 300
  SOURCES system/load/workloads_test.cc system/load/ycsb_test.cc system/load/memcached_test.cc
  LIBRARIES forktail_test_support)
forktail_test(loadgen_shape system TIMEOUT 300
  SOURCES system/load/shape_test.cc
  LIBRARIES forktail_test_support)
forktail_test(loadgen_report system TIMEOUT 300
  SOURCES system/load/report_test.cc
  LIBRARIES forktail_loadgen forktail_test_support)
forktail_test(loadgen_errors system TIMEOUT 300
  SOURCES system/load/errors_test.cc system/load/slow_reader_test.cc
  LIBRARIES forktail_test_support)
forktail_test(loadgen_hostile system TIMEOUT 300
  SOURCES system/load/hostile_test.cc
  LIBRARIES forktail_common_text forktail_test_support)
forktail_test(loadgen_cluster system TIMEOUT 400
  SOURCES system/load/cluster_test.cc system/load/cluster_hostile_test.cc
  LIBRARIES forktail_loadgen forktail_test_support)
forktail_test(loadgen_sentinel system TIMEOUT 400
  SOURCES system/load/sentinel_test.cc
  LIBRARIES forktail_test_support)
forktail_test(loadgen_servers system TIMEOUT 300
  SOURCES system/load/servers_test.cc
  LIBRARIES forktail_test_support)
forktail_test(loadgen_replay system TIMEOUT 300
  SOURCES system/load/replay_test.cc
  LIBRARIES forktail_loadgen forktail_test_support)
forktail_test(loadgen_tls system TIMEOUT 300
  SOURCES system/load/tls_test.cc
  LIBRARIES forktail_test_support)
forktail_test(loadgen_meta system TIMEOUT 300
  SOURCES system/load/meta_test.cc
  LIBRARIES forktail_test_support)
forktail_test(loadgen_resp3 system TIMEOUT 300
  SOURCES system/load/resp3_test.cc
  LIBRARIES forktail_loadgen forktail_test_support)
forktail_test(loadgen_deliveries system TIMEOUT 300
  SOURCES system/load/deliveries_test.cc
  LIBRARIES forktail_test_support)
# A sanitizer's shadow memory is no memory of ours.
foreach(test loadgen_shape loadgen_hostile)
  target_compile_definitions(test_${test} PRIVATE
    FORKTAIL_SANITIZED=$<OR:$<BOOL:${FORKTAIL_SANITIZE}>,$<BOOL:${FORKTAIL_SANITIZE_THREADS}>>)
endforeach()
forktail_test(servers system
  SOURCES system/support/servers_test.cc
  LIBRARIES forktail_test_support)
forktail_test(loadgen_observer system TIMEOUT 300
  SOURCES system/load/observer_test.cc
  LIBRARIES forktail_loadgen forktail_test_support)
if(TARGET forktail-load)
  foreach(test loadgen_run loadgen_busy_poll loadgen_open_loop loadgen_input loadgen_workloads loadgen_shape
          loadgen_report loadgen_errors loadgen_hostile loadgen_cluster loadgen_sentinel loadgen_servers
          loadgen_replay loadgen_tls loadgen_meta loadgen_resp3 loadgen_deliveries)
    add_dependencies(test_${test} forktail-load)
  endforeach()
endif()

# What a reply costs to find, by our scanner and by hiredis' reader: docs/loadgen-speed.md has the figures.
add_executable(bench_loadgen_replies ${CMAKE_SOURCE_DIR}/bench/loadgen_replies.c)
target_link_libraries(bench_loadgen_replies PRIVATE forktail_loadgen)

# The reply scanners under libFuzzer, and what it found replayed.
add_subdirectory(fuzz)
