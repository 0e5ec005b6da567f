//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory whose size a call learns while it runs. What the call neither frees
// nor hands over is freed when it ends, also when it fails.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_RUNTIME_HEAP_H
#define TILEWRIGHT_LIB_RUNTIME_HEAP_H

#include <cstdint>
#include <cstdlib>
#include <new>
#include <unordered_set>

namespace tilewright::runtime {

class Heap {
public:
  Heap() = default;
  Heap(const Heap &) = delete;
  Heap &operator=(const Heap &) = delete;
  ~Heap() {
    for (void *block : blocks)
      std::free(block);
  }

  /// At least `bytes` bytes, 64-byte aligned; null where there is no memory.
  void *allocate(int64_t bytes) {
    constexpr int64_t line = 64;
    if (bytes < 0 || bytes > INT64_MAX - line)
      return nullptr;
    void *block = std::aligned_alloc(line, bytes / line * line + line);
    if (!block)
      return nullptr;
    try {
      blocks.insert(block);
    } catch (const std::bad_alloc &) {
      std::free(block);
      return nullptr;
    }
    return block;
  }

  /// Forgets a block, which then belongs to the caller. False where it is no
  /// live block of this heap.
  bool take(void *block) { return blocks.erase(block) != 0; }

private:
  std::unordered_set<void *> blocks;
};

} // namespace tilewright::runtime

#endif // TILEWRIGHT_LIB_RUNTIME_HEAP_H
