//===- NestAnalysis.cpp - what a register group iterates over -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/NestAnalysis.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tilewright {

Access compose(AffineMap map, ArrayRef<AffineExpr> binding) {
  Access result;
  for (AffineExpr expr : map.getResults())
    result.push_back(expr.replaceDims(binding));
  return result;
}

std::pair<AffineDimExpr, AffineExpr> loopAt(AffineExpr made, AffineExpr at) {
  if (auto dim = dyn_cast<AffineDimExpr>(made))
    return {dim, at};
  auto own = dyn_cast<AffineBinaryOpExpr>(made);
  auto other = dyn_cast<AffineBinaryOpExpr>(at);
  if (own && other && own.getKind() == other.getKind() &&
      own.getRHS() == other.getRHS() && isa<AffineConstantExpr>(own.getRHS()))
    return loopAt(own.getLHS(), other.getLHS());
  return {AffineDimExpr(nullptr), AffineExpr()};
}

FailureOr<Access> bindingFor(linalg::GenericOp op, unsigned result,
                             ArrayRef<AffineExpr> access) {
  AffineMap map = op.getIndexingMapsArray()[op.getNumDpsInputs() + result];
  Access binding(op.getNumLoops());
  bool covered = true;
  for (auto [expr, at] : llvm::zip_equal(map.getResults(), access)) {
    auto [dim, point] = loopAt(expr, at);
    covered &= bool(dim);
    if (!dim)
      continue;
    AffineExpr &known = binding[dim.getPosition()];
    covered &= !known || known == point;
    known = point;
  }
  for (auto [at, kind] : llvm::zip_equal(binding, op.getIteratorTypesArray()))
    covered &= at || kind == utils::IteratorType::reduction;
  if (!covered)
    return op.emitError("writes its result through the map ")
           << textOf(map)
           << "; a nest needs a permutation of its parallel loops";
  return binding;
}

static tile::RTileAttr getRTile(Operation *op) {
  return tile::decisions::kRtile.get(op);
}

SmallVector<unsigned> NestAnalysis::order() const {
  SmallVector<unsigned> result;
  if (rtile && !rtile.getOrder().empty()) {
    for (int64_t dim : rtile.getOrder())
      result.push_back(dim);
    return result;
  }
  for (unsigned dim = 0; dim < extents.size(); ++dim)
    result.push_back(dim);
  return result;
}

int64_t NestAnalysis::registerTile(unsigned dim) const {
  if (auto sizes = rtile ? rtile.getSizes("register") : std::nullopt;
      sizes && isPadded())
    return (*sizes)[dim];
  return taskTile(dim, "register");
}

int64_t NestAnalysis::unroll(unsigned dim) const {
  auto sizes = rtile ? rtile.getSizes("unroll") : std::nullopt;
  return sizes ? (*sizes)[dim] : 1;
}

bool NestAnalysis::isDepth(unsigned dim) const {
  auto sizes = rtile ? rtile.getSizes("mma") : std::nullopt;
  return sizes && isReduction(dim) && (*sizes)[dim] > 1;
}

int64_t NestAnalysis::taskTile(unsigned dim, StringRef level) const {
  auto sizes = rtile ? rtile.getSizes(level) : std::nullopt;
  if (!sizes)
    return extents[dim];
  if (isDynamic(dim) || ShapedType::isDynamic((*sizes)[dim]))
    return (*sizes)[dim];
  return std::min((*sizes)[dim], extents[dim]);
}

SmallVector<int64_t> NestAnalysis::tails(unsigned dim) const {
  int64_t left = registerTile(dim);
  SmallVector<int64_t> result;
  if (auto all = tile::decisions::kTails.get(root()))
    result.assign(cast<DenseI64ArrayAttr>(all[dim]).asArrayRef());
  else
    for (int64_t tile = llvm::bit_floor(uint64_t(left)); tile; tile /= 2)
      result.push_back(tile);
  llvm::erase_if(result, [&](int64_t tile) { return tile >= left; });
  if (left > 1 && (result.empty() || result.back() != 1))
    result.push_back(1);
  return result;
}

std::optional<int64_t> NestAnalysis::bound(unsigned dim) const {
  if (!isDynamic(dim))
    return extents[dim];
  auto all = tile::decisions::kBounds.get(root());
  if (!all || all[dim] < 0)
    return std::nullopt;
  return all[dim];
}

