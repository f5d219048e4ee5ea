set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET default)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(PROJECT_IS_TOP_LEVEL)
  find_program(LOCKSTEP_CCACHE ccache)
  if(LOCKSTEP_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${LOCKSTEP_CCACHE})
  endif()
endif()

# What every target of the project compiles with; never exported to embedders.
add_library(lockstep_flags INTERFACE)
# The host compiler's only: what nvcc gets stands in cuda.cmake.
target_compile_options(lockstep_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-psabi>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of its own string concatenation (GCC bug 105329).
  target_compile_options(lockstep_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(LOCKSTEP_WARNINGS_AS_ERRORS)
  target_compile_options(lockstep_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(LOCKSTEP_SANITIZE STREQUAL "address")
  # Left out: what the address sanitizer finds as well; it would double the time of compilation.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
                      -fno-sanitize=null,object-size,vptr,alignment,pointer-overflow,nonnull-attribute
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(LOCKSTEP_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
endif()
