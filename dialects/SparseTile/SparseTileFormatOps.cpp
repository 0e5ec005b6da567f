//===- SparseTileFormatOps.cpp - held as parts, and as elements -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SparseTile/SparseTile.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright::sparse_tile;

/// Whether an op converts between two forms of one tensor.
static LogicalResult verifySame(Operation *op, RankedTensorType source,
                                RankedTensorType result) {
  if (source.getShape() == result.getShape() &&
      source.getElementType() == result.getElementType())
    return success();
  return op->emitOpError("source and result are ")
         << source << " and " << result
         << ", but must agree in shape and element type";
}

//===----------------------------------------------------------------------===//
// pack, unpack
//===----------------------------------------------------------------------===//

LogicalResult PackOp::verify() {
  RankedTensorType source = getSource().getType(), result = getType();
  if (failed(verifySame(*this, source, result))) // pack_c1
    return failure();
  TesaAttr tesa = getTesa(result);
  if (!source.getEncoding() && tesa && tesa.getNumRegions() == 1 &&
      !tesa.getFormat(0)) // pack_c2
    return success();
  return emitOpError("packs a tensor without an encoding into one region "
                     "without a format, not ")
         << source << " into " << result;
}

LogicalResult UnpackOp::verify() {
  RankedTensorType source = getSource().getType(), result = getType();
  if (failed(verifySame(*this, source, result))) // unpack_c1
    return failure();
  TesaAttr tesa = getTesa(source);
  if (!tesa || result.getEncoding()) // unpack_c2
    return emitOpError("unpacks an encoded tensor into one without an "
                       "encoding, not ")
           << source << " into " << result;
  if (llvm::any_of(tesa.getFormats(), [](Attribute a) { return !!a; }))
    return emitOpError("meets a format: sparse_tile.dequantize goes before");
  return success();
}

//===----------------------------------------------------------------------===//
// parts, assemble
//===----------------------------------------------------------------------===//

/// Whether `types` are those of the parts of `whole`.
static LogicalResult verifyParts(Operation *op, RankedTensorType whole,
                                 TypeRange types) {
  if (!getTesa(whole)) // parts_c1, assemble_c1
    return op->emitOpError("needs an encoded tensor, not ") << whole;
  SmallVector<Type> parts = TesaAttr::getParts(whole);
  if (succeeded(verifyCompatibleShapes(types, parts)) &&
      llvm::equal(types, parts, [](Type a, Type b) {
        return getElementTypeOrSelf(a) == getElementTypeOrSelf(b) &&
               !cast<RankedTensorType>(a).getEncoding();
      })) // parts_c2, assemble_c2
    return success();
  return op->emitOpError("the parts of ") << whole << " are " << parts;
}

LogicalResult PartsOp::verify() {
  return verifyParts(*this, getSource().getType(), getParts().getTypes());
}

LogicalResult AssembleOp::verify() {
  return verifyParts(*this, getType(), getParts().getTypes());
}

//===----------------------------------------------------------------------===//
// quantize, dequantize
//===----------------------------------------------------------------------===//

/// The format of `coded`, whose only region it is and whose pattern `plain`
/// has without it; null, and an error, where that is not so.
static FormatAttr formatBetween(Operation *op, RankedTensorType plain,
                                RankedTensorType coded) {
  TesaAttr tesa = getTesa(coded), other = getTesa(plain);
  if (!tesa || tesa.getNumRegions() != 1 || !tesa.getFormat(0)) {
    op->emitOpError("needs an encoding of one region with a format, not ")
        << coded;
    return {};
  }
  bool same =
      other ? other.getPatterns() == tesa.getPatterns() && !other.getFormat(0)
            : !plain.getEncoding() && isa<DenseAttr>(tesa.getPattern(0));
  if (!same) {
    op->emitOpError("changes the format alone: ")
        << plain << " and " << coded << " differ in their pattern";
    return {};
  }
  return tesa.getFormat(0);
}

/// Whether scales or zero points have the sizes and type that `format` says.
static LogicalResult verifyScales(QuantizeOp op, FormatAttr format,
                                  StringRef name, RankedTensorType found,
                                  Type element) {
  SmallVector<int64_t> shape = format.getScaleShape(op.getType().getShape());
  if (found.getElementType() == element && !found.getEncoding() &&
      succeeded(verifyCompatibleShape(found.getShape(), shape)))
    return success();
  return op.emitOpError(name)
         << " must be " << RankedTensorType::get(shape, element) << ", not "
         << found;
}

LogicalResult QuantizeOp::verify() {
  if (failed(verifySame(*this, getSource().getType(), getType())))
    return failure(); // quantize_c1
  FormatAttr format =
      formatBetween(*this, getSource().getType(), getType()); // quantize_c2
  if (!format)
    return failure();
  if (!format.getScales()) // quantize_c3
    return emitOpError("needs a format with scales, not ") << format;
  if (!!getZeroPoints() != !!format.getZeroPoints()) // quantize_c3
    return emitOpError("has zero points exactly where its format has them");
  if (failed(verifyScales(*this, format, "scales", getScales().getType(),
                          format.getScales()))) // quantize_c3
    return failure();
  return getZeroPoints()
             ? verifyScales(*this, format, "zero points",
                            getZeroPoints().getType(),
                            FormatAttr::getHeldType(format.getZeroPoints()))
             : success();
}

LogicalResult DequantizeOp::verify() {
  if (failed(verifySame(*this, getSource().getType(), getType())))
    return failure(); // dequantize_c1
  return success(!!formatBetween(*this, getType(),
                                 getSource().getType())); // dequantize_c2
}

//===----------------------------------------------------------------------===//
// decode
//===----------------------------------------------------------------------===//

LogicalResult DecodeOp::verify() {
  Type code = getCode().getType(), result = getType();
  Type zero = getZeroPoint() ? getZeroPoint().getType() : Type();
  Type scale = getScale() ? getScale().getType() : Type();
  bool isFloat = isa<Float8E4M3FNType, Float8E5M2Type>(code);
  bool isCode = isFloat ? !zero && !getIsUnsigned() : code.isSignlessInteger(8);
  bool isZero = !zero || isa<FloatType>(zero) || zero.isSignlessInteger(8) ||
                zero.isSignlessInteger(32);
  if (!isCode || !isZero || (scale && !isa<FloatType>(scale))) // decode_c1
    return emitOpError("a code is an i8, or a float of 8 bits without a zero "
                       "point; zero points are i8, i32 or floats, scales "
                       "floats");
  bool isDifference = !isFloat && !scale && !isa_and_present<FloatType>(zero) &&
                      result.isSignlessInteger(32);
  if (isa<FloatType>(result) || isDifference) // decode_c2
    return success();
  return emitOpError("the result is a float, or an i32 of integers without a "
                     "scale, not ")
         << result;
}
