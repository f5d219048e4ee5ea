// The library is a guest in somebody's process: it never ends it, prints, reads the environment or
// takes its signals.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "arch/source_tree.h"

namespace lockstep::testing {
namespace {

// Where the library may do what is forbidden elsewhere.
bool is_exempt(const std::string& path, const std::string& word) {
  // A child between fork and exec has no caller to return to and no program whose signals to mind.
  static const std::regex kChild("^lockstep/dist/launch/child_process\\.cpp$");
  static const std::regex kEnvironment("^lockstep/dist/environment\\.cpp$");
  static const std::map<std::string, std::regex> kExempt = {{"getenv", kEnvironment},
                                                            {"secure_getenv", kEnvironment},
                                                            {"_exit", kChild},
                                                            {"signal", kChild}};
  const auto row = kExempt.find(word);
  return row != kExempt.end() && std::regex_search(path, row->second);
}

// Calls of the C library and std; methods and declarations of the same name are others' business.
std::vector<std::string> breaches(const SourceFile& file) {
  static const std::regex kCall(
      R"((^|[^\w.>:~]|std::|[^\w]::|^::)(exit|_exit|_Exit|quick_exit|abort(?=\s*\(\s*\))|terminate(?=\s*\(\s*\))|)"
      R"(printf|fprintf|vprintf|puts|fputs|putchar|perror|)"
      R"(getenv|secure_getenv|setenv|putenv|unsetenv|signal|sigaction|set_terminate|atexit)\s*\()");
  static const std::regex kStream(R"(std::(cout|cerr|clog|wcout|wcerr)\b|\b(stdout|stderr)\b)");
  static const std::regex kDeclaration(R"(\b(void|int|bool|auto|char\s*\*)\s+$)");
  std::vector<std::string> found;
  int number = 0;
  for (const std::string& line : lines_of(without_comments_and_strings(file.text))) {
    ++number;
    const auto report = [&](const std::string& word) {
      if (!is_exempt(file.path, word))
        found.push_back(file.path + ":" + std::to_string(number) + ": " + word);
    };
    for (std::sregex_iterator it(line.begin(), line.end(), kCall), end; it != end; ++it) {
      const std::string before = line.substr(0, static_cast<std::size_t>(it->position(2)));
      if (!std::regex_search(before, kDeclaration)) report((*it)[2]);
    }
    for (std::sregex_iterator it(line.begin(), line.end(), kStream), end; it != end; ++it)
      report(it->str());
  }
  return found;
}

TEST(LibraryManners, NoExitPrintEnvironmentOrSignalsInTheSources) {
  const auto files = sources_below("lockstep", {".h", ".cpp", ".cu", ".cuh", ".inc"});
  EXPECT_GT(files.size(), 100u) << "the source tree was not found";
  for (const SourceFile& file : files)
    for (const std::string& breach : breaches(file)) ADD_FAILURE() << breach;
}

TEST(LibraryManners, FindsBreaches) {
  const auto count = [](const std::string& text) {
    return breaches({"lockstep/core/a.cpp", text}).size();
  };
  EXPECT_EQ(count("  std::exit(1);\n  ::abort();\n  exit (2);\n"), 3u);
  EXPECT_EQ(count("std::cerr << 1; std::printf(\"x\");\n"), 2u);
  EXPECT_EQ(count("const char* v = std::getenv(\"A\");\n"), 1u);
  EXPECT_EQ(count("::signal(SIGINT, f); sigaction(1, &a, nullptr);\n"), 2u);
  EXPECT_EQ(count("// exit(1)\n/* abort() */ f(\"exit(1)\"); g(R\"(abort())\");\n"), 0u);
  EXPECT_EQ(
      count(
          "group.abort(); group->abort(); abort(why); void abort() override; snprintf(b, n, f);\n"),
      0u);
  EXPECT_EQ(breaches({"lockstep/dist/environment.cpp", "return std::getenv(name);"}).size(), 0u);
}

// What the sources hide behind macros and other libraries' inline functions shows in the objects.
TEST(LibraryManners, ObjectsDoNotReferToThem) {
  const std::string archive = LOCKSTEP_ARCHIVE;
  if (archive.size() < 2 || archive.compare(archive.size() - 2, 2, ".a") != 0)
    GTEST_SKIP() << "the library is not a static archive";
  const CommandResult nm =
      run_command("nm --undefined-only --print-file-name -- " + shell_quoted(archive));
  ASSERT_EQ(nm.status, 0) << nm.output;
  static const std::regex kEntry(R"(:([^:]+\.o):\s+U\s+(\S+))");
  static const std::set<std::string> kForbidden = {
      "exit",   "_exit",  "quick_exit", "printf", "puts",      "putchar",  "perror",
      "getenv", "signal", "sigaction",  "setenv", "_ZSt4cout", "_ZSt4cerr"};
  std::size_t entries = 0;
  for (const std::string& line : lines_of(nm.output)) {
    std::smatch match;
    if (!std::regex_search(line, match, kEntry)) continue;
    ++entries;
    std::string symbol = match[2];
    symbol = symbol.substr(0, symbol.find('@'));
    if (!kForbidden.count(symbol)) continue;
    const std::string object = match[1];
    const std::string source = object.substr(0, object.size() - 2);  // "<name>.cpp.o"
    const bool allowed = is_exempt("lockstep/dist/" + source, symbol) ||
                         is_exempt("lockstep/dist/launch/" + source, symbol);
    EXPECT_TRUE(allowed) << object << " refers to " << symbol;
  }
  EXPECT_GT(entries, 100u) << nm.output.substr(0, 400);
}

}  // namespace
}  // namespace lockstep::testing
