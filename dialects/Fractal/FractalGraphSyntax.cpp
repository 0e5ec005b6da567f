//===- FractalGraphSyntax.cpp - how reads are written ---------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Fractal/FractalDetail.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

ParseResult tilewright::fractal::shared::parseReads(
    OpAsmParser &parser,
    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &sources,
    SmallVectorImpl<Type> &types, DenseI64ArrayAttr &targets, ArrayAttr &maps,
    ArrayAttr &conditions, DenseBoolArrayAttr &indirect) {
  SmallVector<int64_t> numbers;
  SmallVector<Attribute> places, sets;
  SmallVector<bool> marks;
  auto parseOne = [&]() -> ParseResult {
    AffineMapAttr map;
    if (parser.parseOperand(sources.emplace_back()) ||
        parser.parseKeyword("for") ||
        parser.parseInteger(numbers.emplace_back()) ||
        parser.parseKeyword("at") || parser.parseAttribute(map))
      return failure();
    places.push_back(map);
    IntegerSetAttr set;
    if (succeeded(parser.parseOptionalKeyword("where")) &&
        parser.parseAttribute(set))
      return failure();
    sets.push_back(set ? Attribute(set) : parser.getBuilder().getUnitAttr());
    marks.push_back(succeeded(parser.parseOptionalKeyword("indirect")));
    return parser.parseColonType(types.emplace_back());
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  Builder &b = parser.getBuilder();
  targets = b.getDenseI64ArrayAttr(numbers);
  maps = b.getArrayAttr(places);
  conditions = b.getArrayAttr(sets);
  indirect = b.getDenseBoolArrayAttr(marks);
  return success();
}

void tilewright::fractal::shared::printReads(
    OpAsmPrinter &p, Operation *, OperandRange sources, TypeRange types,
    DenseI64ArrayAttr targets, ArrayAttr maps, ArrayAttr conditions,
    DenseBoolArrayAttr indirect) {
  p << '(';
  for (size_t i = 0; i < sources.size(); ++i) {
    p << (i ? ", " : "") << sources[i] << " for " << targets[i] << " at "
      << maps[i];
    if (!isa<UnitAttr>(conditions[i]))
      p << " where " << conditions[i];
    p << (indirect[i] ? " indirect : " : " : ") << types[i];
  }
  p << ')';
}
