# lockstep_cuda_sources(<target> <file.cu>...)
# Adds CUDA sources to a target. For the virtual GPU they are C++ with every load and store marked
# as for the thread sanitizer, whose runtime is not linked: the virtual GPU has those functions.
function(lockstep_cuda_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  set_source_files_properties(${ARGN} PROPERTIES
    LANGUAGE CXX
    COMPILE_OPTIONS "-x;c++;-fsanitize=thread;-Wno-tsan;-Wno-unknown-pragmas;-O1")
  target_link_libraries(${target} PRIVATE lockstep_vgpu)
endfunction()
