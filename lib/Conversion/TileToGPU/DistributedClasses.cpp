//===- DistributedClasses.cpp - tiles that share a layout -----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/DistributedClasses.h"
#include "lib/Conversion/TileToGPU/DerivedLayouts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;

static bool isTile(Value value) { return isa<tile::TileType>(value.getType()); }

DistributedClasses::DistributedClasses(Operation *function) {
  collect(function);
  classes.grow(values.size());
  function->walk([&](Operation *op) { tie(op); });
  classes.compress();
  members.resize(classes.getNumClasses());
  layouts.resize(classes.getNumClasses());
  for (Value value : values)
    members[find(value)].push_back(value);
}

void DistributedClasses::collect(Operation *function) {
  auto add = [&](Value value) {
    if (isTile(value) && numbers.try_emplace(value, values.size()).second)
      values.push_back(value);
  };
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    llvm::for_each(op->getResults(), add);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), add);
  });
}

unsigned DistributedClasses::find(Value value) const {
  return classes[numbers.lookup(value)];
}

void DistributedClasses::unite(Value x, Value y) {
  if (isTile(x) && isTile(y))
    classes.join(numbers.lookup(x), numbers.lookup(y));
}

void DistributedClasses::unite(ValueRange x, ValueRange y) {
  for (auto [left, right] : llvm::zip_equal(x, y))
    unite(left, right);
}

void DistributedClasses::tieBranches(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](scf::ForOp loop) {
        unite(loop.getInitArgs(), loop.getResults());
        unite(loop.getRegionIterArgs(), loop.getResults());
        unite(loop.getBody()->getTerminator()->getOperands(),
              loop.getResults());
      })
      .Case([&](scf::IfOp branch) {
        for (Region &region : branch->getRegions())
          if (!region.empty())
            unite(region.front().getTerminator()->getOperands(),
                  branch.getResults());
      })
      .Case([&](scf::WhileOp loop) {
        unite(loop.getInits(), loop.getBeforeArguments());
        unite(loop.getConditionOp().getArgs(), loop.getAfterArguments());
        unite(loop.getConditionOp().getArgs(), loop.getResults());
        unite(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
      });
}

void DistributedClasses::tie(Operation *op) {
  if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1) {
    for (Value operand : op->getOperands())
      unite(operand, op->getResult(0));
    return;
  }
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tile::SelectOp select) {
        for (Value operand : select->getOperands())
          unite(operand, select.getResult());
      })
      .Case([&](tile::ConvertOp convert) {
        // With equal elements it is there to change the layout.
        if (getElementTypeOrSelf(convert.getSource().getType()) !=
            getElementTypeOrSelf(convert.getResult().getType()))
          unite(convert.getSource(), convert.getResult());
      })
      .Case(
          [&](tile::ScanOp scan) { unite(scan.getSource(), scan.getResult()); })
      .Case([&](tile::InsertOp insert) {
        unite(insert.getDest(), insert.getResult());
      })
      .Case([&](tile::MmaOp mma) { unite(mma.getC(), mma.getResult()); })
      .Default([&](Operation *other) { tieBranches(other); });
}

ArrayRef<Value> DistributedClasses::getMembers(Value value) const {
  return members[find(value)];
}

std::optional<LinearLayout> DistributedClasses::getLayout(Value value) const {
  return layouts[find(value)];
}

void DistributedClasses::deriveFromUse(OpOperand &use,
                                       const LinearLayout &layout,
                                       Derived &result) {
  auto add = [&](Value value, const std::optional<LinearLayout> &derived) {
    if (derived)
      result.push_back({value, *derived});
  };
  llvm::TypeSwitch<Operation *>(use.getOwner())
      .Case([&](tile::ReduceOp op) {
        add(op.getResult(), layout.slice(op.getDims()));
      })
      .Case<tile::TransposeOp, tile::ReshapeOp>(
          [&](auto op) { add(op.getResult(), getResultLayout(op, layout)); })
      .Case([&](tile::ExtractOp op) {
        if (isTile(op.getResult()))
          add(op.getResult(), getExtractLayout(op, layout));
      })
      .Case([&](tile::StoreOp op) {
        if (op.getIndices() && use.get() == op.getTile())
          add(op.getIndices(),
              getIndexLayout(layout, static_cast<int64_t>(*op.getAlong())));
      });
}

void DistributedClasses::derive(Value value, const LinearLayout &layout,
                                Derived &result) {
  auto add = [&](Value source, const std::optional<LinearLayout> &derived) {
    if (derived)
      result.push_back({source, *derived});
  };
  if (Operation *op = value.getDefiningOp())
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](tile::BroadcastOp broadcast) {
          add(broadcast.getSource(), getBroadcastSource(broadcast, layout));
        })
        .Case<tile::TransposeOp, tile::ReshapeOp>([&](auto rename) {
          add(rename.getSource(), getSourceLayout(rename, layout));
        })
        .Case([&](tile::LoadOp load) {
          if (load.getIndices())
            add(load.getIndices(),
                getIndexLayout(layout, static_cast<int64_t>(*load.getAlong())));
        });
  for (OpOperand &use : value.getUses())
    deriveFromUse(use, layout, result);
}

void DistributedClasses::assign(Value value, const LinearLayout &layout) {
  Derived work = {{value, layout}};
  for (size_t i = 0; i < work.size(); ++i) {
    auto [next, wanted] = work[i];
    std::optional<LinearLayout> &known = layouts[find(next)];
    if (known)
      continue;
    known = wanted;
    for (Value member : getMembers(next))
      derive(member, wanted, work);
  }
}
