//===- EpilogueTiles.cpp - elementwise operations in a kernel -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Plan/EpilogueTiles.h"

#include "lib/Transforms/GroupToKernel/BodyEvaluator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tilewright {

SetVector<Value> operandsOf(Value result, const EpilogueOps &ops) {
  SetVector<Value> made, found;
  made.insert(result);
  for (linalg::GenericOp op : ops) {
    for (Value input : op.getDpsInputs())
      if (!made.contains(input))
        found.insert(input);
    made.insert(op->getResult(0));
  }
  return found;
}

std::string nameOf(const EpilogueOps &ops) {
  for (linalg::GenericOp op : ops)
    for (Operation &inner : *op.getBody())
      if (isa<math::MathDialect>(inner.getDialect()))
        return inner.getName().stripDialect().str();
  linalg::GenericOp first = ops.front();
  return isa<arith::AddFOp>(first.getBody()->front()) ? "add" : "map";
}

namespace {

/// The tiles of tensors where one store writes.
class StoredTile {
public:
  StoredTile(tile::StoreOp store, Value result) : b(store), store(store) {
    tiles[result] = store.getTile();
  }

  /// Memory that holds a tensor.
  void hold(Value tensor, Value memref) { arguments[tensor] = memref; }

  /// Computes one of the operations.
  LogicalResult compute(linalg::GenericOp op) {
    DenseMap<Value, Value> scope;
    for (OpOperand *input : op.getDpsInputOperands())
      scope[op.getMatchingBlockArgument(input)] =
          read(input->get(), op.getMatchingIndexingMap(input));
    for (Operation &inner : op.getBody()->without_terminator()) {
      FailureOr<Value> value = computeOne(&inner, scope);
      if (failed(value))
        return failure();
      scope[inner.getResult(0)] = *value;
    }
    FailureOr<Value> last =
        valueOf(op.getBody()->getTerminator()->getOperand(0), scope, op);
    if (failed(last))
      return failure();
    tiles[op->getResult(0)] = *last;
    return success();
  }

  /// Stores what an operation makes.
  void finish(linalg::GenericOp last) {
    store.getTileMutable().set(tiles.at(last->getResult(0)));
  }

private:
  tile::TileType typeOf(Type element) {
    return tile::TileType::get(shape(), element);
  }
  ArrayRef<int64_t> shape() { return store.getTile().getType().getShape(); }

  /// The tile of a tensor that an operation reads through a map.
  Value read(Value tensor, AffineMap map) {
    if (Value tile = tiles.lookup(tensor))
      return tile;
    return load(arguments.at(tensor), map);
  }

  /// Loads what the tile needs of an argument, repeated along the others of its
  /// dimensions.
  Value load(Value memref, AffineMap map) {
    Location loc = store.getLoc();
    Type element = cast<MemRefType>(memref.getType()).getElementType();
    SmallVector<Value> offsets, valid;
    SmallVector<int64_t> dims, sizes, spread;
    for (AffineExpr at : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(at);
      offsets.push_back(dim ? Value(store.getOffsets()[dim.getPosition()])
                            : arith::ConstantIndexOp::create(b, loc, 0));
    }
    for (auto [number, dim] : llvm::enumerate(store.getTileDims())) {
      std::optional<unsigned> at =
          map.getResultPosition(getAffineDimExpr(dim, b.getContext()));
      spread.push_back(at ? shape()[number] : 1);
      if (!at)
        continue;
      dims.push_back(*at);
      sizes.push_back(shape()[number]);
      if (!store.getValid().empty())
        valid.push_back(store.getValid()[number]);
    }
    if (dims.empty()) {
      Value scalar = memref::LoadOp::create(b, loc, memref, offsets);
      return tile::SplatOp::create(b, loc, typeOf(element), scalar);
    }
    auto tileType = [&](ArrayRef<int64_t> sizes) {
      return tile::TileType::get(sizes, element);
    };
    size_t first = offsets.size() - dims.size();
    if (llvm::equal(dims, llvm::seq<int64_t>(first, offsets.size())))
      dims.clear(); // as it is by default
    Value tile =
        tile::LoadOp::create(b, loc, tileType(sizes), memref, offsets, dims,
                             ArrayRef<int64_t>(), Value(), 0, valid);
    if (spread != sizes)
      tile = tile::ReshapeOp::create(b, loc, tileType(spread), tile);
    if (ArrayRef(spread) != shape())
      tile = tile::BroadcastOp::create(b, loc, typeOf(element), tile);
    return tile;
  }

  FailureOr<Value> valueOf(Value value, DenseMap<Value, Value> &scope,
                           Operation *user) {
    if (Value tile = scope.lookup(value))
      return tile;
    TypedAttr constant;
    if (!matchPattern(value, m_Constant(&constant)))
      return user->emitError("uses a scalar from outside, which a kernel that "
                             "computes it behind its own results has not");
    auto elements =
        DenseElementsAttr::get(typeOf(value.getType()), Attribute(constant));
    Value tile = arith::ConstantOp::create(b, store.getLoc(), elements);
    scope[value] = tile;
    return tile;
  }

  FailureOr<Value> computeOne(Operation *inner, DenseMap<Value, Value> &scope) {
    if (inner->hasTrait<OpTrait::ConstantLike>())
      return valueOf(inner->getResult(0), scope, inner);
    SmallVector<Value> operands;
    for (Value operand : inner->getOperands()) {
      FailureOr<Value> tile = valueOf(operand, scope, inner);
      if (failed(tile))
        return failure();
      operands.push_back(*tile);
    }
    return createOnTiles(b, inner, operands,
                         typeOf(inner->getResult(0).getType()));
  }

  OpBuilder b;
  tile::StoreOp store;
  DenseMap<Value, Value> tiles, arguments;
};

/// The type of the memory that holds a tensor.
MemRefType memoryOf(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return MemRefType::get(type.getShape(), type.getElementType());
}

} // namespace

LogicalResult computeEpilogue(tile::KernelOp kernel, unsigned place,
                              Value result, const EpilogueOps &ops,
                              ArrayRef<Value> operands) {
  for (auto [number, operand] : llvm::enumerate(operands))
    if (failed(kernel.insertArgument(place + number, memoryOf(operand), {},
                                     operand.getLoc())))
      return failure();
  unsigned last = place + operands.size();
  Value target = kernel.getEntryBlock().getArgument(last);
  SmallVector<tile::StoreOp> stores;
  for (Operation *user : target.getUsers())
    if (auto store = dyn_cast<tile::StoreOp>(user))
      stores.push_back(store);
  for (tile::StoreOp store : stores) {
    StoredTile at(store, result);
    for (auto [number, operand] : llvm::enumerate(operands))
      at.hold(operand, kernel.getEntryBlock().getArgument(place + number));
    for (linalg::GenericOp op : ops)
      if (failed(at.compute(op)))
        return failure();
    at.finish(ops.back());
  }
  SmallVector<Type> types(kernel.getArgumentTypes());
  Type element = getElementTypeOrSelf(ops.back()->getResult(0).getType());
  types[last] = MemRefType::Builder(cast<MemRefType>(types[last]))
                    .setElementType(element);
  target.setType(types[last]);
  kernel.setFunctionType(
      FunctionType::get(kernel.getContext(), types, TypeRange{}));
  return success();
}

} // namespace tilewright
