//===- KernelLayouts.cpp - tile-kernel-layouts ----------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {
#define GEN_PASS_DEF_KERNELLAYOUTS
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// `argument` with the strides that `operand` has; its offset stays open.
Type withStridesOf(Type argument, Type operand) {
  auto to = dyn_cast<MemRefType>(argument);
  auto from = dyn_cast<MemRefType>(operand);
  if (!to || !from || to.getLayout().isIdentity())
    return argument;
  SmallVector<int64_t> toStrides, fromStrides;
  int64_t toOffset, fromOffset;
  if (failed(to.getStridesAndOffset(toStrides, toOffset)) ||
      failed(from.getStridesAndOffset(fromStrides, fromOffset)))
    return argument;
  for (auto [open, known] : llvm::zip_equal(toStrides, fromStrides))
    if (ShapedType::isDynamic(open))
      open = known;
  return MemRefType::get(
      to.getShape(), to.getElementType(),
      StridedLayoutAttr::get(to.getContext(), toOffset, toStrides),
      to.getMemorySpace());
}

/// Types of a kernel's arguments as one launch has them.
SmallVector<Type> typesFor(tile::KernelOp kernel, tile::LaunchOp launch) {
  SmallVector<Type> types(kernel.getFunctionType().getInputs());
  for (auto [type, operand] :
       llvm::zip_equal(types, launch.getKernelOperands()))
    type = withStridesOf(type, operand.getType());
  return types;
}

void setTypes(tile::KernelOp kernel, ArrayRef<Type> types) {
  Block &body = kernel.getBody().front();
  for (auto [argument, type] :
       llvm::zip_equal(body.getArguments().take_front(types.size()), types))
    argument.setType(type);
  kernel.setFunctionType(FunctionType::get(kernel.getContext(), types, {}));
}

struct KernelLayouts
    : public tilewright::impl::KernelLayoutsBase<KernelLayouts> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::MapVector<Operation *, SmallVector<tile::LaunchOp>> launches;
    getOperation()->walk([&](tile::LaunchOp launch) {
      launches[symbols.lookup(launch.getKernel())].push_back(launch);
    });
    for (auto &[op, users] : launches)
      if (auto kernel = dyn_cast_or_null<tile::KernelOp>(op))
        specialize(symbols, kernel, users);
  }

  /// One kernel per list of types: the first takes the place of the original.
  static void specialize(SymbolTable &symbols, tile::KernelOp kernel,
                         ArrayRef<tile::LaunchOp> launches) {
    llvm::MapVector<Type, SmallVector<tile::LaunchOp>> variants;
    for (tile::LaunchOp launch : launches)
      variants[FunctionType::get(kernel.getContext(), typesFor(kernel, launch),
                                 {})]
          .push_back(launch);
    SmallVector<tile::KernelOp> kernels = {kernel};
    while (kernels.size() < variants.size()) {
      kernels.push_back(kernel.clone());
      kernels.back()->setAttr(tile::decisions::kVariantOf,
                              kernel.getSymNameAttr());
      symbols.insert(kernels.back(), std::next(Block::iterator(kernel)));
    }
    for (auto [variant, copy] : llvm::zip_equal(variants, kernels)) {
      setTypes(copy, cast<FunctionType>(variant.first).getInputs());
      for (tile::LaunchOp launch : variant.second)
        launch.setKernel(copy.getSymName());
    }
  }
};

} // namespace
