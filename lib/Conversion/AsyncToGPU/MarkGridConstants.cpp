//===- MarkGridConstants.cpp - tensor maps as parameters -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/AsyncToGPU/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_MARKGRIDCONSTANTS
#include "lib/Conversion/AsyncToGPU/Passes.h.inc"

namespace {

/// Bytes and alignment of a tensor map (CUtensorMap of the CUDA driver).
constexpr int64_t kBytes = 128, kAlignment = 64;

struct MarkGridConstants
    : public tilewright::impl::MarkGridConstantsBase<MarkGridConstants> {
  void runOnOperation() override {
    getOperation()->walk([&](LLVM::LLVMFuncOp kernel) {
      auto params = tile::decisions::kParams.get(kernel);
      if (!params || params.size() != kernel.getNumArguments())
        return;
      for (auto [number, entry] : llvm::enumerate(params)) {
        auto kind = cast<DictionaryAttr>(entry).getAs<StringAttr>("kind");
        if (kind && kind.getValue() == "tensor_map")
          mark(kernel, number);
      }
      auto blocks = tile::decisions::kOccupancy.get(kernel);
      if (blocks ||
          kernel->hasAttr(tile::decisions::kSpecialized)) // for setmaxnreg
        kernel->setAttr(
            NVVM::NVVMDialect::getMinctasmAttrName(),
            Builder(kernel).getI32IntegerAttr(blocks ? blocks.getInt() : 1));
    });
  }

private:
  static void mark(LLVM::LLVMFuncOp kernel, unsigned number) {
    Builder b(kernel.getContext());
    kernel.setArgAttr(
        number, LLVM::LLVMDialect::getByValAttrName(),
        TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(), kBytes)));
    kernel.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(),
                      b.getI64IntegerAttr(kAlignment));
    kernel.setArgAttr(number, LLVM::LLVMDialect::getNoUndefAttrName(),
                      b.getUnitAttr());
    kernel.setArgAttr(number, NVVM::NVVMDialect::getGridConstantAttrName(),
                      b.getUnitAttr());
  }
};

} // namespace
} // namespace tilewright
