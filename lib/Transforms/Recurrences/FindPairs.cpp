//===- FindPairs.cpp - recurrences that could run along diagonals ---------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Recurrences/Passes.h"
#include "lib/Transforms/Recurrences/RecurrencePair.h"

namespace tilewright {
#define GEN_PASS_DEF_FINDPAIRS
#include "lib/Transforms/Recurrences/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
struct FindPairs : tilewright::impl::FindPairsBase<FindPairs> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      std::string reason;
      if (std::optional<RecurrencePair> pair = pairOf(op, reason))
        op->setAttr(tile::decisions::kPair,
                    DenseI64ArrayAttr::get(op->getContext(),
                                           {pair->rows, pair->columns}));
    });
  }
};
} // namespace
