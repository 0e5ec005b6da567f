//===- OpenStrides.cpp - tile-open-strides --------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"
#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"

namespace tilewright {
#define GEN_PASS_DEF_OPENSTRIDES
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// The options that bufferization will have, as far as types depend on them.
bufferization::BufferizationOptions bufferizationOptions() {
  bufferization::BufferizationOptions options;
  options.setFunctionBoundaryTypeConversion(
      bufferization::LayoutMapOption::IdentityLayoutMap);
  options.unknownTypeConverterFn =
      [](TensorType type, Attribute space,
         const bufferization::BufferizationOptions &) {
        return bufferization::getMemRefTypeWithStaticIdentityLayout(type,
                                                                    space);
      };
  return options;
}

/// `type` with open strides and offset.
MemRefType withOpenStrides(MemRefType type) {
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(type.getShape(), type.getElementType(), layout,
                         type.getMemorySpace());
}

struct OpenStrides : public tilewright::impl::OpenStridesBase<OpenStrides> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    bufferization::BufferizationOptions options = bufferizationOptions();
    bufferization::BufferizationState state;
    getOperation().walk([&](tile::LaunchOp launch) {
      auto kernel = symbols.lookup<tile::KernelOp>(launch.getKernel());
      if (kernel)
        open(launch, kernel, options, state);
    });
  }

  /// Opens the strides of each argument that the buffer of the launch's operand
  /// will not fit.
  static void open(tile::LaunchOp launch, tile::KernelOp kernel,
                   const bufferization::BufferizationOptions &options,
                   const bufferization::BufferizationState &state) {
    SmallVector<Type> types(kernel.getFunctionType().getInputs());
    for (auto [argument, type, operand] :
         llvm::zip(kernel.getBody().front().getArguments(), types,
                   launch.getKernelOperands())) {
      if (!isa<TensorType>(operand.getType()) || !isa<MemRefType>(type))
        continue;
      auto buffer = bufferization::getBufferType(operand, options, state);
      if (failed(buffer) || tile::shared::fitsArgument(*buffer, type))
        continue;
      type = withOpenStrides(cast<MemRefType>(type));
      argument.setType(type);
    }
    kernel.setFunctionType(FunctionType::get(kernel.getContext(), types, {}));
  }
};

} // namespace
