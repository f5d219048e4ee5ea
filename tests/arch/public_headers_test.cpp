// What an embedder's compiler sees: every header compiles alone; the public ones bring no macros
// but LOCKSTEP_… and no headers of the libraries behind them. (A logging macro in a public header
// clashed with the application's: pytorch/pytorch#31822.)
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <thread>

#include "arch/source_tree.h"

namespace lockstep::testing {
namespace {

constexpr const char* kNeedsEigen = "lockstep/core/half.h";  // as docs/embedding.md says

// The first words of the lines of cmake/internal_headers.txt.
std::set<std::string> listed_as_internal() {
  std::set<std::string> listed;
  for (const std::string& line : lines_of(read_file(project_root() / "cmake/internal_headers.txt")))
    if (line.rfind("lockstep/", 0) == 0) listed.insert(line.substr(0, line.find(' ')));
  return listed;
}

// By the rule that cmake/installed_headers.cmake follows too.
bool is_installed(const SourceFile& header) {
  static const std::set<std::string> kListed = listed_as_internal();
  static const std::regex kInternal("\\b[Ii]nternal\\b");
  return !kListed.count(header.path) && !std::regex_search(leading_comment(header.text), kInternal);
}

bool is_public(const SourceFile& header) {
  return header.path != kNeedsEigen && is_installed(header);
}

// With nothing on the include path but the library: what an embedder has.
std::string compiler(const std::string& flags) {
  std::string command = shell_quoted(LOCKSTEP_CXX) + " -std=c++20 -x c++ " + flags;
  for (const std::string& folder :
       {std::string(LOCKSTEP_SOURCE_DIR), std::string(LOCKSTEP_BINARY_DIR) + "/generated"})
    command += " -I" + shell_quoted(folder);
  return command + " ";
}

std::string compiler_with_eigen(const std::string& flags) {
  return compiler(flags) + "-isystem " + shell_quoted(LOCKSTEP_EIGEN_DIR) + " ";
}

// One translation unit with every public header between two texts.
std::string with_public_headers(const std::string& before, const std::string& after) {
  std::string text = before;
  for (const SourceFile& header : sources_below("lockstep", {".h"}))
    if (is_public(header)) text += "#include \"" + header.path + "\"\n";
  return text + after;
}

// The text of a header and of all headers of the library that it includes.
std::string closure(const std::string& path, const std::map<std::string, std::string>& texts,
                    std::set<std::string>* seen) {
  const auto found = texts.find(path);
  if (found == texts.end() || !seen->insert(path).second) return "";
  std::string text = found->second;
  for (const Include& include : includes_of(found->second))
    if (include.quoted) text += closure(include.target, texts, seen);
  return text;
}

// Headers that a source file includes first, and so compiled with nothing before them.
std::set<std::string> proved_by_the_build() {
  std::set<std::string> headers;
  for (const SourceFile& source : sources_below("lockstep", {".cpp"})) {
    const std::vector<Include> includes = includes_of(source.text);
    if (!includes.empty() && includes[0].quoted) headers.insert(includes[0].target);
  }
  return headers;
}

// The others get a compiler run each; what has passed once is remembered in the build folder by the
// texts it depends on.
TEST(PublicHeaders, EveryHeaderCompilesAlone) {
  const std::vector<SourceFile> headers = sources_below("lockstep", {".h"});
  ASSERT_GT(headers.size(), 50u) << "the source tree was not found";
  std::map<std::string, std::string> texts;
  for (const SourceFile& header : headers) texts[header.path] = header.text;
  const std::filesystem::path passed_before = LOCKSTEP_BINARY_DIR "/headers_that_compile_alone";
  std::filesystem::create_directories(passed_before);
  const std::string command = compiler_with_eigen("-fsyntax-only -Wall -Wextra -Wno-psabi -Werror");
  const std::set<std::string> proved = proved_by_the_build();
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::vector<std::string> failures;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < headers.size();) {
      if (proved.count(headers[i].path)) continue;
      std::set<std::string> seen;
      const std::size_t key =
          std::hash<std::string>{}(command + closure(headers[i].path, texts, &seen));
      const std::filesystem::path stamp = passed_before / std::to_string(key);
      if (std::filesystem::exists(stamp)) continue;
      const CommandResult result = run_command(
          "printf '#include \"%s\"\\n' " + shell_quoted(headers[i].path) + " | " + command + "-");
      if (result.status == 0) {
        std::ofstream{stamp};
        continue;
      }
      const std::lock_guard lock(mutex);
      failures.push_back(headers[i].path + ":\n" + result.output.substr(0, 2000));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
    threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) ADD_FAILURE() << failure;
}

// What is installed has to do without what is not: the headers are copied to a folder of their own
// and compiled there, each on its own, without Eigen, fmt or anything else on the include path.
TEST(PublicHeaders, TheInstalledOnesCompileFromTheInstalledTreeAlone) {
  const ScratchFolder scratch;
  std::map<std::string, std::string> texts;
  for (const SourceFile& header : sources_below("lockstep", {".h"}))
    if (is_installed(header)) texts[header.path] = header.text;
  for (const auto& [path, text] : texts) {
    std::set<std::string> seen;
    closure(path, texts, &seen);
    for (const std::string& below : seen)
      for (const Include& include : includes_of(texts.at(below)))
        EXPECT_TRUE(!include.quoted || texts.count(include.target) ||
                    include.target == "lockstep/core/config.h")
            << path << " needs " << include.target << ", which is not installed, through " << below;
    std::filesystem::create_directories((scratch.path() / path).parent_path());
    scratch.write(path, text);
  }
  // They compile alone (see above), so together is enough to find what only Eigen's path supplies.
  const auto file = scratch.write("application.cpp", with_public_headers("", "int main() {}\n"));
  const CommandResult result = run_command(
      shell_quoted(LOCKSTEP_CXX) + " -std=c++20 -fsyntax-only -Wall -Wextra -Wno-psabi -Werror -I" +
      shell_quoted(scratch.path().string()) + " -I" +
      shell_quoted(LOCKSTEP_BINARY_DIR "/generated") + " " + shell_quoted(file.string()));
  EXPECT_EQ(result.status, 0) << result.output.substr(0, 4000);
}

TEST(PublicHeaders, TheListOfInternalOnesIsTrue) {
  std::map<std::string, std::string> texts;
  for (const SourceFile& header : sources_below("lockstep", {".h"}))
    texts[header.path] = header.text;
  for (const std::string& path : listed_as_internal()) {
    ASSERT_TRUE(texts.count(path)) << path << " is listed but does not exist";
    static const std::regex kInternal("\\b[Ii]nternal\\b");
    EXPECT_FALSE(std::regex_search(leading_comment(texts.at(path)), kInternal))
        << path << " is listed and says so itself";
  }
}

TEST(PublicHeaders, TheUmbrellaHasThemAll) {
  // What one includes by name, and why.
  const std::map<std::string, std::string> kByName = {
      {"lockstep/kernels/", "on Tensors, below autograd; their names are those of the operations"},
      {"lockstep/dist/launch/", "for launchers, not for what they start"},
      {kNeedsEigen, "needs Eigen on the include path"}};
  std::map<std::string, std::string> texts;
  for (const SourceFile& header : sources_below("lockstep", {".h"}))
    texts[header.path] = header.text;
  std::set<std::string> seen;
  closure("lockstep/lockstep.h", texts, &seen);
  for (const auto& [path, text] : texts) {
    const bool by_name = std::any_of(kByName.begin(), kByName.end(), [&](const auto& entry) {
      return path.rfind(entry.first, 0) == 0;
    });
    if (!is_installed({path, text}) || by_name) continue;
    EXPECT_TRUE(seen.count(path)) << "lockstep/lockstep.h lacks " << path;
  }
}

TEST(PublicHeaders, LiveWithTheApplicationsMacros) {
  const ScratchFolder scratch;
  const auto file = scratch.write(
      "application.cpp",
      with_public_headers("#define LOG(x) 7\n#define CHECK(x) 8\n#define I 5\n",
                          "static_assert(LOG(1) + CHECK(2) + I == 20);\nint main() {}\n"));
  const CommandResult result = run_command(
      compiler("-fsyntax-only -Wall -Wextra -Wno-psabi -Werror") + shell_quoted(file.string()));
  EXPECT_EQ(result.status, 0) << result.output.substr(0, 4000);
}

TEST(PublicHeaders, BringNoForeignHeaders) {
  static const std::regex kForeign(
      R"(^(fmt|spdlog|CLI|nlohmann|oneapi|Eigen|unsupported|boost)/|^(dnnl|mpi|zlib|nccl|cuda|omp)\w*\.)");
  std::map<std::string, std::string> texts;
  for (const SourceFile& header : sources_below("lockstep", {".h"}))
    texts[header.path] = header.text;
  for (const auto& [path, text] : texts) {
    if (!is_public({path, text})) continue;
    std::set<std::string> seen;
    closure(path, texts, &seen);
    for (const std::string& below : seen)
      for (const Include& include : includes_of(texts.at(below)))
        EXPECT_FALSE(!include.quoted && std::regex_search(include.target, kForeign))
            << path << " brings <" << include.target << "> through " << below;
  }
}

TEST(PublicHeaders, BringNoMacros) {
  const ScratchFolder scratch;
  const auto file = scratch.write("application.cpp", with_public_headers("", ""));
  const CommandResult result = run_command(compiler("-E -dD") + shell_quoted(file.string()));
  ASSERT_EQ(result.status, 0) << result.output.substr(0, 4000);
  static const std::regex kMarker(R"(^# \d+ "([^"]*)\")");
  static const std::regex kDefine(R"(^#define (\w+))");
  const std::set<std::string> unwanted = {"LOG", "CHECK", "ASSERT", "UNUSED", "I"};
  std::string current;
  std::size_t own_files = 0;
  for (const std::string& line : lines_of(result.output)) {
    std::smatch match;
    if (line.rfind("# ", 0) == 0 && std::regex_search(line, match, kMarker)) {
      current = match[1];
      own_files += current.find("/lockstep/") != std::string::npos;
    } else if (line.rfind("#define ", 0) == 0 && std::regex_search(line, match, kDefine)) {
      const std::string name = match[1];
      EXPECT_FALSE(unwanted.count(name)) << name << " is defined by " << current;
      if (current.rfind(LOCKSTEP_SOURCE_DIR "/lockstep/", 0) == 0 ||
          current.rfind(LOCKSTEP_BINARY_DIR "/generated/", 0) == 0) {
        EXPECT_EQ(name.rfind("LOCKSTEP_", 0), 0u) << name << " is defined by " << current;
      }
    }
  }
  EXPECT_GT(own_files, 30u);
}

}  // namespace
}  // namespace lockstep::testing
