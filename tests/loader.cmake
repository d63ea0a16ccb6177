# SPDX-License-Identifier: MIT
# Tests of the recorder: its parts with real /proc files and events made by hand; then whole, with real
# redis-servers and real BPF programs, as root.
forktail_test(loader unit
  SOURCES unit/loader/targets_test.cc unit/loader/listeners_test.cc unit/loader/symbols_test.cc
          unit/loader/metrics_test.cc unit/loader/support_test.cc unit/loader/drain_test.cc unit/loader/losses_test.cc
          unit/loader/quota_test.cc unit/loader/stack_text_test.cc unit/loader/mappings_test.cc unit/loader/mapped_open_test.cc
          unit/loader/unwinding_test.cc unit/loader/cgroups_test.cc unit/loader/rings_test.cc unit/loader/addresses_test.cc
  LIBRARIES forktail_loader forktail_test_support)
add_dependencies(test_loader forktail-record)
# A library and its debug file, apart, as Debian's packages have them.
set(STRIPPED_BUILD_ID f07ac0de5afe00000000000000000000000000aa)
add_library(stripped MODULE unit/loader/stripped.c)
set_target_properties(stripped PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_compile_options(stripped PRIVATE -g)
target_link_options(stripped PRIVATE -Wl,--build-id=0x${STRIPPED_BUILD_ID})
add_custom_command(TARGET stripped POST_BUILD
  COMMAND ${CMAKE_OBJCOPY} --only-keep-debug $<TARGET_FILE:stripped> $<TARGET_FILE:stripped>.debug
  COMMAND ${CMAKE_STRIP} $<TARGET_FILE:stripped>)
add_dependencies(test_loader stripped)
target_compile_definitions(test_loader PRIVATE FORKTAIL_STRIPPED="$<TARGET_FILE:stripped>"
                           FORKTAIL_STRIPPED_BUILD_ID="${STRIPPED_BUILD_ID}")
target_link_libraries(test_loader PRIVATE ${CMAKE_DL_LIBS})
forktail_test(record system SOURCES system/record/record_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
forktail_test(record_causes system SOURCES system/record/causes_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
forktail_test(record_faults system SOURCES system/record/faults_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
forktail_test(record_busy system SOURCES system/record/busy_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
forktail_test(record_programs system SOURCES system/record/programs_test.cc
  LIBRARIES forktail_loader forktail_test_support TIMEOUT 300)
forktail_test(record_input system SOURCES system/record/input_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
forktail_test(record_targets system SOURCES system/record/targets_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
forktail_test(record_sockets system SOURCES system/record/sockets_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
add_executable(loops_server system/record/loops_server.c)
target_link_libraries(loops_server PRIVATE Threads::Threads)
set_target_properties(loops_server PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_compile_definitions(test_record_sockets PRIVATE FORKTAIL_LOOPS_SERVER="$<TARGET_FILE:loops_server>")
add_dependencies(test_record_sockets forktail-record loops_server)
forktail_test(record_quota system SOURCES system/record/quota_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
add_executable(vforker system/record/vforker.c)
set_target_properties(vforker PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
forktail_test(record_profiles system SOURCES system/record/profiles_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
target_compile_definitions(test_record_profiles PRIVATE FORKTAIL_VFORKER="$<TARGET_FILE:vforker>")
add_dependencies(test_record_profiles forktail-record vforker)
forktail_test(record_writer system SOURCES system/record/writer_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
add_dependencies(test_record_writer forktail-record forktail)
# A function's name as only who means harm has it; the tests of it ask for the letters.
set(LONG_NAME_BYTES 8191)
string(REPEAT n ${LONG_NAME_BYTES} LONG_NAME)
configure_file(system/record/long_name.c.in ${CMAKE_CURRENT_BINARY_DIR}/long_name.c @ONLY)
add_library(long_name MODULE ${CMAKE_CURRENT_BINARY_DIR}/long_name.c)
set_target_properties(long_name PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
forktail_test(record_safe system SOURCES system/record/safe_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
target_compile_definitions(test_record_safe PRIVATE FORKTAIL_LONG_NAME="$<TARGET_FILE:long_name>")
add_dependencies(test_record_safe forktail-record forktail-load long_name)
add_executable(lock_holder system/record/lock_holder.c)
target_link_libraries(lock_holder PRIVATE Threads::Threads)
set_target_properties(lock_holder PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
forktail_test(record_locks system SOURCES system/record/locks_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
target_compile_definitions(test_record_locks PRIVATE FORKTAIL_LOCK_HOLDER="$<TARGET_FILE:lock_holder>")
add_dependencies(test_record_locks forktail-record lock_holder)
