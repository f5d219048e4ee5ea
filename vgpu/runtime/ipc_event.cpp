#include "vgpu/runtime/ipc_event.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

namespace vgpu {

std::shared_ptr<IpcEvent> IpcEvent::map(int file) {
  if (file < 0) return nullptr;
  void* const page = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) {
    close(file);
    return nullptr;
  }
  return std::shared_ptr<IpcEvent>(new IpcEvent(file, static_cast<Page*>(page)));
}

std::shared_ptr<IpcEvent> IpcEvent::create() {
  const int file = memfd_create("vgpu-event", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, sizeof(Page)) != 0) return nullptr;
  return map(file);
}

std::shared_ptr<IpcEvent> IpcEvent::open(int process, int file) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
  return map(::open(path.c_str(), O_RDWR | O_CLOEXEC));
}

IpcEvent::~IpcEvent() {
  munmap(page_, sizeof(Page));
  close(file_);
}

std::uint64_t IpcEvent::record() {
  page_->process = getpid();
  return ++page_->recorded;
}

void IpcEvent::set(std::uint64_t number) {
  std::uint64_t done = page_->done;
  while (done < number && !page_->done.compare_exchange_weak(done, number)) {
  }
}

std::uint64_t IpcEvent::recorded() const { return page_->recorded; }

bool IpcEvent::is_set(std::uint64_t number) const { return page_->done >= number; }

void IpcEvent::wait(std::uint64_t number) const {
  while (!is_set(number)) {
    if (kill(page_->process, 0) != 0 && errno == ESRCH) return;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace vgpu
