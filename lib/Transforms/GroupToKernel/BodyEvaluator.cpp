//===- BodyEvaluator.cpp - linalg bodies on whole tiles -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/BodyEvaluator.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tilewright {

Value BodyEvaluator::lookup(Value tensor, const Access &access) const {
  for (const auto &scope : llvm::reverse(known))
    for (const Known &entry : scope)
      if (entry.tensor == tensor && entry.access == access)
        return entry.tile;
  return {};
}

/// Where `access` to padding and what it surrounds is in the latter: before
/// its start or behind its end, in the padding.
static FailureOr<Access> insideOf(tensor::PadOp pad, const Access &access) {
  Value filler = pad.getConstantPaddingValue();
  bool zero = filler && (matchPattern(filler, m_Zero()) ||
                         matchPattern(filler, m_PosZeroFloat()));
  if (!isa<BlockArgument>(pad.getSource()) || !zero ||
      ShapedType::isDynamicShape(pad.getStaticLow()) ||
      ShapedType::isDynamicShape(pad.getStaticHigh()))
    return pad.emitError("stands in a register group, where it must surround "
                         "an argument by a known number of zeros");
  Access inside;
  for (auto [low, at] : llvm::zip_equal(pad.getStaticLow(), access))
    inside.push_back(at - low);
  return inside;
}

/// Lets the load behind a tile read zeros in the padding, along dimensions that
/// `ends` says of whether bounds of the load still matter there.
static LogicalResult reachOut(OpBuilder &b, tensor::PadOp pad, Value tile,
                              function_ref<bool(int64_t)> ends) {
  while (Operation *op = tile.getDefiningOp()) {
    if (!isa<tile::ReshapeOp, tile::BroadcastOp>(op))
      break;
    tile = op->getOperand(0);
  }
  auto load = tile.getDefiningOp<tile::LoadOp>();
  if (!load || !isa<BlockArgument>(load.getMemref()))
    return pad.emitError("surrounds what its own task makes, or a scalar: "
                         "borders are read of tensors of other tasks only");
  SmallVector<int64_t> dims;
  for (auto [dim, low, high] :
       llvm::enumerate(pad.getStaticLow(), pad.getStaticHigh()))
    if (low || high)
      dims.push_back(dim);
  load.setBounded(dims);
  SmallVector<int64_t> walked = load.getTileDims();
  for (auto [number, bound] : llvm::enumerate(load.getValidMutable()))
    if (llvm::is_contained(dims, walked[number]) && !ends(walked[number])) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(load);
      bound.set(arith::ConstantIndexOp::create(
          b, load.getLoc(), load.getType().getShape()[number]));
    }
  return success();
}

/// The tile of tensor `value` at `access`: computed by an operation of the
/// group, a constant, or loaded from where the task keeps it.
FailureOr<Value> BodyEvaluator::evaluate(Value value, const Access &access) {
  if (Value tile = lookup(value, access))
    return tile;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    FailureOr<Value> tile =
        memory.load(nest.root().getLoc(), nest.outer(arg), access);
    if (succeeded(tile))
      remember(value, access, *tile);
    return tile;
  }
  Operation *producer = value.getDefiningOp();
  if (auto fill = dyn_cast<linalg::FillOp>(producer)) {
    TypedAttr scalar;
    if (matchPattern(fill.getInputs()[0], m_Constant(&scalar)))
      return point.constant(fill.getLoc(), scalar);
    return fill.emitError("fills with a value that is no constant");
  }
  if (auto pad = dyn_cast<tensor::PadOp>(producer)) {
    FailureOr<Access> inside = insideOf(pad, access);
    if (failed(inside))
      return failure();
    auto source = cast<BlockArgument>(pad.getSource());
    FailureOr<Value> tile =
        memory.load(pad.getLoc(), nest.outer(source), *inside);
    // Behind the end of a loop that nothing sums over, what is read matters to
    // no one.
    auto ends = [&](int64_t dim) {
      return llvm::any_of(
          llvm::concat<const int>(point.tileDims[0], point.tileDims[1]),
          [&](int loop) {
            return point.sizes[loop] > 1 && nest.isReduction(loop) &&
                   (*inside)[dim].isFunctionOfDim(loop);
          });
    };
    if (failed(tile) || failed(reachOut(builder, pad, *tile, ends)))
      return failure();
    remember(value, access, *tile);
    return tile;
  }
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return point.constant(producer->getLoc(),
                          cast<TypedAttr>(elements.getSplatValue<Attribute>()));
  auto op = dyn_cast<linalg::GenericOp>(producer);
  if (!op)
    return producer->emitError("stands in a register group, which holds "
                               "linalg.generic, linalg.fill, a tensor.pad of "
                               "an argument, tensor.empty and splat constants "
                               "only");
  auto result = cast<OpResult>(value);
  FailureOr<Access> binding = bindingFor(op, result.getResultNumber(), access);
  if (failed(binding))
    return failure();
  FailureOr<Value> tile = evaluateProducer(result, *binding);
  if (succeeded(tile))
    remember(value, access, *tile);
  return tile;
}

