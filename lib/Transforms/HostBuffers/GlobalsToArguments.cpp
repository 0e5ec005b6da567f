//===- GlobalsToArguments.cpp - weights as arguments ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/MLProgram/IR/MLProgram.h"

namespace tilewright {
#define GEN_PASS_DEF_GLOBALSTOARGUMENTS
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

func::FuncOp tilewright::findHostFunction(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>(kHostFunction);
  if (!main)
    module.emitError("holds no host function @main");
  else if (!llvm::hasSingleElement(main.getBody()))
    return main.emitOpError("must have one block"), func::FuncOp();
  return main;
}

namespace {

struct GlobalsToArguments
    : public tilewright::impl::GlobalsToArgumentsBase<GlobalsToArguments> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (auto init = module.lookupSymbol<func::FuncOp>("init"))
      init.erase();
    func::FuncOp main = findHostFunction(module);
    if (!main)
      return signalPassFailure();
    DenseMap<StringAttr, SmallVector<ml_program::GlobalLoadConstOp>> loads;
    main.walk([&](ml_program::GlobalLoadConstOp load) {
      loads[load.getGlobalAttr().getLeafReference()].push_back(load);
    });
    for (auto global :
         llvm::make_early_inc_range(module.getOps<ml_program::GlobalOp>())) {
      auto found = loads.find(global.getSymNameAttr());
      if (found != loads.end()) {
        addArgument(main, global, found->second);
        loads.erase(found);
      }
      global.erase();
    }
    for (auto &[name, missing] : loads) {
      missing.front().emitOpError("loads @")
          << name.getValue() << ", which the module lacks";
      return signalPassFailure();
    }
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (isa<TensorType>(main.getArgument(i).getType()))
        main.setArgAttr(
            i, "bufferization.writable",
            BoolAttr::get(&getContext(),
                          bool(main.getArgAttr(i, tile::decisions::kAppends))));
  }

private:
  static void addArgument(func::FuncOp main, ml_program::GlobalOp global,
                          ArrayRef<ml_program::GlobalLoadConstOp> loads) {
    Builder b(main.getContext());
    unsigned index = main.getNumArguments();
    auto attrs = b.getDictionaryAttr(
        b.getNamedAttr(tile::decisions::kGlobal, global.getSymNameAttr()));
    if (failed(main.insertArgument(index, global.getType(), attrs,
                                   global.getLoc())))
      llvm_unreachable("a func.func takes any argument");
    for (auto load : loads) {
      load.getResult().replaceAllUsesWith(main.getArgument(index));
      load->erase();
    }
  }
};

} // namespace
