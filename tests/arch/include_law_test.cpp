// Includes go one way only.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "arch/source_tree.h"

namespace lockstep::testing {
namespace {

using Layers = std::set<std::string>;

const std::map<std::string, Layers>& may_include() {
  static const std::map<std::string, Layers> kTable = {
      {"core", {"core"}},
      {"kernels", {"kernels", "core"}},
      {"autograd", {"autograd", "kernels", "core"}},
      {"nn", {"nn", "autograd", "kernels", "core"}},
      {"optim", {"optim", "autograd", "kernels", "core"}},
      {"data", {"data", "core"}},
      {"dist", {"dist", "autograd", "kernels", "core"}},
      {"models", {"models", "nn", "autograd", "kernels", "core"}},
      {"train", {"train", "models", "dist", "data", "optim", "nn", "autograd", "kernels", "core"}},
  };
  return kTable;
}

const std::vector<std::string> kCode = {".h", ".cpp", ".cu", ".cuh", ".inc"};

// The rules' breaches in one file, as "path:line: …".
std::vector<std::string> breaches(const SourceFile& file) {
  static const std::regex kLayerOf(R"(^lockstep/(\w+)/)");
  // Foreign headers that one kind of file only may see.
  static const std::vector<std::pair<std::regex, std::regex>> kReserved = {
      {std::regex("^(oneapi/)?dnnl"), std::regex("onednn")},
      {std::regex("^mpi\\.h"), std::regex("mpi")},
      {std::regex("^(cuda|cublas|cudnn|nccl)"), std::regex("^tests/vgpu/|_cuda\\.|\\.cuh?$|nccl")},
      {std::regex("^CLI/"), std::regex("^apps/|^bench/")},
      {std::regex("^(gtest|gmock)/"), std::regex("^tests/")},
      {std::regex("^benchmark/"), std::regex("^bench/")},
  };
  std::vector<std::string> found;
  std::smatch layer;
  const bool in_library = std::regex_search(file.path, layer, kLayerOf);
  const std::string from = in_library ? layer[1].str() : "";
  for (const Include& include : includes_of(file.text)) {
    const auto report = [&](const std::string& what) {
      found.push_back(file.path + ":" + std::to_string(include.line) + ": includes " +
                      include.target + ": " + what);
    };
    for (const auto& [header, allowed] : kReserved)
      if (!include.quoted && std::regex_search(include.target, header) &&
          !std::regex_search(file.path, allowed))
        report("not for this file");
    std::smatch target;
    const bool library_header = std::regex_search(include.target, target, kLayerOf);
    if (!in_library) continue;
    if (library_header) {
      const auto row = may_include().find(from);
      if (row == may_include().end())
        report("the folder is not in the table");
      else if (!row->second.count(target[1]))
        report(from + " may not include " + target[1].str());
    } else if (include.quoted) {
      report("library headers are included as \"lockstep/<layer>/…\"");
    }
    if (include.quoted != library_header) report("quotes are for the library's own headers");
  }
  return found;
}

TEST(IncludeLaw, HoldsInEveryFile) {
  std::size_t files = 0;
  for (const char* folder : {"lockstep", "apps", "bench", "tests"})
    for (const SourceFile& file : sources_below(folder, kCode)) {
      ++files;
      for (const std::string& breach : breaches(file)) ADD_FAILURE() << breach;
    }
  EXPECT_GT(files, 100u) << "the source tree was not found";
}

TEST(IncludeLaw, FindsBreaches) {
  const auto count = [](const std::string& path, const std::string& text) {
    return breaches({path, text}).size();
  };
  EXPECT_EQ(count("lockstep/core/a.h", "#include \"lockstep/core/b.h\"\n#include <vector>\n"), 0u);
  EXPECT_EQ(count("lockstep/core/a.h", "#include \"lockstep/nn/b.h\"\n"), 1u);
  EXPECT_EQ(count("lockstep/dist/a.cpp", "#include \"lockstep/optim/sgd.h\"\n"), 1u);
  EXPECT_EQ(count("lockstep/optim/a.cpp", "  #  include \"lockstep/dist/ddp.h\"\n"), 1u);
  EXPECT_EQ(count("lockstep/data/a.cpp", "#include \"lockstep/autograd/variable.h\"\n"), 1u);
  EXPECT_GE(count("lockstep/train/a.cpp", "#include \"support/expect_close.h\"\n"), 1u);
  EXPECT_EQ(count("lockstep/kernels/a_cpu.cpp", "#include <dnnl.hpp>\n"), 1u);
  EXPECT_EQ(count("lockstep/kernels/a_onednn.cpp", "#include <dnnl.hpp>\n"), 0u);
  EXPECT_EQ(count("lockstep/attic/a.cpp", "#include \"lockstep/core/a.h\"\n"), 1u);
}

}  // namespace
}  // namespace lockstep::testing
