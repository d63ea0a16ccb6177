# SPDX-License-Identifier: MIT
# Tests of the analysis: runs built by hand, recordings written for the purpose, and the command itself.
forktail_test(analysis unit
  SOURCES unit/analysis_timeline_test.cc unit/analysis_blame_test.cc unit/analysis_property_test.cc
          unit/analysis_episodes_test.cc unit/analysis_render_test.cc unit/analysis_load_test.cc
          unit/analysis_command_test.cc unit/analysis_column_test.cc unit/analysis_client_test.cc
          unit/analysis_activity_test.cc unit/analysis_hops_test.cc unit/analysis_outages_test.cc
  LIBRARIES forktail_analysis forktail_test_support)
add_dependencies(test_analysis forktail forktail-load forktail-record)
forktail_test(explain system SOURCES system/explain_run_test.cc LIBRARIES forktail_analysis forktail_test_support
  TIMEOUT 300)
add_dependencies(test_explain forktail forktail-load forktail-record)

forktail_test(explain_own_code system SOURCES system/explain_own_code_test.cc
  LIBRARIES forktail_analysis forktail_test_support TIMEOUT 300)
add_dependencies(test_explain_own_code forktail forktail-record)

# Writes a run of 10 million requests; tests/bench/explain.sh times `forktail explain` on it.
add_executable(bench_explain_run bench/explain_run.cc)
target_link_libraries(bench_explain_run PRIVATE forktail_recording)
forktail_test(explain_server_word system
  SOURCES system/explain_server_word_test.cc
  LIBRARIES forktail_recording forktail_test_support)
if(TARGET forktail-load)
  add_dependencies(test_explain_server_word forktail forktail-load)
endif()
forktail_test(explain_client system SOURCES system/explain_client_test.cc
  LIBRARIES forktail_analysis forktail_test_support TIMEOUT 300)
add_dependencies(test_explain_client forktail forktail-load forktail-record)
forktail_test(explain_disk system SOURCES system/explain_disk_test.cc
  LIBRARIES forktail_analysis forktail_test_support TIMEOUT 300)
add_dependencies(test_explain_disk forktail forktail-record)
forktail_test(explain_hops system SOURCES system/explain_hops_test.cc
  LIBRARIES forktail_analysis forktail_test_support TIMEOUT 300)
add_dependencies(test_explain_hops forktail forktail-load forktail-record)
