//===- TileComputeOps.cpp - verifiers of computing operations -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

using namespace mlir;
using namespace tilewright::tile;

bool tilewright::tile::isValidFor(ReduceKind kind, Type elementType) {
  bool isFloat = isa<FloatType>(elementType);
  switch (kind) {
  case ReduceKind::add:
  case ReduceKind::mul:
  case ReduceKind::max:
  case ReduceKind::min:
    return true;
  case ReduceKind::maxnum:
  case ReduceKind::minnum:
    return isFloat;
  case ReduceKind::umax:
  case ReduceKind::umin:
  case ReduceKind::and_:
  case ReduceKind::or_:
  case ReduceKind::xor_:
    return !isFloat;
  }
  return false;
}

static LogicalResult verifyKind(Operation *op, ReduceKind kind, TileType type) {
  // reduce_c2, scan_c2
  if (isValidFor(kind, type.getElementType()))
    return success();
  return op->emitOpError("kind ")
         << stringifyReduceKind(kind) << " is not defined on "
         << type.getElementType();
}

//===----------------------------------------------------------------------===//
// MmaOp
//===----------------------------------------------------------------------===//

void MmaOp::build(OpBuilder &builder, OperationState &state, Value a, Value b,
                  Value c, Value meta, ArrayRef<int64_t> sparsity) {
  state.addOperands({a, b, c});
  if (meta) {
    state.addOperands(meta);
    state.addAttribute(getSparsityAttrName(state.name),
                       builder.getDenseI64ArrayAttr(sparsity));
  }
  state.addTypes(c.getType());
}

void MmaOp::build(OpBuilder &builder, OperationState &state, Value a, Value b,
                  Value c, bool aUnsigned, bool bUnsigned) {
  build(builder, state, a, b, c);
  if (aUnsigned)
    state.addAttribute(getAUnsignedAttrName(state.name), builder.getUnitAttr());
  if (bUnsigned)
    state.addAttribute(getBUnsignedAttrName(state.name), builder.getUnitAttr());
}

/// Positions of two bits in a packed element of `meta`.
static constexpr int64_t kPackedPositions = 8;

/// mma_c4
static LogicalResult verifySparsity(MmaOp op) {
  std::optional<ArrayRef<int64_t>> sparsity = op.getSparsity();
  if (!op.getMeta() && !sparsity)
    return success();
  if (!op.getMeta() || !sparsity)
    return op.emitOpError("needs meta and sparsity together");
  if (sparsity->size() != 2 || (*sparsity)[0] <= 0 ||
      (*sparsity)[0] >= (*sparsity)[1])
    return op.emitOpError("sparsity must be [n, m] with 0 < n < m");
  auto meta = cast<TileType>(op.getMeta().getType());
  ArrayRef<int64_t> a = op.getA().getType().getShape();
  int64_t each = kPackedPositions;
  bool isPacked = meta.getElementType().isInteger(16) && (*sparsity)[1] == 4 &&
                  a[1] % each == 0 &&
                  meta.getShape() == ArrayRef<int64_t>{a[0], a[1] / each};
  if (meta.getShape() != a && !isPacked)
    return op.emitOpError("meta must have the shape of a, or be of i16 with "
                          "an element for eight neighbours of groups of 4, "
                          "got ")
           << meta << " and " << op.getA().getType();
  return success();
}

/// mma_c2
static bool shapesMatch(MmaOp op) {
  ArrayRef<int64_t> a = op.getA().getType().getShape();
  ArrayRef<int64_t> b = op.getB().getType().getShape();
  ArrayRef<int64_t> c = op.getC().getType().getShape();
  if (a[0] != c[0] || b[1] != c[1])
    return false;
  if (std::optional<ArrayRef<int64_t>> sparsity = op.getSparsity())
    return a[1] * (*sparsity)[1] == b[0] * (*sparsity)[0] &&
           a[1] % (*sparsity)[0] == 0;
  return a[1] == b[0];
}

