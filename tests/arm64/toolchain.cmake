# SPDX-License-Identifier: LGPL-2.1-or-later
# Debian's g++-aarch64-linux-gnu, with a tree of arm64 libraries and headers: `./dev build arm64` makes it in
# the cache and sets WQ_TUNED_SYSROOT. This is an environment variable, because CMake's compiler tests do not
# see cache variables.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT "$ENV{WQ_TUNED_SYSROOT}")
if(NOT IS_DIRECTORY "${CMAKE_SYSROOT}/usr/include")
    message(FATAL_ERROR "WQ_TUNED_SYSROOT is not a tree of arm64 libraries: use ./dev build arm64")
endif()
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# FORCE: debhelper sets a pkg-config that exists only if arm64 is a foreign architecture of this machine.
set(PKG_CONFIG_EXECUTABLE /usr/bin/pkg-config CACHE FILEPATH "" FORCE)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_PATH} "")
# QEMU's user emulation runs the arm64 unit tests on this machine.
find_program(WQ_TUNED_QEMU_USER qemu-aarch64)
if(WQ_TUNED_QEMU_USER)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${WQ_TUNED_QEMU_USER};-L;${CMAKE_SYSROOT}")
endif()
