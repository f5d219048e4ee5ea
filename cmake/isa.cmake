# lockstep_isa_sources(<out> file_simd.cpp ...)
# Compiles each file once per instruction set, with LOCKSTEP_ISA set to the entry of kernels/isa.h.
# The copies are wrappers in the build folder that include the file. Their code must not call inline
# functions of other headers out of line: the linker keeps one copy for the whole program.
function(lockstep_isa_sources out)
  set(vector_maths "-ffp-contract=fast;-fno-math-errno;-fno-trapping-math")
  set(sources "")
  foreach(file ${ARGN})
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${vector_maths}"
                                COMPILE_DEFINITIONS LOCKSTEP_ISA=kBaseline)
    list(APPEND sources ${file})
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      get_filename_component(stem ${file} NAME_WE)
      foreach(isa Avx2 Avx512)
        set(copy ${CMAKE_CURRENT_BINARY_DIR}/isa/${stem}_${isa}.cpp)
        file(CONFIGURE OUTPUT ${copy} CONTENT "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${file}\"\n")
        set(flags ${vector_maths} -mavx2 -mfma -mf16c)
        if(isa STREQUAL Avx512)
          list(APPEND flags -mavx512f -mavx512vl -mavx512bw -mavx512dq -mprefer-vector-width=512)
        endif()
        set_source_files_properties(${copy} PROPERTIES COMPILE_OPTIONS "${flags}"
                                    COMPILE_DEFINITIONS LOCKSTEP_ISA=k${isa})
        list(APPEND sources ${copy})
      endforeach()
    endif()
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
