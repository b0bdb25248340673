# SPDX-License-Identifier: LGPL-2.1-or-later
# Compiles the BPF programs, for any CPU and any kernel: they become part of the library.
find_program(WQ_TUNED_CLANG NAMES clang clang-19 clang-16 DOC "clang, for BPF")
find_program(WQ_TUNED_BPFTOOL bpftool PATHS /usr/sbin /sbin DOC "bpftool")
if(NOT WQ_TUNED_CLANG OR NOT WQ_TUNED_BPFTOOL)
    message(FATAL_ERROR "Not found: clang (${WQ_TUNED_CLANG}) or bpftool (${WQ_TUNED_BPFTOOL}). Install the packages clang and "
        "bpftool (on some systems it is in linux-tools)")
endif()

# SOURCE (NAME.bpf.c, which includes the headers ARGN) becomes NAME.skel.h, which TARGET can include. The last step but one
# drops what is for debuggers.
function(wq_tuned_bpf TARGET SOURCE)
    cmake_path(GET SOURCE FILENAME name)
    string(REPLACE .bpf.c "" name ${name})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/bpf/${name}.bpf.o)
    set(skeleton ${CMAKE_CURRENT_BINARY_DIR}/bpf/${name}.skel.h)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/bpf)
    add_custom_command(OUTPUT ${object} ${skeleton}
        COMMAND ${WQ_TUNED_CLANG} -target bpf -mcpu=v3 -g -O2 -Wall -Werror -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
            -I${CMAKE_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -c ${SOURCE} -o ${object}.all
        COMMAND ${WQ_TUNED_BPFTOOL} gen object ${object} ${object}.all
        COMMAND ${WQ_TUNED_BPFTOOL} gen skeleton ${object} name ${name}_bpf > ${skeleton}
        DEPENDS ${SOURCE} ${ARGN}
        COMMENT "BPF: ${name}" VERBATIM)
    target_sources(${TARGET} PRIVATE ${skeleton})
    target_include_directories(${TARGET} SYSTEM PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/bpf)
endfunction()

set(bpf ${CMAKE_CURRENT_SOURCE_DIR}/bpf)
set(bpf_objects "")
foreach(name counters dump top workqueues)
    wq_tuned_bpf(wq-tuned-core ${bpf}/${name}.bpf.c ${bpf}/kernel_types.h ${bpf}/bpf_shared.h ${bpf}/bpf_work.h)
    list(APPEND bpf_objects ${CMAKE_CURRENT_BINARY_DIR}/bpf/${name}.bpf.o)
endforeach()
set(WQ_TUNED_BPF_OBJECTS "${bpf_objects}" PARENT_SCOPE)  # for their test
file(GLOB loaders CONFIGURE_DEPENDS ${bpf}/bpf_*.cpp)
set_source_files_properties(${loaders} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # skeletons share names
target_link_libraries(wq-tuned-core PRIVATE PkgConfig::BPF)
