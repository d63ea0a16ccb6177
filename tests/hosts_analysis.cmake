# SPDX-License-Identifier: MIT
# Runs of several hosts, as the analysis reads them.
forktail_test(hosts_analysis unit SOURCES unit/analysis/run/hosts_test.cc LIBRARIES forktail_analysis_run)
