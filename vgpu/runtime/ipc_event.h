// The state of an event that other processes open: a page of memory that they share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace vgpu {

class IpcEvent {
 public:
  static std::shared_ptr<IpcEvent> create();
  // Of another process, by its file; null if it is no longer there.
  static std::shared_ptr<IpcEvent> open(int process, int file);
  ~IpcEvent();
  IpcEvent(const IpcEvent&) = delete;
  IpcEvent& operator=(const IpcEvent&) = delete;

  std::uint64_t record();  // the number of a new record, which is set later
  void set(std::uint64_t number);
  std::uint64_t recorded() const;
  bool is_set(std::uint64_t number) const;
  // Also returns when the process that recorded is gone.
  void wait(std::uint64_t number) const;
  int file() const { return file_; }

 private:
  struct Page {
    std::atomic<std::uint64_t> recorded, done;
    std::atomic<int> process;  // that recorded last
  };
  IpcEvent(int file, Page* page) : file_(file), page_(page) {}
  static std::shared_ptr<IpcEvent> map(int file);
  int file_;
  Page* page_;
};

}  // namespace vgpu
