// An array of zeros whose pages are taken from the system only as they are touched: what is known
// of a large buffer costs little until it is used.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <utility>

namespace vgpu {

// T must be fine as all bytes zero, and need no destructor.
template <class T>
class ZeroedArray {
 public:
  ZeroedArray() = default;
  explicit ZeroedArray(std::size_t n) : n_(n) {
    if (n == 0) return;
    void* const data = mmap(nullptr, n * sizeof(T), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<T*>(data);
  }
  ~ZeroedArray() {
    if (data_ != nullptr) munmap(data_, n_ * sizeof(T));
  }
  ZeroedArray(ZeroedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), n_(std::exchange(other.n_, 0)) {}
  ZeroedArray& operator=(ZeroedArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(n_, other.n_);
    return *this;
  }

  bool empty() const { return n_ == 0; }
  std::size_t size() const { return n_; }
  T* begin() { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  std::size_t n_ = 0;
};

}  // namespace vgpu
