//===- Consumer.cpp - the warps that empty slots -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/AsyncToGPU/WarpRoles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tilewright {

namespace {

bool isWgmma(Operation *op) {
  auto unit = tile::decisions::kUnit.get(op);
  return isa<tile::MmaOp>(op) && unit && unit.getValue() == "wgmma";
}

/// Whether a load makes an operand that products read in shared memory.
bool staysShared(tile::LoadOp load) {
  auto level = dyn_cast_or_null<tile::LevelAttr>(load.getType().getLayout());
  return level && level.getName() == "shared" &&
         llvm::all_of(load->getUsers(), isWgmma);
}

/// Whether all that reads the ring's slots are products in the background.
bool readByProducts(const RoleRing &ring) {
  llvm::SmallDenseSet<Value> bases;
  for (const TensorCopy &copy : ring.copies)
    bases.insert(copy.target.base);
  bool only = true;
  scf::ForOp(ring.ring.loop).walk([&](tile::LoadOp load) {
    OpBuilder b(load);
    auto place = findSharedPlace(b, load.getMemref());
    if (place && bases.contains(place->base))
      only &= staysShared(load);
  });
  return only;
}

/// Whether a product is only added to, and carried to where its chain begins.
bool staysInChain(scf::ForOp loop, tile::MmaOp mma) {
  OpOperand &use = *mma->use_begin();
  if (auto next = dyn_cast<tile::MmaOp>(use.getOwner()))
    return isWgmma(next) && next.getC() == mma.getResult();
  if (!isa<scf::YieldOp>(use.getOwner()) ||
      use.getOwner()->getBlock() != loop.getBody())
    return false;
  Value begin = mma.getC();
  while (auto before = begin.getDefiningOp<tile::MmaOp>())
    begin = before.getC();
  return begin == loop.getRegionIterArg(use.getOperandNumber());
}

/// Products that add to what the loop carries, and that nothing else of a step
/// reads or adds to; empty where there are others.
SmallVector<tile::MmaOp> chainedProducts(scf::ForOp loop) {
  SmallVector<tile::MmaOp> products;
  bool nested = false;
  loop.walk(
      [&](tile::MmaOp mma) { nested |= mma->getBlock() != loop.getBody(); });
  if (nested)
    return {};
  for (auto mma : loop.getBody()->getOps<tile::MmaOp>()) {
    auto argument = dyn_cast<BlockArgument>(mma.getC());
    bool starts = argument && argument.getOwner() == loop.getBody();
    bool goesOn =
        llvm::is_contained(products, mma.getC().getDefiningOp<tile::MmaOp>());
    if (!isWgmma(mma) || !(starts || goesOn) || !mma.getC().hasOneUse() ||
        !mma->hasOneUse())
      return {};
    if (!staysInChain(loop, mma))
      return {};
    // Registers that are multiplied must not change while this goes on.
    auto load = mma.getA().getDefiningOp<tile::LoadOp>();
    if (!load || !staysShared(load))
      return {};
    products.push_back(mma);
  }
  return products;
}

/// Erases the copies behind tokens that nobody waits for, the last ones first.
void eraseIssues(ArrayRef<Value> tokens) {
  llvm::SmallSetVector<Operation *, 4> makers; // one may make several tokens
  for (Value token : llvm::reverse(tokens))
    if (Operation *op = token.getDefiningOp())
      makers.insert(op);
  for (Operation *op : makers)
    if (op->use_empty() && isa<tile::AsyncOp, scf::IfOp>(op))
      op->erase();
}

/// Makes the consumers' loop.
class Consumer {
public:
  Consumer(const RoleRing &ring, Value thread, SlotState start)
      : ring(ring), thread(thread), start(start), loop(ring.ring.loop), b(loop),
        loc(loop.getLoc()) {}

  SlotState run() {
    startFromNothing();
    findPeer();
    SmallVector<Value> inits, tokens;
    for (auto [place, init] : llvm::enumerate(loop.getInitArgs()))
      (isToken(place) ? tokens : inits).push_back(init);
    unsigned own = inits.size();
    inits.append({start.first, start.second});
    if (ring.pending)
      inits.push_back(start.first);
    auto made = scf::ForOp::create(b, loc, loop.getLowerBound(),
                                   loop.getUpperBound(), loop.getStep(), inits);
    made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    moveBody(made, own);
    replaceResults(made);
    if (!tasksAround(loop) && !ring.memory)
      freeBuffers();
    else if (ring.pending)
      giveBackLast(made, made.getResult(own + 2));
    loop.erase();
    eraseIssues(tokens);
    return {made.getResult(own), made.getResult(own + 1)};
  }

private:
  /// Sums that begin at zero need no zeros: the first product of the first step
  /// adds to nothing.
  void startFromNothing() {
    if (!ring.pending || !runsOnce())
      return;
    for (OpOperand &init : loop.getInitsMutable()) {
      BlockArgument argument = loop.getTiedLoopRegionIterArg(&init);
      auto constant = init.get().getDefiningOp<arith::ConstantOp>();
      auto elements = constant
                          ? dyn_cast<SplatElementsAttr>(constant.getValue())
                          : SplatElementsAttr();
      if (!elements || !argument.hasOneUse() ||
          !isZero(elements.getSplatValue<Attribute>()))
        continue;
      auto mma = dyn_cast<tile::MmaOp>(*argument.user_begin());
      if (!mma || !mma->hasAttr(tile::decisions::kPending))
        continue;
      mma->setAttr(tile::decisions::kStarts, b.getUnitAttr());
      init.set(ub::PoisonOp::create(b, loc, init.get().getType()));
    }
  }