/// mma_c3
static bool elementsMatch(MmaOp op) {
  Type c = op.getC().getType().getElementType();
  for (Type type : {op.getA().getType().getElementType(),
                    op.getB().getType().getElementType()})
    if (!type.isIntOrFloat() || !c.isIntOrFloat() ||
        isa<FloatType>(type) != isa<FloatType>(c) ||
        type.getIntOrFloatBitWidth() > c.getIntOrFloatBitWidth() ||
        (type != c &&
         type.getIntOrFloatBitWidth() == c.getIntOrFloatBitWidth()))
      return false;
  return true;
}

LogicalResult MmaOp::verify() {
  // mma_c1
  for (Value tile : {getA(), getB(), getC()})
    if (cast<TileType>(tile.getType()).getRank() != 2)
      return emitOpError("takes tiles of rank 2, got ") << tile.getType();
  if (failed(verifySparsity(*this)))
    return failure();
  if (!shapesMatch(*this))
    return emitOpError("shapes do not match: a is ")
           << getA().getType() << ", b " << getB().getType() << ", c "
           << getC().getType();
  if (!elementsMatch(*this))
    return emitOpError("multiplies floats into floats or integers into "
                       "integers that are at least as wide, got ")
           << getA().getType() << ", " << getB().getType() << " and "
           << getC().getType();
  // mma_c5
  if ((getAUnsigned() || getBUnsigned()) &&
      isa<FloatType>(getC().getType().getElementType()))
    return emitOpError("a_unsigned and b_unsigned go with integers, got ")
           << getA().getType() << " and " << getB().getType();
  // mma_c6
  ArrayRef<int64_t> a = getA().getType().getBlocks(),
                    b = getB().getType().getBlocks(),
                    c = getC().getType().getBlocks();
  bool none = a.empty() && b.empty() && c.empty();
  bool all = !a.empty() && !b.empty() && !c.empty();
  if (!none && !(all && a[0] == c[0] && a[1] == b[0] && b[1] == c[1]))
    return emitOpError("blocks do not match: a is ")
           << getA().getType() << ", b " << getB().getType() << ", c "
           << getC().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// ReduceOp, ScanOp
//===----------------------------------------------------------------------===//

/// reduce_c1
static bool areDistinctDims(ArrayRef<int64_t> dims, int64_t rank) {
  SmallVector<bool> seen(rank);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank || seen[dim])
      return false;
    seen[dim] = true;
  }
  return true;
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto source = cast<TileType>(adaptor.getSource().getType());
  if (!areDistinctDims(adaptor.getDims(), source.getRank()))
    return emitOptionalError(location,
                             "'tile.reduce' op dims must be distinct "
                             "dimensions of ",
                             source);
  SmallVector<int64_t> shape(source.getShape());
  for (int64_t dim : adaptor.getDims())
    shape[dim] = 1;
  types.push_back(TileType::get(shape, source.getElementType()));
  return success();
}

/// reduce_c3: a layout is free.
bool ReduceOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange actual) {
  auto wanted = cast<TileType>(inferred.front());
  auto given = dyn_cast<TileType>(actual.front());
  return given && given.getShape() == wanted.getShape() &&
         given.getElementType() == wanted.getElementType();
}

LogicalResult ReduceOp::verify() {
  return verifyKind(*this, getKind(), getSource().getType());
}

LogicalResult ScanOp::verify() {
  // scan_c1
  auto dim = static_cast<int64_t>(getDim());
  if (dim < 0 || dim >= getSource().getType().getRank())
    return emitOpError("dim ")
           << dim << " is no dimension of " << getSource().getType();
  return verifyKind(*this, getKind(), getSource().getType());
}

//===----------------------------------------------------------------------===//
// SelectOp, ConvertOp
//===----------------------------------------------------------------------===//

LogicalResult SelectOp::verify() {
  // select_c1
  if (getCondition().getType().getShape() != getResult().getType().getShape())
    return emitOpError("condition ")
           << getCondition().getType() << " and values "
           << getResult().getType() << " differ in shape";
  return success();
}

LogicalResult ConvertOp::verify() {
  // convert_c1
  TileType source = getSource().getType(), result = getResult().getType();
  if (source.getShape() != result.getShape() ||
      (source.getLayout() != result.getLayout() &&
       source.getElementType() != result.getElementType()))
    return emitOpError("changes either element types or the layout, got ")
           << source << " and " << result;
  return success();
}
