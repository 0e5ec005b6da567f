//===- GatheredAddresses.cpp - registers for addresses from lists ---------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Target/GatheredAddresses.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {

/// Vectors of a row from which on the addition is worth its operation.
constexpr unsigned fewestVectors = 3;

/// Steps from a word of memory to the places in it: shifts, masks, factors.
constexpr unsigned mostSteps = 8;

bool isFromMemory(const Value *value) {
  for (unsigned step = 0; step < mostSteps; ++step) {
    if (isa<LoadInst>(value))
      return true;
    const auto *next = dyn_cast<Instruction>(value);
    bool isCast = next && isa<ZExtInst, SExtInst, TruncInst>(next);
    bool isArithmetic =
        next && isa<BinaryOperator>(next) && isa<Constant>(next->getOperand(1));
    if (!isCast && !isArithmetic)
      return false;
    value = next->getOperand(0);
  }
  return false;
}

unsigned countVectors(const Value &address) {
  unsigned count = 0;
  for (const User *user : address.users()) {
    if (const auto *load = dyn_cast<LoadInst>(user))
      count += load->getType()->isVectorTy();
    else if (const auto *offset = dyn_cast<GetElementPtrInst>(user);
             offset && offset->hasAllConstantIndices())
      count += countVectors(*offset);
  }
  return count;
}

bool isGatheredRow(const GetElementPtrInst &address) {
  return address.getNumIndices() == 1 && !address.getType()->isVectorTy() &&
         isFromMemory(address.getOperand(1)) &&
         countVectors(address) >= fewestVectors;
}

/// An assembly of no instruction: what it returns is in one register.
void hold(GetElementPtrInst &address) {
  IRBuilder<> builder(address.getNextNode());
  auto *type = FunctionType::get(address.getType(), {address.getType()}, false);
  Value *held = builder.CreateCall(
      InlineAsm::get(type, "", "=r,0", /*hasSideEffects=*/false), {&address});
  address.replaceUsesWithIf(
      held, [&](const Use &use) { return use.getUser() != held; });
}

} // namespace

void tilewright::holdGatheredAddresses(Module &module) {
  for (Function &function : module) {
    SmallVector<GetElementPtrInst *> rows;
    for (Instruction &instruction : instructions(function))
      if (auto *address = dyn_cast<GetElementPtrInst>(&instruction);
          address && isGatheredRow(*address))
        rows.push_back(address);
    for (GetElementPtrInst *row : rows)
      hold(*row);
  }
}
