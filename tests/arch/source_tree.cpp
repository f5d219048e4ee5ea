#include "arch/source_tree.h"

#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace lockstep::testing {

namespace fs = std::filesystem;

fs::path project_root() { return LOCKSTEP_SOURCE_DIR; }

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("can't read " + path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<SourceFile> sources_below(const std::string& folder,
                                      const std::vector<std::string>& extensions) {
  std::vector<SourceFile> files;
  const fs::path root = project_root() / folder;
  if (!fs::exists(root)) return files;
  for (fs::recursive_directory_iterator it(root), end; it != end; ++it) {
    if (it->is_directory()) {
      if (it->path().filename() == "build") it.disable_recursion_pending();
      continue;
    }
    if (std::find(extensions.begin(), extensions.end(), it->path().extension()) == extensions.end())
      continue;
    files.push_back(
        {fs::relative(it->path(), project_root()).generic_string(), read_file(it->path())});
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::string without_comments_and_strings(const std::string& text) {
  std::string out = text;
  enum { kCode, kLineComment, kBlockComment, kString, kChar, kRaw } state = kCode;
  std::string raw_end;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    const auto blank = [&](std::size_t at) {
      if (out[at] != '\n') out[at] = ' ';
    };
    switch (state) {
      case kCode:
        if (c == '/' && (next == '/' || next == '*')) {
          state = next == '/' ? kLineComment : kBlockComment;
          blank(i);
          blank(++i);
        } else if (c == 'R' && next == '"' && (i == 0 || !std::isalnum(text[i - 1]))) {
          const std::size_t open = text.find('(', i);
          if (open == std::string::npos) break;
          raw_end = ")" + text.substr(i + 2, open - i - 2) + "\"";
          i = open;
          state = kRaw;
        } else if (c == '"') {
          state = kString;
        } else if (c == '\'' && !(i > 0 && std::isalnum(text[i - 1]))) {  // not 1'000
          state = kChar;
        }
        break;
      case kLineComment:
        if (c == '\n')
          state = kCode;
        else
          blank(i);
        break;
      case kBlockComment:
        blank(i);
        if (c == '*' && next == '/') {
          blank(++i);
          state = kCode;
        }
        break;
      case kRaw:
        if (text.compare(i, raw_end.size(), raw_end) == 0) {
          i += raw_end.size() - 1;
          state = kCode;
        } else {
          blank(i);
        }
        break;
      case kString:
      case kChar:
        if (c == '\\') {
          blank(i);
          blank(++i);
        } else if (c == (state == kString ? '"' : '\'')) {
          state = kCode;
        } else {
          blank(i);
        }
        break;
    }
  }
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string leading_comment(const std::string& text) {
  std::string comment;
  for (const std::string& line : lines_of(text)) {
    if (line.rfind("//", 0) != 0) break;
    comment += line + "\n";
  }
  return comment;
}

std::vector<Include> includes_of(const std::string& text) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::vector<Include> found;
  int number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    std::smatch match;
    if (std::regex_search(line, match, kInclude))
      found.push_back({match[2], match[1] == "\"", number});
  }
  return found;
}

CommandResult run_command(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (!pipe) throw std::runtime_error("can't run " + command);
  std::string output;
  char buffer[65536];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    output.append(buffer, n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, output};
}

std::string shell_quoted(const std::string& word) {
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "lockstep_arch_XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("can't make a folder like " + name);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path ScratchFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
  return path_ / name;
}

}  // namespace lockstep::testing
