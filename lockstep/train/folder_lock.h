// One run at a time in a folder.
#pragma once

#include <string>

namespace lockstep::train {

// Holds "<folder>/.lock", which names the process, from construction to destruction; the system
// lets go of it when the process dies, however that happens. On file systems without locks it
// holds nothing.
class FolderLock {
 public:
  // Throws Error naming folder and process if another run holds it.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace lockstep::train