/// Loops of run-time extents need tiles that the plan states.
LogicalResult NestAnalysis::checkTiles() {
  for (unsigned dim = 0; dim < extents.size(); ++dim)
    if (isDynamic(dim) && ShapedType::isDynamic(registerTile(dim)))
      return root().emitError("has no register tile for its loop d")
             << dim << ", whose extent is known at run time only";
  auto bounds = root()->getAttr(tile::decisions::kBounds);
  auto all = dyn_cast_if_present<DenseI64ArrayAttr>(bounds);
  if (bounds && (!all || size_t(all.size()) != extents.size()))
    return root().emitError("has a tile.bounds that is not one number for each "
                            "of its loops: ")
           << bounds;
  auto tails = root()->getAttr(tile::decisions::kTails);
  if (!tails)
    return success();
  auto lists = dyn_cast<ArrayAttr>(tails);
  auto isList = [](Attribute entry) {
    auto list = dyn_cast<DenseI64ArrayAttr>(entry);
    return list &&
           llvm::all_of(list.asArrayRef(),
                        [](int64_t tile) { return tile > 0; }) &&
           llvm::is_sorted(list.asArrayRef(), std::greater<>());
  };
  if (!lists || lists.size() != extents.size() || !llvm::all_of(lists, isList))
    return root().emitError("has a tile.tails that is not one decreasing list "
                            "of tiles for each of its loops: ")
           << tails;
  return success();
}

Access NestAnalysis::resultAccess(OpResult value) const {
  auto op = cast<linalg::GenericOp>(value.getOwner());
  AffineMap map =
      op.getIndexingMapsArray()[op.getNumDpsInputs() + value.getResultNumber()];
  return compose(map, bindings.lookup(op));
}

std::pair<linalg::GenericOp, unsigned> findWith(ArrayRef<NestAnalysis> nests,
                                                StringRef attribute) {
  for (auto [number, nest] : llvm::enumerate(nests)) {
    tile::GroupOp group = nest.group;
    for (auto op : group.getBody().front().getOps<linalg::GenericOp>())
      if (op->hasAttr(attribute))
        return {op, number};
  }
  return {};
}

OpOperand *skipFlags(linalg::GenericOp op) {
  auto number = tile::decisions::kSkip.get(op);
  return number ? op.getDpsInputOperand(number.getInt()) : nullptr;
}

/// The root is the operation that carries the nest's tile. Reductions over
/// the same space share its loops.
LogicalResult NestAnalysis::findRoots() {
  for (auto op : group.getBody().front().getOps<linalg::GenericOp>())
    if (getRTile(op)) {
      if (!roots.empty())
        return op.emitError("is the second operation with a tile.rtile in its "
                            "register group, which has one root");
      roots.push_back(op);
    }
  if (roots.empty())
    return group.emitError("has no operation with a tile.rtile: the phase "
                           "`plan` gives one to the root of each nest");
  rtile = getRTile(root());
  extents = root().getStaticLoopRanges();
  iterators = root().getIteratorTypesArray();
  for (auto op : group.getBody().front().getOps<linalg::GenericOp>()) {
    if (op == root() || op.getNumReductionLoops() == 0)
      continue;
    if (op.getStaticLoopRanges() != extents ||
        op.getIteratorTypesArray() != iterators)
      return op.emitError(
          "reduces over another iteration space than the root of its register "
          "group; put it into a register group of its own");
    roots.push_back(op);
  }
  return checkTiles();
}

/// Binds what stands downstream of the roots: an operation that reads a bound
/// value through plain dimensions iterates over the same points.
LogicalResult NestAnalysis::bindConsumers() {
  for (auto op : group.getBody().front().getOps<linalg::GenericOp>()) {
    if (bindings.contains(op))
      continue;
    Access binding(op.getNumLoops());
    bool downstream = false;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto value = dyn_cast<OpResult>(operand->get());
      if (!value || !bindings.contains(value.getOwner()))
        continue;
      downstream = true;
      AffineMap map = op.getMatchingIndexingMap(operand);
      for (auto [expr, at] : llvm::zip(map.getResults(), resultAccess(value)))
        if (auto dim = dyn_cast<AffineDimExpr>(expr))
          binding[dim.getPosition()] = at;
    }
    if (!downstream)
      continue;
    if (llvm::any_of(binding, [](AffineExpr expr) { return !expr; }))
      return op.emitError("has a loop that does not follow from the root of "
                          "its register group; put it into a register group "
                          "of its own");
    bindings[op] = binding;
  }
  return success();
}

