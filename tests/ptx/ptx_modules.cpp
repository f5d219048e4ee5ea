#include "ptx/ptx_modules.h"

#include <cxxabi.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace lockstep::testing {
namespace {

std::string demangled(const std::string& symbol) {
  int status = 0;
  char* const name = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string text = status == 0 ? name : symbol;
  std::free(name);
  return text;
}

}  // namespace

PtxModules::PtxModules(const std::string& folder) {
  const std::string mark = ".entry ";
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    if (each.path().extension() != ".ptx") continue;
    std::ifstream in(each.path());
    for (std::string line; std::getline(in, line);) {
      const std::size_t at = line.find(mark);
      if (at == std::string::npos) continue;
      const std::size_t begin = at + mark.size();
      const std::string symbol = line.substr(begin, line.find('(', begin) - begin);
      entries_[demangled(symbol)].push_back({each.path(), symbol});
    }
  }
  if (entries_.empty()) throw std::runtime_error("no kernel's PTX lies in " + folder);
}

const PtxModules::Entry& PtxModules::find(const std::string& symbol) const {
  const std::string name = demangled(symbol);
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw std::runtime_error("no PTX file has " + name);
  // A template with linkage may be in several files, under one symbol; a kernel without has another
  // symbol in each.
  for (const Entry& other : found->second)
    if (other.symbol != found->second[0].symbol)
      throw std::runtime_error(name + " is in " + found->second[0].file + " and in " + other.file +
                               ": which is meant?");
  return found->second[0];
}

}  // namespace lockstep::testing
