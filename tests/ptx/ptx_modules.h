// The PTX files that nvcc made of the CUDA sources, by kernel.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lockstep::testing {

class PtxModules {
 public:
  // Every *.ptx file of the folder. Throws std::runtime_error where there is none.
  explicit PtxModules(const std::string& folder);

  struct Entry {
    std::string file;
    std::string symbol;  // as nvcc mangled it
  };
  // By the name that a C++ compiler mangled; nvcc mangles kernels without linkage in its own way.
  // Throws std::runtime_error where no file or more than one has it.
  const Entry& find(const std::string& symbol) const;

 private:
  std::map<std::string, std::vector<Entry>> entries_;  // by demangled name
};

}  // namespace lockstep::testing
