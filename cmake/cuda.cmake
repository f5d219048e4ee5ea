# lockstep_cuda_sources(<target> <file.cu>...)
# Adds CUDA sources to a target, for nvcc or for the virtual GPU. For the latter they are C++ with
# every load and store marked as for the thread sanitizer, whose runtime is not linked: the virtual
# GPU has those functions.
if(LOCKSTEP_GPU STREQUAL "cuda")
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(CMAKE_CUDA_COMPILER nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH
                 PATHS /usr/local/cuda PATH_SUFFIXES bin REQUIRED)
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    if(DEFINED ENV{CUDAARCHS})
      set(CMAKE_CUDA_ARCHITECTURES "$ENV{CUDAARCHS}" CACHE STRING "GPUs to compile for")
    else()
      set(CMAKE_CUDA_ARCHITECTURES "80;90" CACHE STRING "GPUs to compile for")
    endif()
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  if(LOCKSTEP_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${LOCKSTEP_CCACHE})
  endif()
  # The maths of element-wise ops and Philox are constexpr functions of both devices.
  add_library(lockstep_cuda_flags INTERFACE)
  target_compile_options(lockstep_cuda_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xcompiler=-Wall>")
  if(LOCKSTEP_WARNINGS_AS_ERRORS)
    target_compile_options(lockstep_cuda_flags INTERFACE
      "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
  endif()
endif()

function(lockstep_cuda_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  # For whoever compiles them in another way too (tests/ptx).
  foreach(source ${ARGN})
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_CUDA_FILES ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  endforeach()
  if(LOCKSTEP_GPU STREQUAL "cuda")
    # The static runtime finds the driver when it is first called: programs start without one.
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:lockstep_cuda_flags> CUDA::cudart_static)
    return()
  endif()
  set_source_files_properties(${ARGN} PROPERTIES
    LANGUAGE CXX
    COMPILE_OPTIONS "-x;c++;-fsanitize=thread;-Wno-tsan;-Wno-unknown-pragmas;-O1;--param=tsan-distinguish-volatile=1")
  target_link_libraries(${target} PRIVATE lockstep_vgpu)
endfunction()
