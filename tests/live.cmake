# SPDX-License-Identifier: MIT
# Tests of what follows recordings as they grow, and of metrics.
forktail_test(live unit SOURCES unit/live/follow/follower_test.cc unit/live/follow/cpu_holders_test.cc unit/live/follow/iterations_test.cc LIBRARIES forktail_live_follow forktail_test_support)
forktail_test(metrics system SOURCES system/live/metrics_test.cc LIBRARIES forktail_live_metrics forktail_test_support TIMEOUT 180)
add_dependencies(test_metrics forktail-record)

# The alerts fire when they should, and dashboard, alerts and page name metrics that there are.
add_test(NAME system.metrics_rules
  COMMAND promtool test rules ${CMAKE_SOURCE_DIR}/contrib/prometheus/forktail.rules.test.yml)
add_test(NAME unit.metrics_names
  COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/unit/live/metrics/contrib_check.py ${CMAKE_SOURCE_DIR})
set_tests_properties(system.metrics_rules PROPERTIES LABELS system TIMEOUT 60) # promtool is Prometheus'
set_tests_properties(unit.metrics_names PROPERTIES LABELS unit TIMEOUT 60)