  static bool isZero(Attribute value) {
    if (auto number = dyn_cast<FloatAttr>(value))
      return number.getValue().isPosZero();
    return isa<IntegerAttr>(value) &&
           cast<IntegerAttr>(value).getValue().isZero();
  }

  /// Whether the loop surely has a step.
  bool runsOnce() {
    Value steps = loop.getUpperBound();
    if (std::optional<int64_t> number = getConstantIntValue(steps))
      return *number > 0;
    auto branch = dyn_cast<scf::IfOp>(loop->getParentOp());
    auto compare =
        branch ? branch.getCondition().getDefiningOp<arith::CmpIOp>() : nullptr;
    return compare && compare.getPredicate() == arith::CmpIPredicate::sgt &&
           compare.getLhs() == steps &&
           getConstantIntValue(compare.getRhs()) == 0 &&
           loop->getBlock() == branch.thenBlock();
  }

  bool isToken(unsigned place) {
    return llvm::is_contained(ring.ring.tokens, place);
  }

  void moveBody(scf::ForOp made, unsigned own) {
    Value step = made.getInductionVar();
    Value slot = made.getRegionIterArg(own),
          phase = made.getRegionIterArg(own + 1);
    b.setInsertionPointToStart(made.getBody());
    waitBarrier(b, loc, ring.fullBarrier(b, loc, slot), phase);
    Value number = arith::IndexCastOp::create(b, loc, b.getIndexType(), slot);
    for (tile::AwaitOp await : ring.ring.awaits)
      await.erase();
    SmallVector<Value> results;
    unsigned next = 0;
    for (auto [place, argument] : llvm::enumerate(loop.getRegionIterArgs()))
      if (!isToken(place)) {
        results.push_back(loop.getYieldedValues()[place]);
        argument.replaceAllUsesWith(made.getRegionIterArg(next++));
      }
    loop.getBody()->getTerminator()->erase();
    scf::IfOp(ring.ring.issue).erase();
    loop.getInductionVar().replaceAllUsesWith(step);
    made.getBody()->getOperations().splice(made.getBody()->end(),
                                           loop.getBody()->getOperations());
    useSlot(made, number);
    if (tile::MmaOp product = onlyProduct(made))
      b.setInsertionPointAfter(product); // what follows reads registers alone
    else
      b.setInsertionPointToEnd(made.getBody());
    giveBack(made, own);
    b.setInsertionPointToEnd(made.getBody());
    auto [after, afterPhase] =
        nextSlot(b, loc, slot, phase, ring.ring.getStages());
    results.append({after, afterPhase});
    if (ring.pending)
      results.push_back(slot);
    // What the loop yields may be one of its own arguments.
    for (Value &result : results)
      if (auto argument = dyn_cast<BlockArgument>(result);
          argument && argument.getOwner() == loop.getBody())
        result = made.getRegionIterArgs()[ownPlace(argument)];
    scf::YieldOp::create(b, loc, results);
  }

  /// The product that alone reads slots, and is waited for where it stands:
  /// null where there are others.
  tile::MmaOp onlyProduct(scf::ForOp made) {
    if (ring.pending || !ring.byWarpgroup)
      return nullptr;
    SmallVector<tile::MmaOp> products;
    made.walk([&](tile::MmaOp mma) { products.push_back(mma); });
    bool alone = products.size() == 1 &&
                 products.front()->getBlock() == made.getBody() &&
                 !products.front()->hasAttr(tile::decisions::kPending);
    return alone ? products.front() : nullptr;
  }

  /// Where an argument of the old loop stands among those of the new one.
  unsigned ownPlace(BlockArgument argument) {
    unsigned place = argument.getArgNumber() - 1;
    return place - llvm::count_if(ring.ring.tokens, [&](unsigned token) {
             return token < place;
           });
  }

