# installed_headers(<variable>): the headers of lockstep/ that embedders get, relative to the project:
# all but those that internal_headers.txt names or whose leading comment says "internal".
function(installed_headers variable)
  file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/internal_headers.txt internal REGEX "^lockstep/")
  list(TRANSFORM internal REPLACE " .*" "")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
               ${PROJECT_SOURCE_DIR}/cmake/internal_headers.txt)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
       ${PROJECT_SOURCE_DIR}/lockstep/*.h)
  list(REMOVE_ITEM headers ${internal})
  set(installed "")
  foreach(header ${headers})
    file(READ ${PROJECT_SOURCE_DIR}/${header} text)
    string(REGEX MATCH "^(//[^\n]*\n)+" leading "${text}")
    if(NOT leading MATCHES "[^A-Za-z_][Ii]nternal[^A-Za-z_]")
      list(APPEND installed ${header})
    endif()
  endforeach()
  set(${variable} ${installed} PARENT_SCOPE)
endfunction()