FailureOr<Value> BodyEvaluator::evaluateProducer(OpResult result,
                                                 const Access &binding) {
  auto op = cast<linalg::GenericOp>(result.getOwner());
  if (op.getNumReductionLoops())
    return op.emitError("is read inside its own register group at other "
                        "points than it makes");
  Scope scope;
  Value yielded =
      op.getBody()->getTerminator()->getOperand(result.getResultNumber());
  return evaluateBody(op, binding, yielded, scope);
}

FailureOr<Value> BodyEvaluator::evaluateBody(linalg::GenericOp op,
                                             const Access &binding, Value value,
                                             Scope &scope) {
  if (Value tile = scope.lookup(value))
    return tile;
  FailureOr<Value> tile = failure();
  TypedAttr scalar;
  if (auto arg = dyn_cast<BlockArgument>(value);
      arg && arg.getOwner() == op.getBody()) {
    OpOperand *operand = op.getMatchingOpOperand(arg);
    tile = evaluate(operand->get(),
                    compose(op.getMatchingIndexingMap(operand), binding));
  } else if (matchPattern(value, m_Constant(&scalar))) {
    tile = point.constant(value.getLoc(), scalar);
  } else if (auto result = dyn_cast<OpResult>(value)) {
    tile = evaluateOp(op, binding, result, scope);
  } else if (auto arg = dyn_cast<BlockArgument>(value);
             arg && matchPattern(nest.outer(arg), m_Constant(&scalar))) {
    tile = point.constant(value.getLoc(), scalar);
  } else if (arg && arg.getType().isIndex() &&
             point.storage.contains(nest.outer(arg))) {
    tile = Value(tile::SplatOp::create(
        builder, op.getLoc(), point.tileType({1, 1}, arg.getType()),
        point.storage.at(nest.outer(arg)).memref));
  } else {
    return op.emitError("uses a scalar from outside its register group");
  }
  if (succeeded(tile))
    scope[value] = *tile;
  return tile;
}

/// Smallest shape that both broadcast to.
static SmallVector<int64_t> joined(ArrayRef<Value> tiles) {
  SmallVector<int64_t> shape = {1, 1};
  for (Value tile : tiles)
    for (auto [axis, size] : llvm::enumerate(shapeOf(tile)))
      shape[axis] = std::max(shape[axis], size);
  return shape;
}

Value createLike(OpBuilder &builder, Operation *op, ValueRange operands,
                 Type type) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(type);
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return builder.create(state)->getResult(0);
}

static bool isCast(Operation *op) {
  return isa<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp,
             arith::FPToSIOp, arith::FPToUIOp, arith::ExtSIOp, arith::ExtUIOp,
             arith::TruncIOp, arith::IndexCastOp, arith::IndexCastUIOp>(op);
}

