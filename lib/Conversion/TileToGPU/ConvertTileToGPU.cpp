//===- ConvertTileToGPU.cpp - the pass ------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/ThreadTiles.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"

namespace tilewright {
#define GEN_PASS_DEF_CONVERTTILETOGPU
#include "lib/Conversion/TileToGPU/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

bool usesTiles(Operation *op) {
  auto isTile = [](Type type) {
    return isa<tile::TileType, tile::TokenType>(type);
  };
  return llvm::any_of(op->getOperandTypes(), isTile) ||
         llvm::any_of(op->getResultTypes(), isTile);
}

/// The address space of a memory level on a GPU.
FailureOr<Attribute> getAddressSpace(MLIRContext *context, Attribute level) {
  if (!level)
    return Attribute();
  auto named = dyn_cast<tile::LevelAttr>(level);
  if (named && named.getName() == "shared")
    return Attribute(
        gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Workgroup));
  if (named && named.getName() == "memory")
    return Attribute();
  return failure();
}

/// Makes gpu.func of one kernel, tiles still in it.
class KernelToGpu {
public:
  KernelToGpu(tile::KernelOp kernel, gpu::GPUModuleOp module, int64_t threads)
      : kernel(kernel), b(kernel.getContext()), loc(kernel.getLoc()),
        threads(threads) {
    b.setInsertionPointToEnd(module.getBody());
  }

  FailureOr<gpu::GPUFuncOp> run() {
    if (failed(check()) || failed(convertLevels()))
      return failure();
    function = gpu::GPUFuncOp::create(b, loc, kernel.getSymName(),
                                      kernel.getFunctionType());
    function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                      b.getUnitAttr());
    function.setKnownBlockSizeAttr(
        b.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
    Block &entry = function.getBody().front();
    Block &body = kernel.getBody().front();
    b.setInsertionPointToStart(&entry);
    SmallVector<Value> values(
        entry.getArguments().take_front(kernel.getInputs().size()));
    appendBlockIds(values);
    for (auto [old, value] : llvm::zip_equal(body.getArguments(), values))
      old.replaceAllUsesWith(value);
    Operation *last = body.getTerminator();
    OpBuilder atEnd(last);
    gpu::ReturnOp::create(atEnd, loc);
    last->erase();
    entry.getOperations().splice(entry.end(), body.getOperations());
    placeBuffers();
    kernel.erase();
    return function;
  }

private:
  LogicalResult check() {
    for (Type type : kernel.getFunctionType().getInputs()) {
      auto memref = dyn_cast<MemRefType>(type);
      if (memref &&
          (!memref.hasStaticShape() || !memref.getLayout().isIdentity()))
        return kernel.emitOpError("has an argument of type ")
               << type
               << ", but the GPU lowering passes bare pointers to "
                  "contiguous buffers of static shape";
    }
    if (kernel.getGridRank() > 3)
      return kernel.emitOpError("has ")
             << kernel.getGridRank() << " grid coordinates, a GPU has 3";
    return success();
  }

  LogicalResult convertLevels() {
    bool isKnown = true;
    auto convert = [&](Value value) {
      auto type = dyn_cast<MemRefType>(value.getType());
      if (!type)
        return;
      auto space = getAddressSpace(b.getContext(), type.getMemorySpace());
      isKnown &= succeeded(space);
      if (succeeded(space))
        value.setType(MemRefType::Builder(type).setMemorySpace(*space));
    };
    kernel.walk([&](Operation *op) {
      llvm::for_each(op->getResults(), convert);
      for (Region &region : op->getRegions())
        llvm::for_each(region.getArguments(), convert);
    });
    if (!isKnown)
      return kernel.emitOpError("uses a memory level that is neither "
                                "\"shared\" nor \"memory\"");
    return success();
  }

  /// The last grid coordinate is x, which varies fastest.
  void appendBlockIds(SmallVectorImpl<Value> &values) {
    const gpu::Dimension dims[] = {gpu::Dimension::x, gpu::Dimension::y,
                                   gpu::Dimension::z};
    for (int64_t id = kernel.getGridRank() - 1; id >= 0; --id)
      values.push_back(gpu::BlockIdOp::create(b, loc, dims[id]));
  }

  void placeBuffers() {
    function.walk([&](tile::AllocOp alloc) {
      int64_t alignment = alloc.getAlignment().value_or(16);
      Value buffer = addShared(alloc.getType(), alloc.getLoc(), alignment);
      alloc.getResult().replaceAllUsesWith(buffer);
      alloc.erase();
    });
  }

  Value addShared(MemRefType type, Location where, int64_t alignment) {
    unsigned index = function.getNumWorkgroupAttributions();
    Value buffer = function.addWorkgroupAttribution(type, where);
    function.setWorkgroupAttributionAttr(index, "llvm.align",
                                         b.getI64IntegerAttr(alignment));
    return buffer;
  }

public:
  /// Shared buffers for the operands that other threads read.
  ExchangeBuffers makeExchangeBuffers() {
    ExchangeBuffers buffers;
    auto space = gpu::AddressSpaceAttr::get(b.getContext(),
                                            gpu::AddressSpace::Workgroup);
    function.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands()) {
        if (!needsExchange(operand))
          continue;
        auto tile = cast<tile::TileType>(operand.get().getType());
        auto type =
            MemRefType::get({tile.getNumElements()}, tile.getElementType(),
                            MemRefLayoutAttrInterface(), space);
        buffers[{op, operand.getOperandNumber()}] =
            addShared(type, op->getLoc(), 16);
      }
    });
    return buffers;
  }

private:
  tile::KernelOp kernel;
  gpu::GPUFuncOp function;
  OpBuilder b;
  Location loc;
  int64_t threads;
};

struct ConvertTileToGPU
    : public tilewright::impl::ConvertTileToGPUBase<ConvertTileToGPU> {
  using ConvertTileToGPUBase::ConvertTileToGPUBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (threads < 32 || threads > 1024 || threads % 32 != 0) {
      module.emitError("option threads is ")
          << threads << ", but must be a multiple of 32 up to 1024";
      return signalPassFailure();
    }
    SmallVector<tile::KernelOp> kernels(module.getOps<tile::KernelOp>());
    if (kernels.empty())
      return;
    OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
    auto device =
        gpu::GPUModuleOp::create(b, module.getLoc(), StringRef("kernels"));
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                    b.getUnitAttr());
    for (tile::KernelOp kernel : kernels) {
      KernelToGpu lowering(kernel, device, threads);
      auto function = lowering.run();
      if (failed(function) ||
          failed(convert(*function, lowering.makeExchangeBuffers())))
        return signalPassFailure();
    }
  }

private:
  LogicalResult convert(gpu::GPUFuncOp function,
                        const ExchangeBuffers &buffers) {
    TilePartsConverter converter(/*nativeLanes=*/1, threads);
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal(
        [](Operation *op) { return !usesTiles(op); });
    target.addIllegalOp<tile::CopyOp, tile::AsyncOp, tile::AwaitOp,
                        tile::BarrierOp>();
    RewritePatternSet patterns(&getContext());
    populateThreadMemoryPatterns(converter, patterns);
    populateThreadExchangePatterns(converter, buffers, patterns);
    populateAsyncPatterns(converter, patterns);
    populateElementwisePatterns(converter, patterns);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    return applyPartialConversion(function, target, std::move(patterns));
  }
};

} // namespace
