//===- KernelSizes.cpp - open sizes of a kernel's arguments ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/KernelSizes.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

std::optional<size_t> tilewright::findEqualSizes(tile::KernelOp kernel,
                                                 int64_t argument,
                                                 int64_t dim) {
  auto all = tile::decisions::kEqualSizes.get(kernel);
  for (auto [number, same] :
       llvm::enumerate(all ? all.getValue() : ArrayRef<Attribute>())) {
    auto places = dyn_cast<DenseI64ArrayAttr>(same);
    for (int64_t at = 0; places && at + 1 < places.size(); at += 2)
      if (places[at] == argument && places[at + 1] == dim)
        return number;
  }
  return std::nullopt;
}

void tilewright::foldSizes(gpu::GPUFuncOp function) {
  SmallVector<memref::DimOp> sizes;
  function.walk([&](memref::DimOp size) { sizes.push_back(size); });
  for (memref::DimOp size : sizes) {
    auto whole = size.getSource().getDefiningOp<memref::ReinterpretCastOp>();
    std::optional<int64_t> dim = size.getConstantIndex();
    if (!whole || !dim)
      continue;
    if (auto value = dyn_cast<Value>(whole.getMixedSizes()[*dim])) {
      size.replaceAllUsesWith(value);
      size.erase();
    }
  }
}