static bool isUnsignedCast(Operation *op) {
  return isa<arith::UIToFPOp, arith::FPToUIOp, arith::ExtUIOp,
             arith::IndexCastUIOp>(op);
}

FailureOr<Value> createOnTiles(OpBuilder &builder, Operation *op,
                               ArrayRef<Value> operands, Type type) {
  Location loc = op->getLoc();
  if (isCast(op))
    return tile::ConvertOp::create(builder, loc, type, operands[0],
                                   isUnsignedCast(op))
        .getResult();
  if (isa<arith::SelectOp>(op))
    return tile::SelectOp::create(builder, loc, operands[0], operands[1],
                                  operands[2])
        .getResult();
  if (op->getNumResults() != 1 || !op->getName().getDialect() ||
      !isa<arith::ArithDialect, math::MathDialect>(*op->getName().getDialect()))
    return op->emitError("has no form on tiles: a body of an operation in "
                         "a group holds arith and math operations, "
                         "linalg.index and tensor.extract");
  return createLike(builder, op, operands, type);
}

/// One operation of a body, on tiles: arith and math take them as they are.
FailureOr<Value> BodyEvaluator::evaluateOp(linalg::GenericOp op,
                                           const Access &binding,
                                           OpResult value, Scope &scope) {
  Operation *inner = value.getOwner();
  if (auto indexOp = dyn_cast<linalg::IndexOp>(inner))
    return iota(inner->getLoc(), binding[indexOp.getDim()]);
  if (auto extract = dyn_cast<tensor::ExtractOp>(inner))
    return gather(op, binding, extract, scope);
  SmallVector<Value> operands;
  for (Value operand : inner->getOperands()) {
    FailureOr<Value> tile = evaluateBody(op, binding, operand, scope);
    if (failed(tile))
      return failure();
    operands.push_back(*tile);
  }
  SmallVector<int64_t> shape = joined(operands);
  for (Value &operand : operands)
    operand = point.broadcast(operand, shape);
  Type type = point.tileType(shape, value.getType());
  return createOnTiles(builder, inner, operands, type);
}

/// The run-time index `at` over the current tile.
FailureOr<Value> BodyEvaluator::iota(Location loc, AffineExpr at) {
  Type indexType = builder.getIndexType();
  Value result = tile::SplatOp::create(
      builder, loc, point.tileType({1, 1}, indexType), point.index(loc, at));
  for (auto [number, tileDim] : llvm::enumerate(
           llvm::concat<const int>(point.tileDims[0], point.tileDims[1]))) {
    FailureOr<int64_t> step = memory.coefficient(at, tileDim);
    if (failed(step))
      return failure();
    if (*step == 0)
      continue;
    MemoryAccess::Window place;
    for (auto [row, dim] : llvm::enumerate(point.tileDims[0]))
      place.rows.push_back(row == number ? point.sizes[dim] : 1);
    place.lanes = number < point.tileDims[0].size() ? 1 : point.sizes[tileDim];
    Value ramp = tile::IotaOp::create(
        builder, loc, point.tileType({point.sizes[tileDim]}, indexType), 0);
    ramp = memory.gatherRows(ramp, place);
    SmallVector<int64_t> shape(shapeOf(ramp));
    Value by = point.broadcast(point.constant(loc, builder.getIndexAttr(*step)),
                               shape);
    ramp = arith::MulIOp::create(builder, loc, ramp, by);
    SmallVector<int64_t> both = joined({ramp, result});
    result = arith::AddIOp::create(builder, loc, point.broadcast(ramp, both),
                                   point.broadcast(result, both));
  }
  return result;
}

