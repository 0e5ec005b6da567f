//===- MemoryGuards.cpp - poisoned bytes of a buffer ---------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/MemoryGuards.h"
#include "lib/Analysis/Device.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace tilewright;

bool tilewright::checksAccesses(Operation *op) {
  Device device(op);
  return !device.isGPU() && device.getOption("sanitize") == "address";
}

MemoryGuards::MemoryGuards(OpBuilder &b, Location loc, Value bytes)
    : loc(loc),
      address(memref::ExtractAlignedPointerAsIndexOp::create(b, loc, bytes)) {}

void MemoryGuards::call(OpBuilder &b, StringRef name, int64_t offset,
                        int64_t bytes) {
  auto module =
      b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function) {
    OpBuilder top(module.getBodyRegion());
    Type index = b.getIndexType();
    function = func::FuncOp::create(top, loc, name,
                                    b.getFunctionType({index, index}, {}));
    function.setPrivate();
  }
  Value start = arith::AddIOp::create(
      b, loc, address, arith::ConstantIndexOp::create(b, loc, offset));
  Value size = arith::ConstantIndexOp::create(b, loc, bytes);
  func::CallOp::create(b, loc, function, ValueRange{start, size});
}
