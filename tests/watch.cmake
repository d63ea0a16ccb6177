# SPDX-License-Identifier: MIT
# Tests of the live view: what stands on its screen, and that screen in tmux.
forktail_test(watch_layout unit SOURCES unit/live/watch/layout_test.cc LIBRARIES forktail_live_watch)
forktail_test(watch system SOURCES system/live/watch_test.cc LIBRARIES forktail_test_support)
add_dependencies(test_watch forktail forktail-record)
