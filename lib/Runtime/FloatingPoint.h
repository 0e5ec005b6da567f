//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code expects the default floating-point environment: denormals are
// kept, rounding is to nearest, nothing traps. A caller may have changed it
// (torch.set_flush_denormal does), and threads inherit it from their creator.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_RUNTIME_FLOATINGPOINT_H
#define TILEWRIGHT_LIB_RUNTIME_FLOATINGPOINT_H

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilewright::runtime {

#if defined(__x86_64__)
constexpr unsigned kDefaultMxcsr = 0x1f80;

inline void resetFloatingPoint() { _mm_setcsr(kDefaultMxcsr); }

/// The default environment for a scope.
class DefaultFloatingPoint {
public:
  DefaultFloatingPoint() : saved(_mm_getcsr()) { resetFloatingPoint(); }
  ~DefaultFloatingPoint() { _mm_setcsr(saved); }
  DefaultFloatingPoint(const DefaultFloatingPoint &) = delete;
  DefaultFloatingPoint &operator=(const DefaultFloatingPoint &) = delete;

private:
  unsigned saved;
};
#else
inline void resetFloatingPoint() {}
struct DefaultFloatingPoint {
  DefaultFloatingPoint() {}
};
#endif

} // namespace tilewright::runtime

#endif // TILEWRIGHT_LIB_RUNTIME_FLOATINGPOINT_H
