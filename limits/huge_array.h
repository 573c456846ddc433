// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LIMITS_HUGE_ARRAY_H_
#define TUG_LIMITS_HUGE_ARRAY_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>

namespace tug {

// `size` zeros in huge pages if the kernel provides them, already touched: measurements then see no
// page faults and little of the page table. Owns the memory; throws std::bad_alloc.
template <typename T>
class HugeArray {
 public:
  static_assert(std::is_trivial_v<T>);

  explicit HugeArray(size_t size) : size_(size) {
    // mmap's result need not start at a huge page, so map one more. Use an odd number of pages:
    // arrays whose distance is a multiple of a large power of two compete for the same memory banks
    // (at 100M floats `a += b` takes 1.5 times as long, AdamW 1.7 times).
    const size_t pages = (size * sizeof(T) + 2 * kPageBytes - 1) / kPageBytes;
    mapped_bytes_ = (pages | 1) * kPageBytes;
    void* mapped =
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    mapped_ = static_cast<std::byte*>(mapped);
    const auto address = reinterpret_cast<uintptr_t>(mapped_);
    data_ = reinterpret_cast<T*>(mapped_ + (kPageBytes - address % kPageBytes) % kPageBytes);
    madvise(mapped_, mapped_bytes_, MADV_HUGEPAGE);  // small pages if refused
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

#endif  // TUG_LIMITS_HUGE_ARRAY_H_
