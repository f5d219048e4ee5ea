#include "lockstep/core/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "lockstep/core/check.h"

namespace lockstep {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail(const std::string& path, std::string_view step, int error) {
  throw Error(fmt::format("cannot write \"{}\": {}: {}", path, step, reason(error)));
}

template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string resolve_links(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  const std::unique_ptr<char, void (*)(void*)> target(::realpath(path.c_str(), nullptr), ::free);
  if (!target) fail(path, "following the symbolic link", errno);
  return target.get();
}

constexpr std::string_view kSuffix = ".tmp";
constexpr std::size_t kHexDigits = 16;

std::string temp_prefix(const std::string& path) { return fmt::format(".{}.", file_name(path)); }

bool is_temp_name(std::string_view name, std::string_view prefix) {
  if (name.size() != prefix.size() + kHexDigits + kSuffix.size()) return false;
  const std::string_view digits = name.substr(prefix.size(), kHexDigits);
  return name.starts_with(prefix) && name.ends_with(kSuffix) &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Removes what killed writers of `path` left behind: hidden files that nobody holds locked.
void remove_stale_temps(const std::string& path, const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
  if (!dir) return;  // a folder that can be written but not listed: nothing to find
  const std::string prefix = temp_prefix(path);
  while (const dirent* entry = ::readdir(dir.get())) {
    if (!is_temp_name(entry->d_name, prefix)) continue;
    const int fd = retry([&] {
      return ::openat(::dirfd(dir.get()), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    });
    if (fd < 0) continue;
    if (retry([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) == 0)
      ::unlinkat(::dirfd(dir.get()), entry->d_name, 0);
    ::close(fd);
  }
}

std::uint64_t random_bits(const std::string& path) {
  std::uint64_t bits = 0;
  if (retry([&] { return ::getrandom(&bits, sizeof bits, 0); }) != sizeof bits)
    fail(path, "drawing a temporary name", errno);
  return bits;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(resolve_links(path)) {
  LOCKSTEP_CHECK(!file_name(path_).empty(), "cannot write \"{}\": not the name of a file", path);
  folder_ = folder_of(path_);
  struct stat old;
  const bool exists = ::stat(path_.c_str(), &old) == 0;
  LOCKSTEP_CHECK(!exists || S_ISREG(old.st_mode), "cannot write \"{}\": it is not a regular file",
                 path_);
  remove_stale_temps(path_, folder_);
  for (;;) {
    temp_path_ =
        fmt::format("{}/{}{:016x}{}", folder_, temp_prefix(path_), random_bits(path_), kSuffix);
    fd_ = retry(
        [&] { return ::open(temp_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    if (fd_ < 0 && errno == EEXIST) continue;
    if (fd_ < 0) fail(path_, "creating a temporary file in its folder", errno);
    // Between open and flock another writer may take this file for a stale one and remove it.
    struct stat mine;
    const bool locked = retry([&] { return ::flock(fd_, LOCK_EX | LOCK_NB); }) == 0 ||
                        errno != EWOULDBLOCK;  // file systems without locks
    if (locked && ::fstat(fd_, &mine) == 0 && mine.st_nlink > 0) break;
    ::close(fd_);
    ::unlink(temp_path_.c_str());
  }
  if (exists) (void)::fchmod(fd_, old.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::unlink(temp_path_.c_str());
  ::close(fd_);
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  LOCKSTEP_CHECK(fd_ >= 0, "cannot write \"{}\": it is already committed", path_);
  constexpr std::size_t kMost = std::size_t{1} << 30;  // the system takes at most 2 GiB a call
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = retry([&] { return ::write(fd_, next, std::min(bytes, kMost)); });
    if (n < 0) fail(path_, fmt::format("writing at byte {}", written_), errno);
    next += n;
    bytes -= static_cast<std::size_t>(n);
    written_ += static_cast<std::uint64_t>(n);
  }
}

void AtomicFile::commit() {
  LOCKSTEP_CHECK(fd_ >= 0, "cannot write \"{}\": it is already committed", path_);
  if (retry([&] { return ::fsync(fd_); }) != 0) fail(path_, "syncing it to disk", errno);
  if (::rename(temp_path_.c_str(), path_.c_str()) != 0)
    fail(path_, "renaming it into place", errno);
  ::close(fd_);
  fd_ = -1;
  const int folder =
      retry([&] { return ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (folder < 0)
    return;  // not readable: the rename has happened, only its sync is left to the system
  const int synced = retry([&] { return ::fsync(folder); });
  const int error = errno;
  ::close(folder);
  // Some file systems cannot sync a folder and say so; anything else is a failed disk.
  if (synced != 0 && error != EINVAL && error != EROFS) fail(path_, "syncing its folder", error);
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace lockstep
