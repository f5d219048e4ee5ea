#include "vgpu/runtime/function_name.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>

namespace vgpu {
namespace {

using Names = std::map<std::uintptr_t, std::string>;  // by address in the file

// The functions of a program or library, local ones too: kernels often have no external linkage, so
// that the dynamic linker does not know them.
Names read_symbols(const char* path) {
  Names names;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) return names;
  const auto bytes = static_cast<std::size_t>(info.st_size);
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return names;
  const char* const file = static_cast<const char*>(mapped);
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(file);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(file + header->e_shoff);
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const char* const text = file + sections[sections[s].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(file + sections[s].sh_offset);
    for (std::size_t i = 0; i < sections[s].sh_size / sizeof(Elf64_Sym); ++i)
      if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_value != 0)
        names[symbols[i].st_value] = text + symbols[i].st_name;
  }
  munmap(mapped, bytes);
  return names;
}

std::string plain(const std::string& symbol) {
  int status = 0;
  char* const demangled = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : symbol;
  std::free(demangled);
  const std::string anonymous = "(anonymous namespace)::";
  for (std::size_t at; (at = name.find(anonymous)) != std::string::npos;)
    name.erase(at, anonymous.size());
  if (name.rfind("void ", 0) == 0) name.erase(0, 5);
  return name.substr(0, name.find('('));
}

std::string find_symbol(const void* function) {
  static auto* files = new std::map<std::string, Names>;
  Dl_info info{};
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return "";
  // The program's own path may be relative to a directory that was left since.
  const std::string path = info.dli_fname;
  auto file = files->find(path);
  if (file == files->end()) {
    Names names = read_symbols(path.c_str());
    if (names.empty()) names = read_symbols("/proc/self/exe");
    file = files->emplace(path, std::move(names)).first;
  }
  const auto offset =
      reinterpret_cast<std::uintptr_t>(function) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  const auto at = file->second.find(offset);
  return at == file->second.end() ? "" : at->second;
}

struct FunctionNames {
  std::string symbol, name;
};

FunctionNames names_of(const void* function) {
  static std::mutex mutex;
  static auto* known = new std::map<const void*, FunctionNames>;
  std::lock_guard lock(mutex);
  const auto [at, is_new] = known->try_emplace(function);
  if (is_new) {
    at->second.symbol = find_symbol(function);
    at->second.name = at->second.symbol.empty() ? "kernel" : plain(at->second.symbol);
  }
  return at->second;
}

}  // namespace

std::string function_name(const void* function) { return names_of(function).name; }
std::string function_symbol(const void* function) { return names_of(function).symbol; }

}  // namespace vgpu
