# SPDX-License-Identifier: MIT
# Runs as tables: CSV, Parquet, and SQL over them.
forktail_test(export_tables_batches unit SOURCES unit/analysis/exports/tables_test.cc LIBRARIES forktail_analysis_exports_tables)
forktail_test(export_tables system SOURCES system/report/export_tables_test.cc LIBRARIES forktail_test_support TIMEOUT 200)
target_compile_definitions(test_export_tables PRIVATE FORKTAIL_SOURCE="${CMAKE_SOURCE_DIR}")
if(TARGET forktail-parquet)
  add_dependencies(test_export_tables forktail-parquet)
endif()
add_dependencies(test_export_tables forktail bench_explain_run)
