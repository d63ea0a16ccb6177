# SPDX-License-Identifier: MIT
# Tests of the lab. Its sessions need no root; its demo is the whole of forktail on a real server.
forktail_test(lab_machine unit SOURCES unit/lab/host/machine_test.cc LIBRARIES forktail_lab)
forktail_test(lab_output unit SOURCES unit/lab/run/output_test.cc unit/lab/pages/tables_test.cc unit/lab/pages/charts_test.cc
              unit/lab/pages/page_test.cc unit/lab/scenario/shipped_test.cc LIBRARIES forktail_lab forktail_test_support)
forktail_test(lab_scenario unit SOURCES unit/lab/scenario/scenario_test.cc unit/lab/run/program_figures_test.cc
              LIBRARIES forktail_lab forktail_test_support)
forktail_test(lab_limits unit SOURCES unit/lab/host/changes_test.cc LIBRARIES forktail_lab forktail_test_support)
forktail_test(lab_session unit SOURCES unit/lab/host/session_test.cc LIBRARIES forktail_lab forktail_test_support)

add_library(forktail_lab_test_support STATIC system/lab/support.cc)
target_link_libraries(forktail_lab_test_support PUBLIC forktail_test_support)
forktail_test(lab_input system SOURCES system/lab/input_test.cc LIBRARIES forktail_lab_test_support)
forktail_test(lab_stop system SOURCES system/lab/stop_test.cc LIBRARIES forktail_lab_test_support TIMEOUT 300)
forktail_test(lab_demo system SOURCES system/lab/demo_test.cc
              LIBRARIES forktail_lab_test_support forktail_analysis TIMEOUT 200)
forktail_test(lab_servers system SOURCES system/lab/servers_test.cc LIBRARIES forktail_lab forktail_test_support)
forktail_test(lab_changes system SOURCES system/lab/changes_test.cc LIBRARIES forktail_lab forktail_test_support)
forktail_test(lab_memory system SOURCES system/lab/memory_test.cc LIBRARIES forktail_lab forktail_test_support TIMEOUT 200)
target_compile_definitions(test_lab_memory PRIVATE FORKTAIL_SOURCE="${CMAKE_SOURCE_DIR}")
forktail_test(lab_run system SOURCES system/lab/run_test.cc LIBRARIES forktail_lab forktail_lab_test_support TIMEOUT 400)
forktail_test(lab_kill system SOURCES system/lab/kill_test.cc LIBRARIES forktail_lab_test_support TIMEOUT 400)
forktail_test(lab_pairs system SOURCES system/lab/pairs_test.cc LIBRARIES forktail_lab_test_support TIMEOUT 200)
