# SPDX-License-Identifier: MIT
# Where kernels are fetched from; then the recorder on another kernel than this machine's, in QEMU (docs/platforms.md): one kernel, the default way of
# attaching. Skipped where QEMU, cpio or Debian's packages can't be had; it says which.
add_test(NAME unit.kernel_sources COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/kernels/packages_test.py)
set_tests_properties(unit.kernel_sources PROPERTIES LABELS unit TIMEOUT 60)
add_test(NAME system.kernels COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/kernels/kernels.py --short)
set_tests_properties(system.kernels PROPERTIES LABELS system TIMEOUT 600 RUN_SERIAL ON SKIP_RETURN_CODE 3
  ENVIRONMENT FORKTAIL_BIN_DIR=${CMAKE_BINARY_DIR}/bin)
