//===- TaskLoop.cpp - loops that each task can run alone ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Programs/TaskLoop.h"
#include "dialects/Tile/TileDecisions.h"
#include "dialects/Tile/TileTasks.h"
#include "lib/Analysis/BufferBytes.h"
#include "lib/Analysis/SharedArguments.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tilewright;
namespace decisions = tile::decisions;

tile::KernelOp TaskLoop::getKernel(tile::LaunchOp launch) {
  return symbols.lookup<tile::KernelOp>(launch.getKernel());
}

//===----------------------------------------------------------------------===//
// What the loop holds
//===----------------------------------------------------------------------===//

/// Attributes of kernels that say how a block is made.
static bool haveSameBlocks(tile::KernelOp one, tile::KernelOp other) {
  auto isSame = [&](StringRef name) {
    return one->getAttr(name) == other->getAttr(name);
  };
  return isSame(decisions::kThreads) && isSame(decisions::kWarps);
}

bool TaskLoop::isSameGrid(tile::LaunchOp launch, tile::LaunchOp other) {
  if (launch.getGrid().size() != other.getGrid().size())
    return false;
  return llvm::all_of(
      llvm::zip_equal(launch.getGrid(), other.getGrid()), [](auto pair) {
        auto [one, another] = pair;
        auto number = getConstantIntValue(one);
        return one == another ||
               (number && number == getConstantIntValue(another));
      });
}

std::string TaskLoop::obstacleOf(tile::LaunchOp launch) {
  tile::KernelOp kernel = getKernel(launch);
  if (!kernel)
    return "it starts a program";
  if (kernel.getCluster() || kernel->hasAttr(decisions::kRounded))
    return "blocks of a cluster work together";
  if (kernel->hasAttr(decisions::kSpecialized))
    return "warps that only load have barriers that are set up once";
  bool waits =
      kernel
          ->walk([](Operation *op) {
            bool isStep = isa<tile::BarrierOp, tile::SemaphorePostOp,
                              tile::SemaphoreTakeOp, tile::LaunchOp>(op);
            return isStep ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  if (waits)
    return "its tasks wait for each other";
  if (!isSameGrid(launch, launches.front()) ||
      !haveSameBlocks(kernel, getKernel(launches.front())))
    return "its launches have different grids or blocks";
  for (Value bound : launch.getGrid())
    if (!loop.isDefinedOutsideOfLoop(bound) && !getConstantIntValue(bound))
      return "its grid is another one in each iteration";
  return "";
}

std::string TaskLoop::findLaunches() {
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto launch = dyn_cast<tile::LaunchOp>(op))
      launches.push_back(launch);
    else if (op.getNumRegions() > 0 || !isMemoryEffectFree(&op))
      return ("it does more than launch: " + op.getName().getStringRef()).str();
  }
  if (launches.empty())
    return "it launches nothing";
  for (Value value : loop.getInitArgs())
    if (!isa<MemRefType>(value.getType()))
      return "it hands numbers on";
  for (auto [number, bound] : llvm::enumerate(launches.front().getGrid()))
    if (getConstantIntValue(bound) != 1)
      coordinates.push_back(number);
  for (tile::LaunchOp launch : launches)
    if (std::string reason = obstacleOf(launch); !reason.empty())
      return reason;
  return "";
}

//===----------------------------------------------------------------------===//
// Which memory
//===----------------------------------------------------------------------===//

/// None for views of which places do not follow from their indices alone. One
/// element may be another one in each iteration: nothing follows from its
/// place.
std::optional<SmallVector<TaskLoop::Place>>
TaskLoop::describe(memref::SubViewOp view) {
  SmallVector<Place> places;
  llvm::SmallBitVector dropped = view.getDroppedDims();
  int64_t kept = 0;
  for (auto [dim, offset, size, stride] :
       llvm::enumerate(view.getMixedOffsets(), view.getMixedSizes(),
                       view.getMixedStrides())) {
    auto number = getConstantIntValue(offset),
         count = getConstantIntValue(size);
    if (getConstantIntValue(stride) != 1 || (!number && count != 1))
      return std::nullopt;
    bool isOne = dropped.test(dim) || !number;
    places.push_back({number.value_or(0), isOne ? -1 : kept});
    kept += !dropped.test(dim);
  }
  return places;
}

bool TaskLoop::isHandedOn(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner() == loop.getBody();
}

void TaskLoop::addRoots(Value memref, Operand &operand) {
  if (!operand.roots.insert(memref).second || !isHandedOn(memref))
    return;
  unsigned number =
      cast<BlockArgument>(memref).getArgNumber() - loop.getNumInductionVars();
  addRoots(loop.getInitArgs()[number], operand);
  addRoots(loop.getYieldedValues()[number], operand);
}

void TaskLoop::addOperands(tile::LaunchOp launch) {
  for (auto [number, value] : llvm::enumerate(launch.getKernelOperands())) {
    if (value.getType().isIntOrIndexOrFloat())
      continue;
    bool isWritten = number >= launch.getInputs().size();
    Operand operand = {launch, unsigned(number), isWritten, {}, {}, {}};
    auto view = value.getDefiningOp<memref::SubViewOp>();
    auto said = view ? describe(view) : std::nullopt;
    Value whole = said ? view.getSource() : value;
    if (said)
      operand.places = std::move(*said);
    else if (auto type = dyn_cast<MemRefType>(value.getType()))
      for (int64_t dim : llvm::seq(type.getRank()))
        operand.places.push_back({0, dim});
    operand.whole = whole.getType();
    addRoots(whole, operand);
    operands.push_back(std::move(operand));
  }
}

