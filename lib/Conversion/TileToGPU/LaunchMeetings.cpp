//===- LaunchMeetings.cpp - behind which launches blocks meet -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/LaunchMeetings.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tilewright;

LaunchMeetings::LaunchMeetings(gpu::GPUFuncOp function) : shared(function) {
  haveRoles = function
                  .walk([](Operation *op) {
                    return op->hasAttr(tile::decisions::kRoles)
                               ? WalkResult::interrupt()
                               : WalkResult::advance();
                  })
                  .wasInterrupted();
  visit(function.getBody().front());
}

/// Launches and copies that an operation is, or holds, and numbers that it
/// reads and writes.
static SmallVector<Operation *> workIn(Operation *op) {
  SmallVector<Operation *> found;
  op->walk([&](Operation *inner) {
    if (isa<tile::LaunchOp, memref::CopyOp>(inner) || getSharedNumber(inner))
      found.push_back(inner);
  });
  return found;
}

/// Whether a number is written. Who reads one is waited for by its writers
/// (`OrderedReads`).
static bool isStored(Operation *op) {
  return isa<memref::StoreOp>(op) && getSharedNumber(op);
}

/// Whether all blocks do something in an operation that reads or writes
/// memory, by themselves or by launches.
static bool isForAll(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        bool touches = inner->getNumRegions() == 0 &&
                       !isMemoryEffectFree(inner) && !teamOf(inner) &&
                       !inner->hasTrait<OpTrait::IsTerminator>();
        return touches ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

ArrayRef<Attribute> LaunchMeetings::behind(Operation *op) const {
  auto found = meetings.find(op);
  return found == meetings.end() ? ArrayRef<Attribute>()
                                 : ArrayRef<Attribute>(found->second);
}

/// Behind the last of what is pending, which is over then.
void LaunchMeetings::meetAll(Work &pending) {
  if (!pending.empty())
    meetings[pending.back().place] = {Attribute()};
  pending.clear();
}

void LaunchMeetings::meet(Team team, Work &pending) {
  Operation *last = nullptr;
  for (Pending &work : pending)
    if (work.team == team && !work.met) {
      last = work.place;
      work.met = true;
    }
  if (last && !llvm::is_contained(behind(last), Attribute()))
    meetings[last].push_back(team);
}

/// Each team meets; all do where something is all blocks'.
void LaunchMeetings::meetEach(Work &pending) {
  if (llvm::any_of(pending, [](const Pending &work) { return !work.team; }))
    return meetAll(pending);
  for (Pending &work : pending)
    meet(work.team, pending);
}

/// What is in a region, and what reads numbers, finds all launches done.
void LaunchMeetings::visit(Block &block) {
  Work pending;
  for (Operation &op : block) {
    bool isEnd = op.hasTrait<OpTrait::IsTerminator>() &&
                 !isa<gpu::ReturnOp>(op) &&
                 !op.getParentOp()->hasAttr(tile::decisions::kRoles);
    if (isa<tile::LaunchOp, memref::CopyOp>(op))
      take(&op, pending);
    else if (isEnd)
      end(block, pending);
    else if (op.getNumRegions() > 0)
      enter(op, pending);
    else if (!isa<gpu::ReturnOp>(op) && !isMemoryEffectFree(&op))
      touch(&op, pending);
  }
}

/// A number finds done what the blocks have begun that read or write it.
void LaunchMeetings::touch(Operation *op, Work &pending) {
  Team team = teamOf(op);
  bool all = !team || llvm::any_of(pending, [&](const Pending &work) {
    return work.team != team && getSharedNumber(op) && needs(op, work.op);
  });
  all ? meetAll(pending) : meet(team, pending);
  if (team && isStored(op))
    pending.push_back({op, op, team, true});
}

/// Whether one block runs all of a launch. Not where warps have roles: what
/// only loads does not meet the others.
bool LaunchMeetings::hasOneTask(Operation *op) const {
  auto launch = dyn_cast<tile::LaunchOp>(op);
  return launch && !haveRoles && llvm::all_of(launch.getGrid(), [](Value n) {
           return isConstantIntValue(n, 1);
         });
}

/// The block that runs what a launch needs runs the launch, too.
void LaunchMeetings::follow(Operation *op, Operation *home, Work &pending) {
  followers.insert(op);
  SmallVector<Operation *> before = beside.lookup(home);
  beside[op] = std::move(before);
  pending.push_back({op, op, teamOf(op), false, home});
}

/// A launch or a copy waits for what it needs.
void LaunchMeetings::take(Operation *op, Work &pending) {
  Team team = teamOf(op);
  bool all = false, own = false, isOne = hasOneTask(op);
  llvm::SmallPtrSet<Operation *, 2> homes;
  for (const Pending &work : pending)
    if (!(work.team == team && work.met) && needs(op, work.op)) {
      (work.team == team && team ? own : all) = true;
      homes.insert(work.team == team ? work.home : nullptr);
    }
  if (isOne && homes.size() == 1 && *homes.begin())
    return follow(op, *homes.begin(), pending);
  if (all)
    meetAll(pending);
  else if (own)
    meet(team, pending);
  for (const Pending &work : pending)
    if (work.team == team && !work.met && !isFollower(work.op))
      beside[op].push_back(work.op);
  pending.push_back({op, op, team, false, isOne ? op : nullptr});
}

/// A region finds done what its teams have begun, and what it needs of others.
void LaunchMeetings::enter(Operation &op, Work &pending) {
  SmallVector<Operation *> inner = workIn(&op);
  bool all = isForAll(&op) || llvm::any_of(pending, [&](const Pending &work) {
               return !work.team || llvm::any_of(inner, [&](Operation *each) {
                 return teamOf(each) != work.team && needs(each, work.op);
               });
             });
  if (all)
    meetAll(pending);
  for (Operation *each : inner)
    meet(teamOf(each), pending);
  for (Region &region : op.getRegions())
    for (Block &nested : region)
      visit(nested);
  nests.push_back(&op);
  for (Operation *each : inner)
    if (teamOf(each) && (!getSharedNumber(each) || isStored(each)))
      pending.push_back({each, &op, teamOf(each), true});
}

/// At the end of a region its teams meet; in a loop all blocks do where one
/// needs, in the next iteration, what another one has done in this one.
void LaunchMeetings::end(Block &block, Work &pending) {
  Operation *parent = block.getParentOp();
  bool all =
      isa<LoopLikeOpInterface>(parent) &&
      llvm::any_of(workIn(parent), [&](Operation *next) {
        return llvm::any_of(pending, [&](const Pending &work) {
          return teamOf(next) != work.team && needs(next, work.op, parent);
        });
      });
  all ? meetAll(pending) : meetEach(pending);
}

static bool isNumber(Value value) {
  return value.getType().isIntOrIndexOrFloat();
}

/// What an operation writes, and all that it touches. Through a pointer, a
/// launch may write what it is given to read.
static std::pair<SmallVector<Value>, SmallVector<Value>>
accessesOf(Operation *op) {
  if (Value number = getSharedNumber(op))
    return {isStored(op) ? SmallVector<Value>{number} : SmallVector<Value>(),
            {number}};
  if (auto launch = dyn_cast<tile::LaunchOp>(op)) {
    SmallVector<Value> wrote = llvm::to_vector(launch.getOutputs());
    for (Value input : launch.getInputs())
      if (!isNumber(input) && !isa<BaseMemRefType>(input.getType()))
        wrote.push_back(input);
    return {wrote, llvm::to_vector(llvm::make_filter_range(
                       launch.getKernelOperands(),
                       [](Value value) { return !isNumber(value); }))};
  }
  auto copy = cast<memref::CopyOp>(op);
  return {{copy.getTarget()}, {copy.getSource(), copy.getTarget()}};
}

bool LaunchMeetings::needs(Operation *op, Operation *before,
                           Operation *around) const {
  auto meetAny = [&](ArrayRef<Value> some, ArrayRef<Value> others) {
    return llvm::any_of(some, [&](Value one) {
      return llvm::any_of(
          others, [&](Value other) { return mayMeet(one, other, around); });
    });
  };
  auto [wrote, touched] = accessesOf(before);
  auto [writes, touches] = accessesOf(op);
  return meetAny(wrote, touches) || meetAny(touched, writes);
}

bool LaunchMeetings::mayWrite(Operation *op, memref::LoadOp load) const {
  return llvm::any_of(workIn(op), [&](Operation *each) {
    return llvm::any_of(accessesOf(each).first, [&](Value written) {
      return mayMeet(written, load.getMemref());
    });
  });
}

bool LaunchMeetings::mayMeet(Value one, Value other, Operation *around) const {
  one = getRoot(one);
  other = getRoot(other);
  auto argument = dyn_cast<BlockArgument>(one),
       second = dyn_cast<BlockArgument>(other);
  if (argument && second && argument != second &&
      argument.getOwner() == second.getOwner())
    if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()))
      if (loop != around && areApart(loop))
        return false;
  return mayMeet(bytesOf(one), bytesOf(other));
}

