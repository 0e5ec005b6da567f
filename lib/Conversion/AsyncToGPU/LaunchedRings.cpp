//===- LaunchedRings.cpp - rings of kernels that are launched again -------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/AsyncToGPU/HandedBuffers.h"
#include "lib/Conversion/AsyncToGPU/WarpRoles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tilewright {

bool isLaunched(Operation *op) {
  auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
  if (!kernel)
    kernel = op->getParentOfType<gpu::GPUFuncOp>();
  return kernel && kernel->hasAttr(tile::decisions::kCode);
}

std::string checkLaunches(gpu::GPUFuncOp kernel, const TensorCopy &copy) {
  if (!isLaunched(kernel))
    return "";
  auto params = tile::decisions::kParams.get(kernel);
  unsigned number = argumentOf(copy.source).getArgNumber();
  auto entry = cast<DictionaryAttr>(params[number]);
  int64_t argument = entry.getAs<IntegerAttr>("arg").getInt();
  std::string reason;
  kernel->getParentOp()->walk([&](tile::LaunchOp launch) {
    if (launch.getKernel() == kernel.getName() && reason.empty())
      findHandedBuffers(launch.getKernelOperands()[argument], reason);
  });
  return reason;
}

namespace {

/// Numbers that a thread keeps: registers, once LLVM has seen them.
Value makeMemory(OpBuilder &b, Location loc, ArrayRef<Value> numbers) {
  auto type =
      MemRefType::get({static_cast<int64_t>(numbers.size())}, b.getI32Type());
  Value memory = memref::AllocaOp::create(b, loc, type);
  for (auto [place, number] : llvm::enumerate(numbers)) {
    Value at =
        arith::ConstantIndexOp::create(b, loc, static_cast<int64_t>(place));
    memref::StoreOp::create(b, loc, number, memory, at);
  }
  return memory;
}

Value recall(OpBuilder &b, Location loc, Value memory, int64_t place) {
  Value at = arith::ConstantIndexOp::create(b, loc, place);
  return memref::LoadOp::create(b, loc, memory, at);
}

void remember(OpBuilder &b, Location loc, Value memory, int64_t place,
              Value number) {
  Value at = arith::ConstantIndexOp::create(b, loc, place);
  memref::StoreOp::create(b, loc, number, memory, at);
}

} // namespace

Value rememberRings(OpBuilder &b, Location loc, MutableArrayRef<RoleRing> rings,
                    Value producing) {
  // The phase before the first counts as over: all slots are empty.
  Value phase = arith::ExtUIOp::create(b, loc, b.getI32Type(), producing);
  Value zero = makeI32(b, loc, 0);
  for (RoleRing &ring : rings)
    ring.memory = makeMemory(b, loc, {zero, phase});
  return makeMemory(b, loc, {phase});
}

SlotState recallRing(OpBuilder &b, Location loc, Value memory) {
  Value slot = recall(b, loc, memory, 0);
  return {slot, recall(b, loc, memory, 1)};
}

void rememberRing(OpBuilder &b, Location loc, Value memory, SlotState state) {
  remember(b, loc, memory, 0, state.first);
  remember(b, loc, memory, 1, state.second);
}

Value recallParity(OpBuilder &b, Location loc, Value memory) {
  return recall(b, loc, memory, 0);
}

void turnParity(OpBuilder &b, Location loc, Value memory, Value parity) {
  remember(b, loc, memory, 0,
           arith::XOrIOp::create(b, loc, parity, makeI32(b, loc, 1)));
}

} // namespace tilewright
