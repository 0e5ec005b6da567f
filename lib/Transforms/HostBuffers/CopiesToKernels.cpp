//===- CopiesToKernels.cpp - copies on the host as launches ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Elements.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
#include "lib/Transforms/HostBuffers/CopyEmitter.h"
#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace tilewright {
#define GEN_PASS_DEF_COPIESTOKERNELS
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// Elements that are copied before a kernel has started.
constexpr int64_t kSmall = 64;

struct CopiesToKernels
    : public tilewright::impl::CopiesToKernelsBase<CopiesToKernels> {
  void runOnOperation() override {
    func::FuncOp main = findHostFunction(getOperation());
    if (!main)
      return signalPassFailure();
    SmallVector<memref::CopyOp> copies;
    main.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
    for (memref::CopyOp copy : copies)
      lower(main, copy);
  }

private:
  void lower(func::FuncOp main, memref::CopyOp copy) {
    auto source = cast<MemRefType>(copy.getSource().getType());
    auto target = cast<MemRefType>(copy.getTarget().getType());
    bool isSmall = source.hasStaticShape() && source.getNumElements() <= kSmall;
    if (!isSmall)
      copy.emitRemark("a copy of ") << source << " that the plan did not avoid";
    // A step of a loop moves its own part of a state: a launch each costs more.
    bool isOpen = !source.hasStaticShape() || !target.hasStaticShape();
    bool inLoop = copy->getParentOfType<LoopLikeOpInterface>() != nullptr;
    if (isSmall || (isOpen && inLoop) || !runsAsTasks(main, source, target))
      return lowerOnHost(copy, source, target);
    auto kernel = getKernel(main, source, target, copy.getLoc());
    OpBuilder b(copy);
    SmallVector<Value> grid;
    for (int64_t dim = 0; dim < taskDims(source); ++dim)
      grid.push_back(getValueOrCreateConstantIndexOp(
          b, copy.getLoc(),
          memref::getMixedSize(b, copy.getLoc(), copy.getSource(), dim)));
    auto launch =
        tile::LaunchOp::create(b, copy.getLoc(), kernel.getSymName(), grid,
                               copy.getSource(), copy.getTarget());
    if (auto team = tile::decisions::kTeam.get(copy))
      launch->setAttr(tile::decisions::kTeam, team);
    copy.erase();
  }

  /// Whether tasks copy it: rows of known length. On GPUs what has sizes of a
  /// run becomes kernels by tile-outline-host-loops.
  static bool runsAsTasks(func::FuncOp main, MemRefType source,
                          MemRefType target) {
    if (!hasTiles(source.getElementType()))
      return false;
    if (source.hasStaticShape() && target.hasStaticShape())
      return true;
    return Device(main).isCPU() && source.getRank() > 1 &&
           !source.isDynamicDim(source.getRank() - 1);
  }

  /// Dimensions along which tasks differ. The first one of known sizes gives
  /// enough of them; of those of a run it may be a batch of 1.
  static int64_t taskDims(MemRefType source) {
    int64_t rank = source.getRank();
    int64_t outer = std::min<int64_t>(rank - 1, 1);
    return source.hasStaticShape() ? outer : std::max<int64_t>(rank - 2, outer);
  }

  /// Contiguous memory is copied at once; the rest element by element.
  static void lowerOnHost(memref::CopyOp copy, MemRefType source,
                          MemRefType target) {
    if (source.getLayout().isIdentity() && target.getLayout().isIdentity())
      return;
    OpBuilder b(copy);
    linalg::makeMemRefCopyOp(b, copy.getLoc(), copy.getSource(),
                             copy.getTarget());
    copy.erase();
  }

  /// The kernel that copies between these types; one task per outer row.
  tile::KernelOp getKernel(func::FuncOp main, MemRefType source,
                           MemRefType target, Location loc) {
    tile::KernelOp &kernel = kernels[{source, target}];
    if (kernel)
      return kernel;
    SymbolTable symbols(getOperation());
    OpBuilder b(main);
    kernel = tile::KernelOp::create(b, loc, "copy",
                                    b.getFunctionType({source, target}, {}),
                                    taskDims(source));
    kernel->remove();
    symbols.insert(kernel, Block::iterator(main));
    Block &body = kernel.getBody().front();
    b.setInsertionPointToStart(&body);
    SmallVector<Value> ids(body.getArguments().drop_front(2));
    emitCopy(b, loc, body.getArgument(0), body.getArgument(1), ids);
    tile::ReturnOp::create(b, loc);
    return kernel;
  }

  DenseMap<std::pair<Type, Type>, tile::KernelOp> kernels;
};

} // namespace
