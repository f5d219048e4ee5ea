# lockstep_layer(<name> SOURCES ... [USES layer...] [LINK lib...])
# One folder of lockstep/ as a static library. USES names the layers below it whose headers it may
# include; the objects of all layers become the one library that is installed.
function(lockstep_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LINK" ${ARGN})
  add_library(lockstep_${name} STATIC ${ARG_SOURCES})
  target_include_directories(lockstep_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(lockstep_${name} PRIVATE $<BUILD_INTERFACE:lockstep_flags>)
  foreach(below ${ARG_USES})
    target_link_libraries(lockstep_${name} PUBLIC lockstep_${below})
  endforeach()
  target_link_libraries(lockstep_${name} PUBLIC ${ARG_LINK})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LAYERS ${name})
endfunction()

# lockstep_test(<name> LAYER <layer> SOURCES ... [LABELS ...] [TIMEOUT seconds])
# One GoogleTest program per folder of tests/; every case is a CTest test with the given labels. The
# targets <label>_tests and <folder>_tests build all programs of a label or folder.
function(lockstep_test name)
  cmake_parse_arguments(ARG "" "LAYER;TIMEOUT" "SOURCES;LABELS;LINK" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)  # tests are built more often than run
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE LOCKSTEP_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             LOCKSTEP_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE lockstep_${ARG_LAYER} lockstep_flags ${ARG_LINK} GTest::gtest
                        GTest::gtest_main)
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  foreach(group ${ARG_LABELS} ${folder})
    if(NOT TARGET ${group}_tests)
      add_custom_target(${group}_tests)
    endif()
    add_dependencies(${group}_tests ${name})
  endforeach()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
