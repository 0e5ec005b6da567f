//===- BranchResults.cpp - values that branches hand on -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/BranchResults.h"

using namespace mlir;

namespace tilewright {

SmallVector<Value> addResults(scf::IfOp &branch, ValueRange then,
                              ValueRange otherwise) {
  OpBuilder b(branch);
  Location loc = branch.getLoc();
  SmallVector<Type> types(branch.getResultTypes());
  llvm::append_range(types, then.getTypes());
  auto made = scf::IfOp::create(b, loc, types, branch.getCondition(),
                                /*addThenBlock=*/false, /*addElseBlock=*/false);
  made->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  made.getThenRegion().takeBody(branch.getThenRegion());
  made.getElseRegion().takeBody(branch.getElseRegion());
  made.thenYield().getResultsMutable().append(then);
  if (made.getElseRegion().empty()) {
    b.createBlock(&made.getElseRegion());
    scf::YieldOp::create(b, loc, otherwise);
  } else {
    made.elseYield().getResultsMutable().append(otherwise);
  }
  branch->replaceAllUsesWith(
      made.getResults().take_front(branch.getNumResults()));
  branch.erase();
  branch = made;
  return SmallVector<Value>(made.getResults().take_back(then.size()));
}

SmallVector<Value> handOut(Block *from, Operation *scope,
                           SmallVector<Value> values, ValueRange otherwise) {
  while (from->getParentOp() != scope) {
    auto branch = cast<scf::IfOp>(from->getParentOp());
    bool isThen = from == branch.thenBlock();
    from = branch->getBlock();
    values = isThen ? addResults(branch, values, otherwise)
                    : addResults(branch, otherwise, values);
  }
  return values;
}

} // namespace tilewright
