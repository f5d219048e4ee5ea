// The installed library in somebody else's project.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "dist/run_program.h"
#include "lockstep/core/config.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using dist::Program;
using dist::text_of;

constexpr const char* kFewLines = R"(
#include <cstdio>
#include "lockstep/autograd/ops/matmul.h"
int main() {
  const lockstep::Variable y = lockstep::matmul(lockstep::ones({2, 3}), lockstep::ones({3, 4}));
  std::printf("%g\n", y.data().data<float>()[7]);
}
)";

// The build tree installed to one prefix, which is then moved: whoever looks at the first one
// fails.
class Install : public ::testing::Test {
 protected:
  void SetUp() override {
    if (LOCKSTEP_INSTRUMENTED) GTEST_SKIP() << "a foreign project has no sanitizer's flags";
    first_prefix_ = folder_ / "first";
    prefix_ = folder_ / "moved";
    run({LOCKSTEP_CMAKE, "--install", LOCKSTEP_BINARY_DIR, "--prefix", first_prefix_});
    fs::rename(first_prefix_, prefix_);
  }

  // Output of a program that has to end well.
  std::string run(std::vector<std::string> command, std::vector<std::string> environment = {}) {
    std::string words;
    for (const std::string& word : command) words += word + ' ';
    Program program(std::move(command), std::move(environment));
    EXPECT_EQ(program.wait(300), 0) << words << '\n' << program.out() << program.err();
    return program.out();
  }
  std::string shell(const std::string& line) {
    return run({"sh", "-c", line}, {"PKG_CONFIG_PATH=" + prefix_ + "/lib/pkgconfig"});
  }
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    fs::create_directories(fs::path(path).parent_path());
    write_bytes(path, text);
    return path;
  }
  std::string library_path() const { return "LD_LIBRARY_PATH=" + prefix_ + "/lib"; }
  bool is_static() const { return fs::exists(prefix_ + "/lib/liblockstep.a"); }

  TempFolder folder_;
  std::string first_prefix_, prefix_;
};

TEST_F(Install, NamesNeitherTheBuildNorTheFirstPrefix) {
  int texts = 0;
  for (const auto& entry : fs::recursive_directory_iterator(prefix_)) {
    static const std::regex kText(R"(\.(cmake|pc|h)$)");
    if (!entry.is_regular_file() || !std::regex_search(entry.path().string(), kText)) continue;
    ++texts;
    const std::string text = text_of(entry.path());
    for (const std::string& path :
         {first_prefix_, std::string(LOCKSTEP_BINARY_DIR), std::string(LOCKSTEP_SOURCE_DIR)})
      EXPECT_EQ(text.find(path), std::string::npos) << entry.path() << " names " << path;
  }
  EXPECT_GT(texts, 100);
}

