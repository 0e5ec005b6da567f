//===- TileBufferization.cpp - how tile.launch is bufferized --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace tilewright::tile;

namespace {

/// A launch becomes the same launch on buffers; its results become the buffers
/// of its outputs. Outputs count as read, since a kernel may leave a part of
/// them alone.
struct LaunchModel
    : DstBufferizableOpInterfaceExternalModel<LaunchModel, LaunchOp> {
  static LogicalResult appendBuffers(RewriterBase &rewriter, ValueRange values,
                                     const BufferizationOptions &options,
                                     BufferizationState &state,
                                     SmallVectorImpl<Value> &buffers) {
    for (Value value : values) {
      if (!isa<TensorType>(value.getType())) {
        buffers.push_back(value);
        continue;
      }
      FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    return success();
  }

  bool bufferizesToElementwiseAccess(Operation *op, const AnalysisState &,
                                     ArrayRef<OpOperand *> operands) const {
    return shared::readsBeforeItWrites(cast<LaunchOp>(op), operands);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto launch = cast<LaunchOp>(op);
    SmallVector<Value> inputs, outputs, results;
    if (failed(appendBuffers(rewriter, launch.getInputs(), options, state,
                             inputs)) ||
        failed(appendBuffers(rewriter, launch.getOutputs(), options, state,
                             outputs)))
      return failure();
    for (auto [output, buffer] : llvm::zip_equal(launch.getOutputs(), outputs))
      if (isa<TensorType>(output.getType()))
        results.push_back(buffer);
    rewriter.setInsertionPoint(launch);
    auto onBuffers =
        LaunchOp::create(rewriter, launch.getLoc(), launch.getKernel(),
                         launch.getGrid(), inputs, outputs);
    onBuffers->setDiscardableAttrs(launch->getDiscardableAttrDictionary());
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

} // namespace

void tilewright::tile::registerBufferizationModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, TileDialect *dialect) {
    context->loadDialect<BufferizationDialect>();
    LaunchOp::attachInterface<LaunchModel>(*context);
  });
}