void NestAnalysis::visitReads(Value value, Access access) {
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    reads.push_back({outer(arg), std::move(access)});
    return;
  }
  // Places in the padding are before the start, or behind the end, of what it
  // surrounds.
  if (auto pad = value.getDefiningOp<tensor::PadOp>()) {
    for (auto [low, at] : llvm::zip_equal(pad.getStaticLow(), access))
      at = at - low;
    return visitReads(pad.getSource(), std::move(access));
  }
  auto producer = value.getDefiningOp<linalg::GenericOp>();
  if (!producer || llvm::is_contained(roots, producer))
    return;
  auto binding =
      bindingFor(producer, cast<OpResult>(value).getResultNumber(), access);
  if (failed(binding))
    return;
  bindings.try_emplace(producer, *binding);
  visitOperands(producer, *binding);
}

void NestAnalysis::visitOperands(linalg::GenericOp op, const Access &binding) {
  for (OpOperand &operand : op->getOpOperands())
    if (op.payloadUsesValueFromOperand(&operand))
      visitReads(operand.get(),
                 compose(op.getMatchingIndexingMap(&operand), binding));
  // No body uses it: the loop over blocks around the nest reads it.
  if (OpOperand *flags = skipFlags(op))
    visitReads(flags->get(),
               compose(op.getMatchingIndexingMap(flags), binding));
  // A gather reads its table anywhere: only a whole table can be local.
  op.getBody()->walk([&](tensor::ExtractOp extract) {
    if (auto arg = dyn_cast<BlockArgument>(extract.getTensor()))
      reads.push_back({outer(arg), {}});
  });
}

/// An edited number may name no input.
static LogicalResult checkSkip(linalg::GenericOp op) {
  auto number = tile::decisions::kSkip.get(op);
  if (!number ||
      (number.getInt() >= 0 && number.getInt() < op.getNumDpsInputs()))
    return success();
  return op.emitError("has tile.skip = ")
         << number.getInt() << ", but its inputs are numbered from 0 to "
         << op.getNumDpsInputs() - 1;
}

FailureOr<NestAnalysis> NestAnalysis::get(tile::GroupOp group) {
  NestAnalysis nest;
  nest.group = group;
  if (failed(nest.findRoots()))
    return failure();
  for (auto op : group.getBody().front().getOps<linalg::GenericOp>())
    if (failed(checkSkip(op)))
      return failure();
  Access identity;
  for (unsigned dim = 0; dim < nest.extents.size(); ++dim)
    identity.push_back(getAffineDimExpr(dim, group.getContext()));
  for (linalg::GenericOp root : nest.roots)
    nest.bindings[root] = identity;
  for (linalg::GenericOp root : nest.roots)
    nest.visitOperands(root, identity);
  nest.numRootReads = nest.reads.size();
  if (failed(nest.bindConsumers()))
    return failure();
  for (Value value : group.getBody().front().getTerminator()->getOperands()) {
    auto op = value.getDefiningOp<linalg::GenericOp>();
    if (!op)
      return group.emitError("yields a value that no linalg.generic makes");
    if (!nest.bindings.contains(op))
      return op.emitError("is yielded by a register group whose root it "
                          "neither feeds nor follows");
    if (!llvm::is_contained(nest.roots, op))
      nest.visitOperands(op, Access(nest.bindings[op]));
  }
  return nest;
}

bool dependsOn(linalg::GenericOp op, Value value, const Access &binding,
               int dim) {
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    Access access = compose(
        op.getMatchingIndexingMap(op.getMatchingOpOperand(arg)), binding);
    return llvm::any_of(
        access, [&](AffineExpr expr) { return expr.isFunctionOfDim(dim); });
  }
  Operation *maker = value.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(maker))
    return binding[index.getDim()].isFunctionOfDim(dim);
  return llvm::any_of(maker->getOperands(), [&](Value operand) {
    return dependsOn(op, operand, binding, dim);
  });
}

} // namespace tilewright
