# SPDX-License-Identifier: MIT
# Tests of the report page: what C++ puts into it, what its modules do with that, and the whole in a browser.
add_library(forktail_sample STATIC support/sample_explanation.cc)
target_link_libraries(forktail_sample PUBLIC forktail_analysis)
add_library(forktail_sample_comparison STATIC support/sample_comparison.cc)
target_link_libraries(forktail_sample_comparison PUBLIC forktail_analysis_compare)
forktail_unoptimized(forktail_sample)

forktail_test(report unit
  SOURCES unit/analysis/report/page_test.cc unit/analysis/report/points_test.cc unit/analysis/report/lanes_test.cc unit/analysis/report/reduce_test.cc
          unit/analysis/report/samples_test.cc unit/analysis/report/compare_page_test.cc
  LIBRARIES forktail_sample forktail_sample_comparison forktail_analysis_report forktail_analysis)

# The page's modules one by one, in node.
file(GLOB report_module_tests CONFIGURE_DEPENDS unit/analysis/report/*.test.mjs)
add_test(NAME unit.report_modules COMMAND ${NODE_PROGRAM} --test ${report_module_tests})
set_tests_properties(unit.report_modules PROPERTIES LABELS unit TIMEOUT 120)

# Pages in a headless Chromium, driven by what tests/browser/package.json lists.
add_executable(report_sample system/report/report_sample.cc)
target_link_libraries(report_sample PRIVATE forktail_sample forktail_analysis_report forktail_analysis)
set_target_properties(report_sample PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

add_executable(compare_sample system/report/compare_sample.cc)
target_link_libraries(compare_sample PRIVATE forktail_sample_comparison forktail_analysis_report)
set_target_properties(compare_sample PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

add_test(NAME system.browser_packages
  COMMAND ${CMAKE_COMMAND} -DNPM=${NPM_PROGRAM} -DFROM=${CMAKE_CURRENT_SOURCE_DIR}/browser
          -DTO=${CMAKE_BINARY_DIR}/tests/browser-packages -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/npm_packages.cmake)
set_tests_properties(system.browser_packages PROPERTIES LABELS system FIXTURES_SETUP browser_packages TIMEOUT 300
  SKIP_REGULAR_EXPRESSION "SKIPPED:")
foreach(part browser reading access)
  add_test(NAME system.report_${part}
    COMMAND ${NODE_PROGRAM} ${CMAKE_CURRENT_SOURCE_DIR}/system/report/report_${part}_test.mjs
            $<TARGET_FILE:report_sample> ${CMAKE_BINARY_DIR}/tests/browser-packages)
  set_tests_properties(system.report_${part} PROPERTIES LABELS system FIXTURES_REQUIRED browser_packages
    RUN_SERIAL ON TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
add_test(NAME system.compare_browser
  COMMAND ${NODE_PROGRAM} ${CMAKE_CURRENT_SOURCE_DIR}/system/report/compare_browser_test.mjs
          $<TARGET_FILE:compare_sample> ${CMAKE_BINARY_DIR}/tests/browser-packages
          $<TARGET_FILE:forktail> $<TARGET_FILE:bench_explain_run>)
set_tests_properties(system.compare_browser PROPERTIES LABELS system FIXTURES_REQUIRED browser_packages
  RUN_SERIAL ON TIMEOUT 300 SKIP_RETURN_CODE 77)

# A page of the lab.
add_executable(lab_page_sample system/lab/page_sample.cc)
target_link_libraries(lab_page_sample PRIVATE forktail_lab)
set_target_properties(lab_page_sample PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_test(NAME system.lab_page_browser
  COMMAND ${NODE_PROGRAM} ${CMAKE_CURRENT_SOURCE_DIR}/system/lab/page_browser_test.mjs
          $<TARGET_FILE:lab_page_sample> ${CMAKE_BINARY_DIR}/tests/browser-packages)
set_tests_properties(system.lab_page_browser PROPERTIES LABELS system FIXTURES_REQUIRED browser_packages
  RUN_SERIAL ON TIMEOUT 300 SKIP_RETURN_CODE 77)