/// `tensor.extract %table[...]` in a body. Each index is affine in the loops
/// (through linalg.index) or computed; a computed one is the same for the
/// whole tile, or differs per row and becomes the load's list of indices.
FailureOr<Value> BodyEvaluator::gather(linalg::GenericOp op,
                                       const Access &binding,
                                       tensor::ExtractOp extract,
                                       Scope &scope) {
  // Fills and splats stand in the group itself: any element is the same.
  DenseElementsAttr elements;
  if (matchPattern(extract.getTensor(), m_Constant(&elements)) &&
      elements.isSplat())
    return point.constant(extract.getLoc(),
                          cast<TypedAttr>(elements.getSplatValue<Attribute>()));
  auto table = dyn_cast<BlockArgument>(extract.getTensor());
  if (!table)
    return extract.emitError("reads a tensor made in its own group");
  Location loc = extract.getLoc();
  MLIRContext *context = builder.getContext();
  Type element = extract.getType();
  Access access(extract.getIndices().size(), getAffineConstantExpr(0, context));
  SmallVector<std::pair<unsigned, Value>> computed;
  for (auto [number, at] : llvm::enumerate(extract.getIndices())) {
    if (auto indexOp = at.getDefiningOp<linalg::IndexOp>()) {
      access[number] = binding[indexOp.getDim()];
      continue;
    }
    FailureOr<Value> tile = evaluateBody(op, binding, at, scope);
    if (failed(tile))
      return failure();
    computed.emplace_back(number, *tile);
  }
  const Storage &place = point.storage.at(nest.outer(table));
  if (access.empty())
    return memory.loadScalar(loc, place.memref);
  FailureOr<MemoryAccess::Window> where = memory.window(loc, place, access);
  if (failed(where))
    return failure();
  if (where->rows.size() > 1)
    return extract.emitError("gathers in a nest whose rows are those of "
                             "several loops; give all but one a register tile "
                             "of 1");
  Value rows;
  for (auto [number, tile] : computed) {
    ArrayRef<int64_t> shape = shapeOf(tile);
    if (shape[0] == 1 && shape[1] == 1) {
      where->offsets[number] = tile::ExtractOp::create(
          builder, loc, builder.getIndexType(), tile, ArrayRef<int64_t>{0, 0});
      continue;
    }
    if (rows || shape[1] != 1)
      return extract.emitError(
          "gathers by an index that differs per lane, or by two indices that "
          "differ per row; give its loops register tiles of 1");
    rows = tile::ReshapeOp::create(
        builder, loc, point.tileType({shape[0]}, builder.getIndexType()), tile);
    where->shape[0] = shape[0];
    where->dims[0] = number;
    where->valid[0] = point.validAlong(loc, point.tileDims[0].front());
  }
  if (access.size() == 1) {
    // A table of one dimension is read element by element: rank-one tiles.
    int64_t count = where->shape[0] * where->shape[1];
    Value row = tile::LoadOp::create(
        builder, loc, point.tileType({count}, element), place.memref,
        where->offsets, ArrayRef<int64_t>{0},
        ArrayRef<int64_t>{where->steps[1]}, rows,
        /*along=*/0, memory.bounds(loc, *where, /*asRow=*/true));
    return tile::ReshapeOp::create(builder, loc,
                                   point.tileType(where->shape, element), row)
        .getResult();
  }
  return tile::LoadOp::create(
             builder, loc, point.tileType(where->shape, element), place.memref,
             where->offsets, where->dims, where->steps, rows, /*along=*/0,
             memory.bounds(loc, *where))
      .getResult();
}

/// Loads what the reductions read at this point and what does not change in
/// their loops, before the loops.
LogicalResult BodyEvaluator::preload() {
  tile::GroupOp group = nest.group;
  for (const NestRead &read :
       ArrayRef(nest.reads).take_front(nest.numRootReads)) {
    if (read.access.empty() || point.dependsOnReduction(read.access))
      continue;
    auto operands = group->getOperands();
    auto found = llvm::find(operands, read.value);
    if (found == operands.end())
      continue;
    unsigned number = std::distance(operands.begin(), found);
    if (failed(
            evaluate(group.getBody().front().getArgument(number), read.access)))
      return failure();
  }
  return success();
}

} // namespace tilewright
