# SPDX-License-Identifier: MIT
# The machine that the programs are built for: a row below, bpf/machine/machine_NAME.h and loader/system/machine_NAME.c
# (CONTRIBUTING.md). NAME is libbpf's name of it, as in __TARGET_ARCH_arm64.
#
#   FORKTAIL_MACHINE           its name
#   FORKTAIL_SAVED_REGISTERS   registers that a function preserves: unwinding needs them of each sample

# forktail_machine(NAME PROCESSORS SAVED_REGISTERS)
function(forktail_machine name processors saved_registers)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(${processors})$")
    set(FORKTAIL_MACHINE ${name} PARENT_SCOPE)
    set(FORKTAIL_SAVED_REGISTERS ${saved_registers} PARENT_SCOPE)
  endif()
endfunction()

forktail_machine(x86 "x86_64|AMD64" 6)
forktail_machine(arm64 "aarch64|arm64" 12)

if(NOT FORKTAIL_MACHINE)
  message(FATAL_ERROR "forktail does not support ${CMAKE_SYSTEM_PROCESSOR} (cmake/machine.cmake)")
endif()
