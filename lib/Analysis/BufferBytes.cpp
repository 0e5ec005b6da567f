//===- BufferBytes.cpp - which bytes of which buffer ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/BufferBytes.h"
#include "lib/Analysis/SharedArguments.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tilewright;

BufferBytes tilewright::getBytes(memref::ViewOp view) {
  BufferBytes bytes = {getRoot(view.getSource())};
  auto begin = getConstantIntValue(view.getByteShift());
  MemRefType type = view.getType();
  Type element = type.getElementType();
  if (!begin || !type.hasStaticShape() || !element.isIntOrFloat())
    return bytes;
  int64_t width = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  bytes.begin = *begin;
  bytes.end = *begin + type.getNumElements() * width;
  return bytes;
}

std::optional<std::pair<Value, Value>> tilewright::getHandedOn(Value root) {
  auto loop = root.getDefiningOp<scf::ForOp>();
  auto argument = dyn_cast<BlockArgument>(root);
  if (argument)
    loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
  if (!loop)
    return std::nullopt;
  unsigned number = argument
                        ? argument.getArgNumber() - loop.getNumInductionVars()
                        : cast<OpResult>(root).getResultNumber();
  return std::pair(loop.getInitArgs()[number], loop.getYieldedValues()[number]);
}