// An installed config that touched a target which was not there: pytorch/pytorch#118862.
TEST_F(Install, TwoFoldersOfAForeignProjectFindIt) {
  const std::string source = fs::path(write("foreign/CMakeLists.txt", R"(
cmake_minimum_required(VERSION 3.25)
project(foreign LANGUAGES CXX)
add_subdirectory(")" LOCKSTEP_SOURCE_DIR R"(/apps/embed_example" one)
add_subdirectory(two)
)"))
                                 .parent_path();
  write("foreign/two/CMakeLists.txt", R"(
find_package(lockstep 0.1 CONFIG REQUIRED)
add_executable(two main.cpp)
target_link_libraries(two PRIVATE lockstep::lockstep)
)");
  write("foreign/two/main.cpp", R"(
#include "lockstep/core/tensor.h"
int main() { return lockstep::ones({2, 3}).numel() == 6 ? 0 : 1; }
)");
  const std::string build = folder_ / "foreign-build";
  run({LOCKSTEP_CMAKE, "-G", LOCKSTEP_GENERATOR, "-DCMAKE_CXX_COMPILER=" LOCKSTEP_CXX, "-S", source,
       "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_PREFIX_PATH=" + prefix_});
  run({LOCKSTEP_CMAKE, "--build", build});
  run({build + "/two/two"});
  const std::string example = build + "/one/embed_example";
  EXPECT_EQ(run({example}).rfind("loss after 500 steps on 1 rank(s): 0.000", 0), 0u);
  if (!fs::exists(prefix_ + "/bin/lockstep-run")) GTEST_SKIP() << "lockstep-run is not built";
  const std::string out = run({prefix_ + "/bin/lockstep-run", "--nproc-per-node", "2", example});
  EXPECT_NE(out.find("loss after 500 steps on 2 rank(s): 0.000"), std::string::npos) << out;
}

TEST_F(Install, AnotherMajorVersionIsRefused) {
  const std::string source = fs::path(write("later/CMakeLists.txt", R"(
cmake_minimum_required(VERSION 3.25)
project(later LANGUAGES CXX)
find_package(lockstep 99 CONFIG REQUIRED)
)"))
                                 .parent_path();
  Program program({LOCKSTEP_CMAKE, "-G", LOCKSTEP_GENERATOR, "-S", source, "-B",
                   folder_ / "later-build", "-DCMAKE_CXX_COMPILER=" LOCKSTEP_CXX,
                   "-DCMAKE_PREFIX_PATH=" + prefix_});
  EXPECT_NE(program.wait(120), 0);
  EXPECT_NE(program.err().find("99"), std::string::npos) << program.err();
}

TEST_F(Install, PkgConfigIsEnoughForAFewLines) {
  const std::string source = write("few.cpp", kFewLines);
  const std::string program = folder_ / "few";
  shell("'" LOCKSTEP_CXX "' -Wall -Wextra -Werror '" + source + "' -o '" + program +
        "' $(pkg-config --cflags --libs lockstep)");
  EXPECT_EQ(run({program}, {library_path()}), "3\n");
}

// A config that included what only the other kind of build installs: pytorch/pytorch#18419. The
// rules of a shared build, with a library linked from the objects that are there already.
TEST_F(Install, ASharedBuildBringsItsDependenciesInside) {
  if (!is_static()) GTEST_SKIP() << "the other tests have installed a shared library";
  const std::string build = folder_ / "shared-build", prefix = folder_ / "shared";
  const auto on_off = [](const char* option, bool on) {
    return std::string("-D") + option + (on ? "=ON" : "=OFF");
  };
  run({LOCKSTEP_CMAKE, "-G", LOCKSTEP_GENERATOR, "-S", LOCKSTEP_SOURCE_DIR, "-B", build,
       "-DCMAKE_CXX_COMPILER=" LOCKSTEP_CXX, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON",
       "-DLOCKSTEP_BUILD_APPS=OFF", "-DLOCKSTEP_BUILD_TESTS=OFF", "-DLOCKSTEP_BUILD_BENCH=OFF",
       on_off("LOCKSTEP_WITH_ONEDNN", kHasOneDnn), on_off("LOCKSTEP_WITH_OPENMP", kHasOpenMp)});
  const std::string name = "liblockstep.so";
  const std::string soname =
      name + "." + std::to_string(kVersionMajor) + "." + std::to_string(kVersionMinor);
  const std::string file = soname + "." + std::to_string(kVersionPatch);
  const std::string folder = build + "/lockstep/";
  shell("'" LOCKSTEP_CXX "' -shared -Wl,-soname," + soname + " -o '" + folder + file +
        "' -Wl,--whole-archive '" + prefix_ + "/lib/liblockstep.a' -Wl,--no-whole-archive " +
        "$(pkg-config --libs-only-l --libs-only-other lockstep | sed 's/-llockstep//')");
  fs::create_symlink(file, folder + soname);
  fs::create_symlink(soname, folder + name);
  run({LOCKSTEP_CMAKE, "--install", build, "--prefix", prefix});
  fs::rename(prefix, prefix + "-moved");
  const std::string consumer = write("shared-consumer/CMakeLists.txt", R"(
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
foreach(package fmt ZLIB OpenMP DNNL)
  set(CMAKE_DISABLE_FIND_PACKAGE_${package} ON)
endforeach()
find_package(lockstep CONFIG REQUIRED)
add_executable(consumer main.cpp)
target_link_libraries(consumer PRIVATE lockstep::lockstep)
)");
  write("shared-consumer/main.cpp", kFewLines);
  const std::string source = fs::path(consumer).parent_path();
  const std::string consumer_build = folder_ / "shared-consumer-build";
  run({LOCKSTEP_CMAKE, "-G", LOCKSTEP_GENERATOR, "-DCMAKE_CXX_COMPILER=" LOCKSTEP_CXX, "-S", source,
       "-B", consumer_build, "-DCMAKE_PREFIX_PATH=" + prefix + "-moved"});
  run({LOCKSTEP_CMAKE, "--build", consumer_build});
  EXPECT_EQ(run({consumer_build + "/consumer"}), "3\n");
}

// Processor time of one run, the shortest of ten.
double cpu_seconds(const std::string& program, const std::string& library_path) {
  double least = 1e9;
  for (int i = 0; i < 10; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::string path = program, library = library_path;
      char* arguments[] = {path.data(), nullptr};
      char* environment[] = {library.data(), nullptr};
      ::execve(path.c_str(), arguments, environment);
      ::_exit(127);
    }
    int status = 0;
    rusage usage{};
    while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    EXPECT_EQ(status, 0);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    least = std::min(least, seconds(usage.ru_utime) + seconds(usage.ru_stime));
  }
  return least;
}

// A program that merely linked the library died at start: microsoft/vcpkg#37141.
TEST_F(Install, LinkingAloneChangesNothing) {
  const std::string empty = write("empty.cpp", "int main() { return 0; }\n");
  const std::string counting = write("counting.cpp", R"(
#include <fstream>
#include <string>
int main() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("Threads:", 0) == 0) return std::stoi(line.substr(8));
  return 0;
}
)");
  // Every object of a static library is taken in, so that none's initialisers are left out.
  const std::string everything = is_static()
                                     ? "-Wl,--no-as-needed -Wl,--whole-archive '" + prefix_ +
                                           "/lib/liblockstep.a' -Wl,--no-whole-archive"
                                     : "-Wl,--no-as-needed";
  const auto build = [&](const std::string& source, const std::string& name) {
    const std::string program = folder_ / name;
    shell("'" LOCKSTEP_CXX "' '" + source + "' -o '" + program + "' " + everything +
          " $(pkg-config --libs lockstep)");
    return program;
  };
  const std::string linked = build(empty, "linked");
  const std::string place = folder_ / "place";
  fs::create_directories(place);
  Program program({"sh", "-c", "cd '" + place + "' && exec '" + linked + "'"},
                  {library_path(), "HOME=" + place, "TMPDIR=" + place});
  EXPECT_EQ(program.wait(), 0);
  EXPECT_EQ(program.out() + program.err(), "");
  EXPECT_TRUE(fs::is_empty(place));

  Program counter({build(counting, "counting")}, {library_path()});
  EXPECT_EQ(counter.wait(), 1) << "threads at the start of main";

  const std::string bare = folder_ / "bare";
  shell("'" LOCKSTEP_CXX "' '" + empty + "' -o '" + bare + "'");
  EXPECT_LT(cpu_seconds(linked, library_path()) - cpu_seconds(bare, library_path()), 0.05);
}

}  // namespace
}  // namespace lockstep::testing
