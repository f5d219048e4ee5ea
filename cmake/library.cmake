# The one library that embedders link (the objects of every layer), and its installation.
include(CMakePackageConfigHelpers)
include(${PROJECT_SOURCE_DIR}/cmake/installed_headers.cmake)

get_property(layers GLOBAL PROPERTY LOCKSTEP_LAYERS)
set(objects "")
foreach(layer ${layers})
  list(APPEND objects $<TARGET_OBJECTS:lockstep_${layer}>)
endforeach()
add_library(lockstep ${objects})
add_library(lockstep::lockstep ALIAS lockstep)
set_target_properties(lockstep PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(lockstep PUBLIC cxx_std_20)
target_include_directories(lockstep PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                           $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>
                           $<INSTALL_INTERFACE:include>)
target_link_libraries(lockstep PRIVATE fmt::fmt ZLIB::ZLIB Threads::Threads)
if(TARGET lockstep_vgpu)
  target_link_libraries(lockstep PRIVATE $<BUILD_INTERFACE:lockstep_vgpu>)
endif()
if(LOCKSTEP_GPU STREQUAL "cuda")
  target_link_libraries(lockstep PRIVATE CUDA::cudart_static)
endif()
set(pc_libs -lfmt -lz -pthread)
if(LOCKSTEP_WITH_ONEDNN)
  target_link_libraries(lockstep PRIVATE DNNL::dnnl)
  list(APPEND pc_libs -ldnnl)
endif()
if(LOCKSTEP_WITH_OPENMP)
  target_link_libraries(lockstep PRIVATE OpenMP::OpenMP_CXX)
  list(APPEND pc_libs -fopenmp)
endif()
if(LOCKSTEP_GPU STREQUAL "cuda")
  list(APPEND pc_libs -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt)
endif()
if(BUILD_SHARED_LIBS)
  # A program that unloads the library without shutdown() must find the pool's code still there.
  target_link_options(lockstep PRIVATE -Wl,-z,nodelete)
endif()

install(TARGETS lockstep EXPORT lockstep-targets ARCHIVE DESTINATION lib LIBRARY DESTINATION lib)
installed_headers(headers)
foreach(header ${headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION include/${folder})
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/lockstep/core/config.h DESTINATION include/lockstep/core)
install(EXPORT lockstep-targets NAMESPACE lockstep:: DESTINATION lib/cmake/lockstep)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/lockstep-config.cmake.in
                              ${PROJECT_BINARY_DIR}/lockstep-config.cmake
                              INSTALL_DESTINATION lib/cmake/lockstep)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lockstep-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lockstep-config.cmake ${PROJECT_BINARY_DIR}/lockstep-config-version.cmake
        DESTINATION lib/cmake/lockstep)

string(JOIN " " pc_libs ${pc_libs})
if(BUILD_SHARED_LIBS)
  set(LOCKSTEP_PC_LIBS "")
  set(LOCKSTEP_PC_LIBS_PRIVATE "${pc_libs}")
else()
  set(LOCKSTEP_PC_LIBS "${pc_libs}")
  set(LOCKSTEP_PC_LIBS_PRIVATE "")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/lockstep.pc.in ${PROJECT_BINARY_DIR}/lockstep.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lockstep.pc DESTINATION lib/pkgconfig)
