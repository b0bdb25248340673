# SPDX-License-Identifier: LGPL-2.1-or-later
# Debian's g++-aarch64-linux-gnu over a tree of arm64 libraries and headers, which `./dev build arm64` has in the cache
# and names in WQ_TUNED_SYSROOT. In the environment, since a project's tests of the compiler see no cache variable.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT "$ENV{WQ_TUNED_SYSROOT}")
if(NOT IS_DIRECTORY "${CMAKE_SYSROOT}/usr/include")
    message(FATAL_ERROR "WQ_TUNED_SYSROOT is no tree of arm64 libraries: use ./dev build arm64")
endif()
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# FORCE: debhelper names one that only a machine with arm64 as a foreign architecture has.
set(PKG_CONFIG_EXECUTABLE /usr/bin/pkg-config CACHE FILEPATH "" FORCE)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_PATH} "")
# What was built for the sysroot runs here by QEMU's user emulation: unit tests.
find_program(WQ_TUNED_QEMU_USER qemu-aarch64)
if(WQ_TUNED_QEMU_USER)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${WQ_TUNED_QEMU_USER};-L;${CMAKE_SYSROOT}")
endif()
