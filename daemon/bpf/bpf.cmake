# SPDX-License-Identifier: LGPL-2.1-or-later
# Counting by BPF. Two programs for the kernel are compiled here, for any CPU and any kernel, and become part of
# the library; without the tools for that, the same calls say so at run time.
set(WQ_TUNED_BPF AUTO CACHE STRING "Count work by BPF: ON, OFF, or AUTO (where clang, bpftool and libbpf are there)")
set_property(CACHE WQ_TUNED_BPF PROPERTY STRINGS AUTO ON OFF)

set(bpf_lacks "")
set(bpf_objects "")
if(WQ_TUNED_BPF)
    find_program(WQ_TUNED_CLANG NAMES clang clang-19 clang-16 DOC "clang, for BPF")
    find_program(WQ_TUNED_BPFTOOL bpftool PATHS /usr/sbin /sbin DOC "bpftool")
    pkg_check_modules(BPF IMPORTED_TARGET libbpf>=1.1)
    foreach(one IN ITEMS WQ_TUNED_CLANG:clang WQ_TUNED_BPFTOOL:bpftool BPF_FOUND:libbpf>=1.1)
        string(REPLACE ":" ";" one "${one}")
        list(GET one 0 variable)
        list(GET one 1 name)
        if(NOT ${variable})
            list(APPEND bpf_lacks ${name})
        endif()
    endforeach()
    list(JOIN bpf_lacks ", " bpf_lacks)
endif()

if(WQ_TUNED_BPF AND NOT bpf_lacks)
    message(STATUS "Counting by BPF: yes (${WQ_TUNED_CLANG}, ${WQ_TUNED_BPFTOOL}, libbpf ${BPF_VERSION})")
    # SOURCE (NAME.bpf.c) becomes NAME.skel.h, which TARGET can include. The last step but one drops what is for debuggers.
    function(wq_tuned_bpf TARGET SOURCE)
        cmake_path(GET SOURCE FILENAME name)
        string(REPLACE .bpf.c "" name ${name})
        set(object ${CMAKE_CURRENT_BINARY_DIR}/bpf/${name}.bpf.o)
        set(skeleton ${CMAKE_CURRENT_BINARY_DIR}/bpf/${name}.skel.h)
        file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/bpf)
        add_custom_command(OUTPUT ${object} ${skeleton}
            COMMAND ${WQ_TUNED_CLANG} -target bpf -mcpu=v3 -g -O2 -Wall -Werror
                -I${CMAKE_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -c ${SOURCE} -o ${object}.all
            COMMAND ${WQ_TUNED_BPFTOOL} gen object ${object} ${object}.all
            COMMAND ${WQ_TUNED_BPFTOOL} gen skeleton ${object} name ${name}_bpf > ${skeleton}
            DEPENDS ${SOURCE} ${ARGN}
            COMMENT "BPF: ${name}" VERBATIM)
        target_sources(${TARGET} PRIVATE ${skeleton})
        target_include_directories(${TARGET} SYSTEM PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/bpf)
    endfunction()
    foreach(name all_pods counters dump profile top workqueues)
        wq_tuned_bpf(wq-tuned-core ${CMAKE_CURRENT_SOURCE_DIR}/bpf/${name}.bpf.c
            ${CMAKE_CURRENT_SOURCE_DIR}/bpf/kernel_types.h
            ${CMAKE_CURRENT_SOURCE_DIR}/bpf/kernel_variables.h
            ${CMAKE_CURRENT_SOURCE_DIR}/bpf/pods_program.h ${CMAKE_CURRENT_SOURCE_DIR}/bpf/bpf_shared.h
            ${CMAKE_CURRENT_SOURCE_DIR}/bpf/bpf_work.h ${CMAKE_CURRENT_SOURCE_DIR}/bpf/profile_shared.h)
        list(APPEND bpf_objects ${CMAKE_CURRENT_BINARY_DIR}/bpf/${name}.bpf.o)
    endforeach()
    set(loaders bpf/bpf_counters.cpp bpf/bpf_dump.cpp bpf/bpf_masks.cpp bpf/bpf_pods.cpp bpf/bpf_pods_map.cpp bpf/bpf_profile.cpp
        bpf/bpf_statistics.cpp bpf/bpf_top.cpp bpf/bpf_workqueues.cpp)
    set_source_files_properties(${loaders} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # skeletons share names
    target_sources(wq-tuned-core PRIVATE ${loaders} machine/bpf_errors.cpp machine/btf_types.cpp)
    target_link_libraries(wq-tuned-core PRIVATE PkgConfig::BPF)
elseif(WQ_TUNED_BPF AND NOT WQ_TUNED_BPF STREQUAL AUTO)
    message(FATAL_ERROR "WQ_TUNED_BPF=${WQ_TUNED_BPF}, but these are missing: ${bpf_lacks}")
else()
    message(STATUS "Counting by BPF: no (WQ_TUNED_BPF=${WQ_TUNED_BPF}; missing: \"${bpf_lacks}\")")
    target_sources(wq-tuned-core PRIVATE bpf/bpf_absent.cpp)
endif()
set(WQ_TUNED_BPF_OBJECTS "${bpf_objects}" PARENT_SCOPE)  # for their test
