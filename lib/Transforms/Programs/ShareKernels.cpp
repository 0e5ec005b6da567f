//===- ShareKernels.cpp - tile-share-kernels ------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Programs/Passes.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_SHAREKERNELS
#include "lib/Transforms/Programs/Passes.h.inc"

namespace {

/// Whether code stays right whatever the length of the first dimension of a
/// buffer: tiles are moved from and to places that are in it anyway.
bool mayOpen(BlockArgument argument) {
  auto type = dyn_cast<MemRefType>(argument.getType());
  if (!type || type.getRank() < 2 || type.isDynamicDim(0))
    return false;
  // The length of the first dimension is in no stride.
  if (!isa<StridedLayoutAttr>(type.getLayout()) &&
      !type.getLayout().isIdentity())
    return false;
  return llvm::all_of(argument.getUsers(), [](Operation *user) {
    return isa<tile::LoadOp, tile::StoreOp>(user);
  });
}

Type opened(MemRefType type) {
  auto shape = llvm::to_vector(type.getShape());
  shape[0] = ShapedType::kDynamic;
  return MemRefType::get(shape, type.getElementType(), type.getLayout(),
                         type.getMemorySpace());
}

/// The types of a kernel's arguments, with open lengths where code allows it.
SmallVector<Type> openTypes(tile::KernelOp kernel) {
  SmallVector<Type> types;
  for (BlockArgument argument : kernel.getBody().getArguments())
    types.push_back(mayOpen(argument)
                        ? opened(cast<MemRefType>(argument.getType()))
                        : argument.getType());
  return types;
}

void setTypes(tile::KernelOp kernel, ArrayRef<Type> types) {
  for (auto [argument, type] :
       llvm::zip_equal(kernel.getBody().getArguments(), types))
    argument.setType(type);
  auto function = types.take_front(kernel.getArgumentTypes().size());
  kernel.setFunctionType(FunctionType::get(kernel.getContext(), function, {}));
}

/// The text of a kernel as it would be with open lengths: equal ones can share
/// code. What is predicted of them differs with their lengths.
std::string keyOf(tile::KernelOp kernel) {
  auto copy = cast<tile::KernelOp>(kernel->clone());
  setTypes(copy, openTypes(copy));
  copy.setSymName("kernel");
  copy->removeAttr(tile::decisions::kPrediction);
  std::string text;
  llvm::raw_string_ostream stream(text);
  copy->print(stream, OpPrintingFlags().useLocalScope());
  copy->erase();
  return text;
}

/// TMA's descriptors are made of whole buffers, and know their lengths.
bool loadsAhead(tile::KernelOp kernel) {
  return kernel
      .walk([](Operation *op) {
        return op->hasAttr(tile::decisions::kStages) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Makes the first of some kernels fit what the others are launched with.
void openFor(ArrayRef<tile::KernelOp> kernels) {
  tile::KernelOp first = kernels.front();
  SmallVector<Type> types = openTypes(first);
  for (auto [number, argument] :
       llvm::enumerate(first.getBody().getArguments())) {
    Type own = argument.getType();
    if (llvm::all_of(kernels, [&, at = number](tile::KernelOp other) {
          return other.getBody().getArgument(at).getType() == own;
        }))
      types[number] = own;
  }
  if (llvm::equal(types, first.getBody().getArgumentTypes()))
    return;
  setTypes(first, types);
  first->removeAttr(tile::decisions::kPrediction);
}

struct ShareKernels : public impl::ShareKernelsBase<ShareKernels> {
  void runOnOperation() override {
    llvm::DenseMap<StringAttr, SmallVector<tile::LaunchOp>> launches;
    getOperation().walk([&](tile::LaunchOp launch) {
      launches[launch.getKernelAttr().getAttr()].push_back(launch);
    });
    llvm::StringMap<size_t> numbers;
    SmallVector<SmallVector<tile::KernelOp>> alike;
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      ArrayRef<tile::LaunchOp> own = launches[kernel.getSymNameAttr()];
      auto stands = [](tile::LaunchOp launch) {
        return launch->getParentOfType<tile::KernelOp>() != nullptr;
      };
      if (own.empty() || !llvm::all_of(own, stands) || loadsAhead(kernel))
        continue;
      auto [known, isNew] = numbers.try_emplace(keyOf(kernel), alike.size());
      if (isNew)
        alike.emplace_back();
      alike[known->second].push_back(kernel);
    }
    for (ArrayRef<tile::KernelOp> kernels : alike) {
      if (kernels.size() < 2)
        continue;
      openFor(kernels);
      tile::KernelOp first = kernels.front();
      auto shared = FlatSymbolRefAttr::get(first.getSymNameAttr());
      for (tile::KernelOp other : kernels.drop_front()) {
        for (tile::LaunchOp launch : launches[other.getSymNameAttr()])
          launch.setKernelAttr(shared);
        other.erase();
      }
    }
  }
};

} // namespace
} // namespace tilewright