bool LaunchMeetings::mayMeet(ArrayRef<BufferBytes> some,
                             ArrayRef<BufferBytes> others) const {
  return llvm::any_of(some, [&](const BufferBytes &one) {
    return llvm::any_of(others, [&](const BufferBytes &other) {
      if (one.buffer == other.buffer)
        return one.overlaps(other);
      // Of what is no argument of the kernel nothing is known.
      return !isParameter(one.buffer) || !isParameter(other.buffer) ||
             shared.mayMeet(one.buffer, other.buffer);
    });
  });
}

/// Whether buffers that a loop hands round differ at any time: they do at
/// first, and the next iteration has the same ones, in any order.
bool LaunchMeetings::areApart(scf::ForOp loop) const {
  llvm::SmallPtrSet<Value, 8> yielded;
  for (Value value : loop.getYieldedValues())
    if (!isNumber(value) &&
        (!llvm::is_contained(loop.getRegionIterArgs(), value) ||
         !yielded.insert(value).second))
      return false;
  SmallVector<Value> inits = llvm::to_vector(llvm::make_filter_range(
      loop.getInitArgs(), [](Value value) { return !isNumber(value); }));
  for (size_t first : llvm::seq(inits.size()))
    for (Value second : ArrayRef(inits).drop_front(first + 1))
      if (mayMeet(inits[first], second))
        return false;
  return true;
}

SmallVector<BufferBytes> LaunchMeetings::bytesOf(Value memref) const {
  llvm::SmallPtrSet<Value, 8> seen;
  SmallVector<BufferBytes> found;
  addBytes(memref, seen, found);
  return found;
}

void LaunchMeetings::addBytes(Value memref, llvm::SmallPtrSetImpl<Value> &seen,
                              SmallVectorImpl<BufferBytes> &found) const {
  Value root = getRoot(memref);
  if (!seen.insert(root).second)
    return;
  // A buffer that a loop hands on: as it came, or as an iteration leaves it.
  if (auto handed = getHandedOn(root)) {
    addBytes(handed->first, seen, found);
    addBytes(handed->second, seen, found);
    return;
  }
  auto view = root.getDefiningOp<memref::ViewOp>();
  if (!view) {
    found.push_back({root});
    return;
  }
  BufferBytes bytes = getBytes(view);
  if (!isParameter(bytes.buffer))
    bytes = {bytes.buffer};
  found.push_back(bytes);
}
