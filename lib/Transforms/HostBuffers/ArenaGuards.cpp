//===- ArenaGuards.cpp - poisoned memory around live places ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/HostBuffers/ArenaGuards.h"
#include "lib/Analysis/MemoryGuards.h"

using namespace mlir;
using namespace tilewright;

namespace {

class Guards {
public:
  Guards(func::FuncOp main, Value arena)
      : b(OpBuilder::atBlockBegin(&main.getBody().front())),
        memory(b, main.getLoc(), arena) {
    memory.close(b, 0, cast<MemRefType>(arena.getType()).getNumElements());
  }

  /// Opens what begins to live at `op`, and closes what ends with it.
  void around(Operation *op, std::pair<int64_t, int64_t> span,
              ArrayRef<ArenaBuffer> buffers) {
    auto begins = [&](const ArenaBuffer &buffer) {
      return span.first <= buffer.first && buffer.first <= span.second;
    };
    auto ends = [&](const ArenaBuffer &buffer) {
      return span.first <= buffer.last && buffer.last <= span.second;
    };
    b.setInsertionPoint(op);
    for (const ArenaBuffer &buffer : buffers)
      if (begins(buffer))
        memory.open(b, buffer.offset, buffer.bytes);
    if (op->hasTrait<OpTrait::IsTerminator>())
      return;
    b.setInsertionPointAfter(op);
    for (const ArenaBuffer &buffer : buffers)
      if (ends(buffer))
        memory.close(b, buffer.offset, buffer.bytes);
    // Another buffer of a loop's body may have had a place of these.
    for (const ArenaBuffer &buffer : buffers)
      if (buffer.first <= span.second && buffer.last > span.second &&
          llvm::any_of(buffers, [&](const ArenaBuffer &other) {
            return ends(other) && overlap(buffer, other);
          }))
        memory.open(b, buffer.offset, buffer.bytes);
  }

private:
  static bool overlap(const ArenaBuffer &x, const ArenaBuffer &y) {
    return x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
  }

  OpBuilder b;
  MemoryGuards memory;
};

} // namespace

void tilewright::guardArena(func::FuncOp main, Value arena,
                            ArrayRef<ArenaBuffer> buffers,
                            const Lifetimes &lifetimes) {
  SmallVector<Operation *> ops = llvm::map_to_vector(
      main.getBody().front(), [](Operation &op) { return &op; });
  Guards guards(main, arena);
  for (Operation *op : ops)
    if (auto span = lifetimes.span(op))
      guards.around(op, *span, buffers);
}
