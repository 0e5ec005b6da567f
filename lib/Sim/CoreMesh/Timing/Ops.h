//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names of the operations on rows, by which they are remembered.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_TIMING_OPS_H
#define TILEWRIGHT_LIB_SIM_COREMESH_TIMING_OPS_H

#include <cstdint>

namespace twmesh::timing {

enum RowOp : uint64_t {
  OpCompute,
  OpSend,
  OpArrive,
  OpDeliver,
  OpShare,
  OpTake,
  OpRecv,
  OpRelay,
  OpPass,
  OpFeedBack,
  OpReturn,
  OpLater,
  OpWait,
  OpPrune,
  OpMask,
};

inline uint64_t word(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

} // namespace twmesh::timing

#endif // TILEWRIGHT_LIB_SIM_COREMESH_TIMING_OPS_H
