# SPDX-License-Identifier: MIT
# What watches a ring: rules, configuration, when snapshots are made, and all of it on a real server.
forktail_test(guard_config unit SOURCES unit/live/guard/rule_test.cc unit/live/guard/config_test.cc LIBRARIES forktail_live_guard_config)
forktail_test(guard unit SOURCES unit/live/guard/children_test.cc unit/live/guard/snapshot_plan_test.cc unit/live/guard/retention_test.cc unit/live/guard/triggers_test.cc LIBRARIES forktail_live_guard forktail_test_support)
forktail_test(guard_run system SOURCES system/live/guard_test.cc
  LIBRARIES forktail_live_guard_control_client forktail_test_support TIMEOUT 200)
add_dependencies(test_guard_run forktail forktail-guard forktail-record)
# The service as systemd runs it: what it tells it, and what it does when it is told.
forktail_test(service system SOURCES system/live/service_test.cc LIBRARIES forktail_test_support TIMEOUT 200)
add_dependencies(test_service forktail forktail-guard forktail-record)
