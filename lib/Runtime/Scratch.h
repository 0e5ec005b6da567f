//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Local memory of kernels: one growing, 64-byte aligned block per thread, in
// huge pages where that pays: packed operands then need no page walks.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_RUNTIME_SCRATCH_H
#define TILEWRIGHT_LIB_RUNTIME_SCRATCH_H

#include "Guards.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

namespace tilewright::runtime {

class Scratch {
public:
  Scratch() = default;
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  ~Scratch() { std::free(block); }

  /// At least `bytes` bytes, valid until the next call. Contents are undefined.
  char *get(int64_t bytes) {
    if (bytes > capacity)
      grow(bytes);
    guard(block, bytes, capacity);
    return block;
  }

private:
  void grow(int64_t bytes) {
    constexpr int64_t small = 4096, huge = 2 << 20;
    const int64_t page = bytes > huge / 8 ? huge : small;
    int64_t size = (bytes + page - 1) / page * page;
    std::free(block);
    block = static_cast<char *>(std::aligned_alloc(page, size));
#ifdef MADV_HUGEPAGE
    if (block && page == huge)
      madvise(block, size, MADV_HUGEPAGE); // small ones do, too
#endif
    if (!block) {
      // Compiled code has no way to report an error, and a kernel without its
      // local memory would corrupt the process.
      std::fprintf(stderr, "libtwrt: out of memory (%lld bytes of scratch)\n",
                   static_cast<long long>(size));
      std::abort();
    }
    capacity = size;
  }

  char *block = nullptr;
  int64_t capacity = 0;
};

/// The calling thread's scratch.
inline Scratch &threadScratch() {
  thread_local Scratch scratch;
  return scratch;
}

} // namespace tilewright::runtime

#endif // TILEWRIGHT_LIB_RUNTIME_SCRATCH_H
