#ifndef TUG_CLI_HUGE_ARRAY_H_
#define TUG_CLI_HUGE_ARRAY_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>

namespace tug {

// `size` zeros in huge pages where the kernel gives them, already in memory: so that a measurement
// sees neither page faults nor (much of) the page table. Owner; throws std::bad_alloc.
template <typename T>
class HugeArray {
 public:
  static_assert(std::is_trivial_v<T>);

  explicit HugeArray(size_t size) : size_(size) {
    // What mmap gives need not start at a huge page: one more is asked for.
    mapped_bytes_ = (size * sizeof(T) + 2 * kPageBytes - 1) / kPageBytes * kPageBytes;
    void* mapped =
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    mapped_ = static_cast<std::byte*>(mapped);
    const auto address = reinterpret_cast<uintptr_t>(mapped_);
    data_ = reinterpret_cast<T*>(mapped_ + (kPageBytes - address % kPageBytes) % kPageBytes);
    madvise(mapped_, mapped_bytes_, MADV_HUGEPAGE);  // if refused: small pages
    for (size_t i = 0; i < size; ++i) data_[i] = T{};
  }
  ~HugeArray() { munmap(mapped_, mapped_bytes_); }
  HugeArray(const HugeArray&) = delete;
  HugeArray& operator=(const HugeArray&) = delete;

  std::span<T> span() const { return {data_, size_}; }
  T* data() const { return data_; }

 private:
  static constexpr size_t kPageBytes = size_t{2} << 20;

  size_t size_;
  size_t mapped_bytes_;
  std::byte* mapped_;
  T* data_;
};

}  // namespace tug

#endif  // TUG_CLI_HUGE_ARRAY_H_
