//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which bytes of a block compiled code may access, where the process runs under
// AddressSanitizer: blocks are larger than what was asked for, and are kept.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_RUNTIME_GUARDS_H
#define TILEWRIGHT_LIB_RUNTIME_GUARDS_H

#include <cstddef>
#include <cstdint>

extern "C" {
// Of sanitizer/asan_interface.h; null in other processes.
__attribute__((weak)) void __asan_poison_memory_region(void const volatile *,
                                                       size_t);
__attribute__((weak)) void __asan_unpoison_memory_region(void const volatile *,
                                                         size_t);
}

namespace tilewright::runtime {

/// The first `bytes` of a block of `capacity` bytes may be accessed, no others.
inline void guard(void *block, int64_t bytes, int64_t capacity) {
  if (!__asan_poison_memory_region || !__asan_unpoison_memory_region)
    return;
  __asan_poison_memory_region(block, capacity);
  __asan_unpoison_memory_region(block, bytes);
}

} // namespace tilewright::runtime

#endif // TILEWRIGHT_LIB_RUNTIME_GUARDS_H
