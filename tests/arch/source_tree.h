// The project's own source files, as text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::testing {

struct SourceFile {
  std::string path;  // relative to the project's root, with '/'
  std::string text;
};

std::filesystem::path project_root();
// Files below one folder of the root whose extension is among these (".h"), in order of path.
// Build folders are left out.
std::vector<SourceFile> sources_below(const std::string& folder,
                                      const std::vector<std::string>& extensions);
std::string read_file(const std::filesystem::path& path);

// Same lines, with blanks for comments and for the contents of string and character literals.
std::string without_comments_and_strings(const std::string& text);
std::vector<std::string> lines_of(const std::string& text);
// The comment that a file begins with.
std::string leading_comment(const std::string& text);

struct Include {
  std::string target;
  bool quoted;
  int line;
};
std::vector<Include> includes_of(const std::string& text);

struct CommandResult {
  int status;
  std::string output;  // stdout and stderr
};
CommandResult run_command(const std::string& command);
std::string shell_quoted(const std::string& word);

// A folder of its own for one test, removed with its contents.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep::testing
