//===- SparseTilePatterns.cpp - which elements are kept -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SparseTile/SparseTile.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright::sparse_tile;

using EmitError = function_ref<InFlightDiagnostic()>;

/// What `count` elements are in units of `size`; unknown stays unknown.
static int64_t inUnits(int64_t count, int64_t size) {
  return ShapedType::isDynamic(count) ? count
                                      : llvm::divideCeilSigned(count, size);
}

static LogicalResult verifyUnit(EmitError emitError, StringRef name,
                                ArrayRef<int64_t> unit,
                                ArrayRef<int64_t> shape) {
  if (unit.size() == shape.size() &&
      llvm::all_of(unit, [](int64_t size) { return size > 0; }))
    return success();
  return emitError() << name << " [" << unit
                     << "] must have a positive number for each of the "
                     << shape.size() << " dimensions";
}

static LogicalResult verifyMatrix(EmitError emitError, StringRef pattern,
                                  ArrayRef<int64_t> shape) {
  if (shape.size() == 2)
    return success();
  return emitError() << pattern << " is a pattern of matrices, not of tensors "
                     << "of rank " << shape.size();
}

/// Row starts and columns of compressed rows, as scipy.sparse has them.
static void addCompressedRows(SmallVectorImpl<Type> &parts, int64_t rows,
                              MLIRContext *context) {
  Type i32 = IntegerType::get(context, 32);
  parts.push_back(RankedTensorType::get({ShapedType::kDynamic}, i32));
  int64_t starts = ShapedType::isDynamic(rows) ? rows : rows + 1;
  parts.push_back(RankedTensorType::get({starts}, i32));
}

//===----------------------------------------------------------------------===//
// Dense, dynamic: held as they are
//===----------------------------------------------------------------------===//

LogicalResult DenseAttr::verifyShape(EmitError, ArrayRef<int64_t>) const {
  return success();
}

SmallVector<Type> DenseAttr::getParts(ArrayRef<int64_t> shape,
                                      Type values) const {
  return {RankedTensorType::get(shape, values)};
}

LogicalResult DynamicAttr::verifyShape(EmitError emitError,
                                       ArrayRef<int64_t> shape) const {
  return verifyUnit(emitError, "unit", getUnit(), shape); // dynamic_c1
}

SmallVector<Type> DynamicAttr::getParts(ArrayRef<int64_t> shape,
                                        Type values) const {
  return {RankedTensorType::get(shape, values)};
}

//===----------------------------------------------------------------------===//
// N:M
//===----------------------------------------------------------------------===//

LogicalResult NMAttr::verify(EmitError emitError, int64_t n, int64_t m, int64_t,
                             ArrayRef<int64_t>) {
  if (n > 0 && n <= m && m <= 32768) // nm_c1
    return success();
  return emitError() << "nm must keep at least 1 of at most 32768 neighbours "
                     << "and no more than there are, not " << n << " of " << m;
}

LogicalResult NMAttr::verifyShape(EmitError emitError,
                                  ArrayRef<int64_t> shape) const {
  int64_t rank = shape.size();
  if (getAxis() < 0 || getAxis() >= rank) // nm_c2
    return emitError() << "axis " << getAxis()
                       << " of nm is none of the tensor's " << rank
                       << " dimensions";
  if (getUnit().empty())
    return success();
  return verifyUnit(emitError, "unit", getUnit(), shape); // nm_c3
}

SmallVector<Type> NMAttr::getParts(ArrayRef<int64_t> shape, Type values) const {
  SmallVector<int64_t> units, elements;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    int64_t count = inUnits(size, getUnitSize(dim));
    if (static_cast<int64_t>(dim) == getAxis()) {
      int64_t windows = inUnits(count, getM());
      count = ShapedType::isDynamic(windows) ? windows : windows * getN();
    }
    units.push_back(count);
    elements.push_back(ShapedType::isDynamic(count) ? count
                                                    : count * getUnitSize(dim));
  }
  Type position = IntegerType::get(getContext(), getM() > 128 ? 16 : 8);
  return {RankedTensorType::get(elements, values),
          RankedTensorType::get(units, position)};
}

//===----------------------------------------------------------------------===//
// Compressed rows
//===----------------------------------------------------------------------===//

LogicalResult BlockAttr::verify(EmitError emitError, ArrayRef<int64_t> shape) {
  if (shape.size() == 2 && shape[0] > 0 && shape[1] > 0) // block_c1
    return success();
  return emitError() << "a block has two positive sizes, not [" << shape << "]";
}

LogicalResult BlockAttr::verifyShape(EmitError emitError,
                                     ArrayRef<int64_t> shape) const {
  return verifyMatrix(emitError, "block", shape); // block_c2
}

SmallVector<Type> BlockAttr::getParts(ArrayRef<int64_t> shape,
                                      Type values) const {
  int64_t sizes[] = {ShapedType::kDynamic, getShape()[0], getShape()[1]};
  SmallVector<Type> parts{RankedTensorType::get(sizes, values)};
  addCompressedRows(parts, inUnits(shape[0], getShape()[0]), getContext());
  return parts;
}

LogicalResult MaskAttr::verifyShape(EmitError emitError,
                                    ArrayRef<int64_t> shape) const {
  return verifyMatrix(emitError, "mask", shape); // mask_c1
}

SmallVector<Type> MaskAttr::getParts(ArrayRef<int64_t> shape,
                                     Type values) const {
  SmallVector<Type> parts{
      RankedTensorType::get({ShapedType::kDynamic}, values)};
  addCompressedRows(parts, shape[0], getContext());
  return parts;
}