/// Whether it is a buffer of the function, of which no other one is a part.
static bool isWhole(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return isa<memref::AllocOp, memref::GetGlobalOp>(value.getDefiningOp());
  return argument.getOwner()->isEntryBlock() &&
         isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
}

/// Whether bytes of one may be bytes of the other.
static bool mayBeSame(Value one, Value other) {
  one = getRoot(one);
  other = getRoot(other);
  auto piece = one.getDefiningOp<memref::ViewOp>(),
       another = other.getDefiningOp<memref::ViewOp>();
  Value source = piece ? piece.getSource() : one,
        second = another ? another.getSource() : other;
  if (source != second)
    return !isWhole(source) || !isWhole(second);
  if (!piece || !another)
    return true;
  return getBytes(piece).overlaps(getBytes(another));
}

/// Whether a kernel can be given the buffer: a whole one, of which views are
/// made in the kernel, not one that a loop around hands on.
bool TaskLoop::isKnown(Value root) {
  root = getRoot(root);
  if (auto piece = root.getDefiningOp<memref::ViewOp>())
    root = getRoot(piece.getSource());
  return isHandedOn(root) || isWhole(root);
}

bool TaskLoop::mayMeet(const Operand &one, const Operand &other) {
  return llvm::any_of(one.roots, [&](Value root) {
    return !isHandedOn(root) && llvm::any_of(other.roots, [&](Value second) {
      return !isHandedOn(second) && mayBeSame(root, second);
    });
  });
}

//===----------------------------------------------------------------------===//
// Which elements
//===----------------------------------------------------------------------===//

/// What reads or writes an operand in its kernel, or looks at it otherwise.
SmallVector<Operation *> TaskLoop::accessesOf(const Operand &operand,
                                              bool areWrites) {
  tile::LaunchOp launch = operand.launch;
  BlockArgument argument = getKernel(launch).getInputs()[operand.number];
  SmallVector<Operation *> found;
  for (Operation *user : argument.getUsers())
    if (!isa<memref::DimOp>(user) && !(areWrites && isa<tile::LoadOp>(user)))
      found.push_back(user);
  return found;
}

/// Which elements of what the operand is a view of an access may touch.
std::optional<TaskBox> TaskLoop::findPlaces(const Operand &operand,
                                            Operation *access) {
  tile::LaunchOp launch = operand.launch;
  std::optional<TaskBox> box = findBox(getKernel(launch), access);
  if (!box)
    return std::nullopt;
  TaskBox whole;
  for (const Place &place : operand.places) {
    if (place.dim < 0) {
      SmallVector<int64_t> none(launch.getGrid().size(), 0);
      whole.push_back({std::move(none), place.offset, place.offset});
      continue;
    }
    TaskNumber number = (*box)[place.dim];
    number.least += place.offset;
    number.most += place.offset;
    whole.push_back(std::move(number));
  }
  return whole;
}

/// Whether equal places are the same memory in all that both may be.
bool TaskLoop::haveSamePlaces(const Operand &one, const Operand &other) {
  if (one.whole != other.whole)
    return false;
  return llvm::all_of(one.roots, [&](Value root) {
    return llvm::all_of(other.roots, [&](Value second) {
      if (isHandedOn(root) || isHandedOn(second) || !mayBeSame(root, second))
        return true;
      auto piece = root.getDefiningOp<memref::ViewOp>(),
           another = second.getDefiningOp<memref::ViewOp>();
      // What is made in the loop is another place in each iteration.
      return (root == second && loop.isDefinedOutsideOfLoop(root)) ||
             (piece && another && piece.getSource() == another.getSource() &&
              getConstantIntValue(piece.getByteShift()) &&
              getConstantIntValue(piece.getByteShift()) ==
                  getConstantIntValue(another.getByteShift()));
    });
  });
}

/// Whether a write and each other access of what may be the same memory are, in
/// different tasks, of different elements.
bool TaskLoop::areTasksApart(const Operand &one, const Operand &other) {
  if (!haveSamePlaces(one, other))
    return false;
  for (Operation *write : accessesOf(one, /*areWrites=*/true)) {
    std::optional<TaskBox> box = findPlaces(one, write);
    for (Operation *access : accessesOf(other, /*areWrites=*/false)) {
      std::optional<TaskBox> there = findPlaces(other, access);
      if (!box || !there || !areApart(*box, *there, coordinates))
        return false;
    }
  }
  return true;
}

std::string TaskLoop::findObstacle() {
  if (std::string reason = findLaunches(); !reason.empty())
    return reason;
  for (tile::LaunchOp launch : launches)
    addOperands(launch);
  for (const Operand &operand : operands)
    if (!llvm::all_of(operand.roots, [&](Value root) { return isKnown(root); }))
      return "a buffer of it is one of several, by what the host decides";
  for (const Operand &one : operands)
    for (const Operand &other : operands)
      if (one.isWritten && mayMeet(one, other) && !areTasksApart(one, other)) {
        tile::LaunchOp launch = other.launch;
        return ("a task of @" + launch.getKernel() +
                " touches what another one has")
            .str();
      }
  return "";
}
