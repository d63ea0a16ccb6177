# SPDX-License-Identifier: MIT
# Runs of several hosts, as the analysis reads them.
forktail_test(hosts_analysis unit SOURCES unit/analysis/source/hosts_test.cc LIBRARIES forktail_analysis_source)
forktail_test(hosts_merged system SOURCES system/hosts/merged_test.cc LIBRARIES forktail_recording forktail_test_support util
  TIMEOUT 120)
add_dependencies(test_hosts_merged forktail forktail-load forktail-record)
