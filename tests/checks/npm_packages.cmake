# SPDX-License-Identifier: MIT
# Installs the packages that a directory's lock file lists into a directory of the build:
#   cmake -DNPM=... -DFROM=tests/browser -DTO=DIR -P npm_packages.cmake
# A directory that holds them already, from the same lock file, is left alone.
file(SHA256 ${FROM}/package-lock.json wanted)
set(stamp ${TO}/installed)
if(EXISTS ${stamp})
  file(READ ${stamp} have)
  if(have STREQUAL wanted)
    return()
  endif()
endif()
file(MAKE_DIRECTORY ${TO})
file(COPY ${FROM}/package.json ${FROM}/package-lock.json ${FROM}/.npmrc DESTINATION ${TO})
execute_process(COMMAND ${NPM} ci --ignore-scripts --prefer-offline --no-progress --loglevel=error
  WORKING_DIRECTORY ${TO} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "SKIPPED: npm can't install the packages that ${FROM}/package-lock.json lists")
endif()
file(WRITE ${stamp} ${wanted})
