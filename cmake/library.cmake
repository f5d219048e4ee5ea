# The one library that embedders link: the objects of every layer.
get_property(layers GLOBAL PROPERTY LOCKSTEP_LAYERS)
set(objects "")
foreach(layer ${layers})
  list(APPEND objects $<TARGET_OBJECTS:lockstep_${layer}>)
endforeach()
add_library(lockstep ${objects})
add_library(lockstep::lockstep ALIAS lockstep)
set_target_properties(lockstep PROPERTIES LINKER_LANGUAGE CXX)
