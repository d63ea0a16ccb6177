# SPDX-License-Identifier: MIT
# What `cmake --install` installs. A component is a Debian package (debian/rules): forktail, which needs no privileges;
# forktail-record, for server hosts; forktail-mpi, for runs on several hosts. forktail-parquet is a component of
# script/install only: Debian has no Arrow for C++, and other hosts do not have the one of build-python/ at the same path. So
# packages contain the wheel, which brings it (FORKTAIL_WHEEL).
include(GNUInstallDirs)
set(FORKTAIL_ZSH_DIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Where zsh looks for completions")

add_custom_target(forktail_programs) # everything that is installed
function(forktail_install component)
  foreach(program ${ARGN})
    if(TARGET ${program})
      install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
      add_dependencies(forktail_programs ${program})
      if(FORKTAIL_STATIC)
        target_sources(${program} PRIVATE $<TARGET_OBJECTS:forktail_static>)
      endif()
    endif()
  endforeach()
endfunction()
forktail_install(forktail forktail forktail-load forktail-clock)
forktail_install(forktail-record forktail-record forktail-guard)
forktail_install(forktail-mpi forktail-rank)
forktail_install(forktail-parquet forktail-parquet)
if(FORKTAIL_WHEEL)
  add_dependencies(forktail_programs forktail_wheel)
  install(FILES ${FORKTAIL_WHEEL_FILE} DESTINATION lib/forktail COMPONENT forktail)
endif()
# The Python package, which the programs find by this path (cli/python.cc). base.css is a link to the report's.
install(FILES python/__main__.py DESTINATION lib/forktail/python COMPONENT forktail)
install(DIRECTORY python/forktail DESTINATION lib/forktail/python COMPONENT forktail
        PATTERN __pycache__ EXCLUDE PATTERN base.css EXCLUDE PATTERN ".*" EXCLUDE)
install(FILES analysis/report/base.css DESTINATION lib/forktail/python/forktail COMPONENT forktail)
if(IS_ABSOLUTE ${CMAKE_INSTALL_SYSCONFDIR}) # for a package, which preserves changes to it
  install(FILES contrib/record.toml DESTINATION ${CMAKE_INSTALL_SYSCONFDIR}/forktail COMPONENT forktail-record)
endif()
if(TARGET forktail_manual)
  add_dependencies(forktail_programs forktail_manual)
  set(made ${CMAKE_BINARY_DIR}/cli/manual)
  if(FORKTAIL_MANUAL)
    set(made ${FORKTAIL_MANUAL})
  endif()
  set(recorder "forktail-(record|guard|doctor)[.]1$")
  set(rank "forktail-rank[.]1$")
  install(DIRECTORY ${made}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT forktail REGEX "${recorder}|${rank}" EXCLUDE)
  install(DIRECTORY ${made}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT forktail-mpi FILES_MATCHING REGEX ${rank})
  install(DIRECTORY ${made}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT forktail-record
          FILES_MATCHING REGEX ${recorder})
  install(DIRECTORY ${made}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT forktail)
  install(DIRECTORY ${made}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT forktail)
  install(DIRECTORY ${made}/zsh/ DESTINATION ${FORKTAIL_ZSH_DIR} COMPONENT forktail)
endif()