  /// `step mod stages` is carried already.
  void useSlot(scf::ForOp made, Value number) {
    for (auto rest :
         llvm::make_early_inc_range(made.getBody()->getOps<arith::RemUIOp>()))
      if (rest.getLhs() == made.getInductionVar() &&
          getConstantIntValue(rest.getRhs()) == ring.ring.getStages()) {
        rest.replaceAllUsesWith(number);
        rest.erase();
      }
  }

  /// Tells the producers that a slot may be filled again.
  void giveBack(scf::ForOp made, unsigned own) {
    Value speaks = speaker();
    Value slot = made.getRegionIterArg(own);
    if (ring.pending) {
      slot = made.getRegionIterArg(own + 2);
      Value late =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                made.getInductionVar(), made.getLowerBound());
      speaks = arith::AndIOp::create(b, loc, speaks, late);
    }
    tellProducers(speaks, slot);
  }

  /// The slot of the last step, whose products are waited for behind the loop.
  void giveBackLast(scf::ForOp made, Value slot) {
    Value speaks = speaker();
    if (std::optional<int64_t> steps =
            getConstantIntValue(made.getUpperBound());
        !steps || *steps <= 0) {
      Value any =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                made.getUpperBound(), made.getLowerBound());
      speaks = arith::AndIOp::create(b, loc, speaks, any);
    }
    tellProducers(speaks, slot);
  }

  /// Each of the first threads that speak tells one block of the cluster.
  void findPeer() {
    if (ring.blocks == 1)
      return;
    Value last = makeI32(b, loc, ring.blocks - 1);
    Value block = arith::MinUIOp::create(b, loc, laneOfGroup(), last);
    auto type = LLVM::LLVMPointerType::get(
        b.getContext(),
        static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
    peer = NVVM::MapaOp::create(b, loc, type, ring.barriers, block);
  }

  /// The thread's number in the warpgroup or warp that gives slots back.
  Value laneOfGroup() {
    int64_t group = ring.byWarpgroup ? 128 : 32;
    return arith::AndIOp::create(b, loc, thread, makeI32(b, loc, group - 1));
  }

  /// Whether a thread speaks for its warpgroup or warp, all of which is done.
  Value speaker() {
    if (!ring.byWarpgroup)
      NVVM::SyncWarpOp::create(b, loc, makeI32(b, loc, -1));
    Value lane = laneOfGroup();
    if (!peer)
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                                   makeI32(b, loc, 0));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, lane,
                                 makeI32(b, loc, ring.blocks));
  }

  void tellProducers(Value when, Value slot) {
    auto branch = scf::IfOp::create(b, loc, when, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    auto scope = peer ? NVVM::MemScopeKind::CLUSTER : NVVM::MemScopeKind::CTA;
    NVVM::MBarrierArriveOp::create(
        b, loc, Type(), ring.emptyBarrier(b, loc, slot, peer), Value(), scope);
  }

  /// What follows may use the slots for something else, once all are here.
  void freeBuffers() {
    gpu::BarrierOp::create(b, loc);
    for (const TensorCopy &copy : ring.copies)
      if (auto view = copy.target.base.getDefiningOp<memref::ViewOp>())
        view->setAttr(tile::decisions::kRing, b.getUnitAttr());
  }

  void replaceResults(scf::ForOp made) {
    unsigned next = 0;
    b.setInsertionPointAfter(made);
    for (auto [place, result] : llvm::enumerate(loop.getResults())) {
      if (isToken(place))
        continue;
      Value value = made.getResult(next);
      auto mma = made.getYieldedValues()[next++].getDefiningOp<tile::MmaOp>();
      if (ring.pending && mma && mma->hasAttr(tile::decisions::kPending))
        value = tile::MmaWaitOp::create(b, loc, value.getType(), value);
      result.replaceAllUsesWith(value);
    }
  }

  const RoleRing &ring;
  Value thread;
  SlotState start;
  scf::ForOp loop;
  OpBuilder b;
  Location loc;
  /// The ring's mbarriers in the block that this thread tells; null: its own.
  Value peer;
};

} // namespace

void analyzeReaders(RoleRing &ring) {
  ring.byWarpgroup = readByProducts(ring);
  SmallVector<tile::MmaOp> products = chainedProducts(ring.ring.loop);
  if (!ring.byWarpgroup || products.empty())
    return;
  ring.pending = products.size();
  Builder b(products.front().getContext());
  for (tile::MmaOp mma : products)
    mma->setAttr(tile::decisions::kPending, b.getI64IntegerAttr(ring.pending));
}

SlotState rewriteConsumer(const RoleRing &ring, Value thread, SlotState start) {
  return Consumer(ring, thread, start).run();
}

} // namespace tilewright
