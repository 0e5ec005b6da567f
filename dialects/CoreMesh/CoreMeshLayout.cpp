//===- CoreMeshLayout.cpp - where a tensor lies --------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CoreMesh/CoreMeshDetail.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tilewright::coremesh;

using EmitError = function_ref<InFlightDiagnostic()>;

#define GET_ATTRDEF_CLASSES
#include "dialects/CoreMesh/CoreMeshAttributes.cpp.inc"

void CoreMeshDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/CoreMesh/CoreMeshAttributes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// SplitAttr
//===----------------------------------------------------------------------===//

LogicalResult SplitAttr::verify(EmitError emitError, Axis axis, Order order,
                                bool skewed, int64_t rotate, Deal deal,
                                ArrayRef<int64_t> blocks) {
  bool isWrong = llvm::any_of(blocks, [&](int64_t size) {
    return size < (blocks.size() == 1 ? 1 : 0);
  });
  if (rotate < 0 || isWrong) // split_c1
    return emitError() << "a split has a rotation and sizes of 0 or more, and "
                       << "a block of 1 or more";
  bool isMoved = skewed || rotate != 0;
  if ((blocks.size() > 1 && isMoved) ||
      (deal != Deal::block && (isMoved || !blocks.empty()))) // split_c2
    return emitError() << "an uneven, cyclic or balanced split has neither "
                       << "skew, rotation nor block";
  return success();
}

static void printSplit(AsmPrinter &p, SplitAttr split) {
  p << stringifyAxis(split.getAxis());
  if (split.isRing())
    p << " ring";
  if (split.getSkewed())
    p << " skew";
  if (split.getRotate() != 0)
    p << " rotate " << split.getRotate();
  if (split.getDeal() != Deal::block)
    p << ' ' << stringifyDeal(split.getDeal());
  if (split.isUneven()) {
    p << " uneven [";
    llvm::interleaveComma(split.getBlocks(), p);
    p << ']';
  } else if (!split.getBlocks().empty()) {
    p << " block " << split.getBlocks().front();
  }
}

/// `block 5` or `uneven [3, 3, 1]`, after the word.
static ParseResult parseSizes(AsmParser &parser, bool isUneven,
                              SmallVectorImpl<int64_t> &sizes) {
  SMLoc where = parser.getCurrentLocation();
  bool isSecond = !sizes.empty();
  auto parseOne = [&] { return parser.parseInteger(sizes.emplace_back()); };
  if (isUneven ? parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                                parseOne)
               : parseOne())
    return failure();
  if (isSecond || sizes.empty())
    return parser.emitError(where, "expected the sizes of blocks once");
  return success();
}

static FailureOr<SplitAttr> parseSplit(AsmParser &parser) {
  SMLoc where = parser.getCurrentLocation();
  StringRef axis, word;
  Order order = Order::linear;
  Deal deal = Deal::block;
  bool skewed = false;
  int64_t rotate = 0;
  SmallVector<int64_t> blocks;
  if (parser.parseOptionalKeyword(&axis, {"y", "x"}))
    return parser.emitError(where, "expected an axis, 'y' or 'x', or '*'");
  while (succeeded(
      parser.parseOptionalKeyword(&word, {"ring", "skew", "rotate", "block",
                                          "uneven", "cyclic", "balanced"}))) {
    ParseResult parsed = success();
    if (word == "ring")
      order = Order::ring;
    else if (word == "skew")
      skewed = true;
    else if (word == "rotate")
      parsed = parser.parseInteger(rotate);
    else if (word == "block")
      parsed = parseSizes(parser, /*isUneven=*/false, blocks);
    else if (word == "uneven")
      parsed = parseSizes(parser, /*isUneven=*/true, blocks);
    else
      deal = *symbolizeDeal(word);
    if (parsed)
      return failure();
  }
  auto fail = [&] { return parser.emitError(where); };
  auto split =
      SplitAttr::getChecked(fail, parser.getContext(), *symbolizeAxis(axis),
                            order, skewed, rotate, deal, blocks);
  if (!split)
    return failure();
  return split;
}

Attribute SplitAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<SplitAttr> split = parseSplit(parser);
  if (failed(split) || parser.parseGreater())
    return {};
  return *split;
}

void SplitAttr::print(AsmPrinter &p) const {
  p << '<';
  printSplit(p, *this);
  p << '>';
}

//===----------------------------------------------------------------------===//
// LayoutAttr
//===----------------------------------------------------------------------===//

/// So that lcm(H, W), the number of skewed blocks, is a number of 64 bits.
static constexpr int64_t kLongestSide = (int64_t(1) << 31) - 1;

LogicalResult LayoutAttr::verify(EmitError emitError, int64_t height,
                                 int64_t width, ArrayRef<Attribute> splits,
                                 int64_t atY, int64_t atX) {
  if (height < 1 || width < 1) // layout_c1
    return emitError() << "a grid has one core at least, not " << height
                       << " x " << width;
  if (height > kLongestSide || width > kLongestSide) // layout_c1
    return emitError() << "a grid has sides of " << kLongestSide
                       << " cores at most, not " << height << " x " << width;
  for (Axis axis : {Axis::y, Axis::x}) {
    int64_t number = llvm::count_if(splits, [&](Attribute split) {
      return isa<SplitAttr>(split) && cast<SplitAttr>(split).getAxis() == axis;
    });
    if (number > 1) // layout_c1
      return emitError() << "the axis " << stringifyAxis(axis) << " splits "
                         << number << " dimensions: it can split one";
    int64_t at = axis == Axis::y ? atY : atX;
    int64_t length = axis == Axis::y ? height : width;
    // layout_c2
    if (at >= length || (at >= 0 && number > 0) || at < -1)
      return emitError() << "the tensor cannot lie at " << stringifyAxis(axis)
                         << " = " << at << ": positions are 0 to " << length - 1
                         << ", of an axis that splits no dimension";
  }
  return success();
}

/// layout_c3; `parts`: how many blocks there are if they are skewed.
static LogicalResult verifyBlocks(EmitError emitError, int64_t size,
                                  SplitAttr split, int64_t length,
                                  int64_t parts) {
  ArrayRef<int64_t> blocks = split.getBlocks();
  uint64_t sum = 0; // no overflow: it stays at the largest number
  for (int64_t one : blocks)
    sum = llvm::SaturatingAdd(sum, uint64_t(one));
  if (split.isUneven() &&
      (int64_t(blocks.size()) != length || sum != uint64_t(size)))
    return emitError() << "a dimension of " << size << " elements on " << length
                       << " cores cannot have " << blocks.size()
                       << " blocks of " << sum << " together";
  if (blocks.size() == 1 &&
      blocks.front() < llvm::divideCeilSigned(size, length))
    return emitError() << length << " blocks of " << blocks.front()
                       << " do not hold " << size << " elements";
  if (blocks.size() == 1 && split.getSkewed() &&
      blocks.front() % (parts / length) != 0)
    return emitError() << "a skewed block of " << blocks.front()
                       << " cannot be cut in " << parts / length
                       << " equal parts";
  return success();
}

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         EmitError emitError) const {
  // layout_c3
  if (shape.size() != getSplits().size() || ShapedType::isDynamicShape(shape))
    return emitError() << "a layout of " << getSplits().size()
                       << " dimensions is one of tensors with as many, of "
                       << "static shape";
  int64_t parts = std::lcm(getHeight(), getWidth());
  for (auto [dim, size] : llvm::enumerate(shape))
    if (SplitAttr split = getSplit(dim);
        split && failed(verifyBlocks(emitError, size, split,
                                     getLength(split.getAxis()), parts)))
      return failure();
  return success();
}

OpAsmAliasResult LayoutAttr::getAlias(raw_ostream &os) const {
  os << "layout";
  return OpAsmAliasResult::OverridableAlias;
}

int64_t LayoutAttr::getDim(Axis axis) const {
  for (int64_t dim : llvm::seq<int64_t>(getSplits().size()))
    if (SplitAttr split = getSplit(dim); split && split.getAxis() == axis)
      return dim;
  return -1;
}

SmallVector<int64_t> LayoutAttr::getBlockShape(ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> block(shape);
  for (auto [dim, size] : llvm::enumerate(block)) {
    SplitAttr split = getSplit(dim);
    if (!split)
      continue;
    int64_t length = getLength(split.getAxis());
    if (!split.getBlocks().empty()) {
      size = *llvm::max_element(split.getBlocks());
      continue;
    }
    int64_t parts =
        split.getSkewed() ? std::lcm(getHeight(), getWidth()) : length;
    size = llvm::divideCeilSigned(size, parts) * (parts / length);
  }
  return block;
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SMLoc where = parser.getCurrentLocation();
  int64_t height, width, at[] = {-1, -1};
  SmallVector<Attribute> splits;
  auto parseOne = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalStar())) {
      splits.push_back(parser.getBuilder().getUnitAttr());
      return success();
    }
    FailureOr<SplitAttr> split = parseSplit(parser);
    if (failed(split))
      return failure();
    splits.push_back(*split);
    return success();
  };
  if (parser.parseLess() || parser.parseKeyword("grid") ||
      parser.parseLParen() || parser.parseInteger(height) ||
      parser.parseComma() || parser.parseInteger(width) ||
      parser.parseRParen() || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef axis;
    if (parser.parseKeyword("at") ||
        parser.parseOptionalKeyword(&axis, {"y", "x"}) || parser.parseEqual() ||
        parser.parseInteger(at[axis == "x"]))
      return {};
  }
  if (parser.parseGreater())
    return {};
  auto fail = [&] { return parser.emitError(where); };
  return getChecked(fail, parser.getContext(), height, width, splits, at[0],
                    at[1]);
}

void LayoutAttr::print(AsmPrinter &p) const {
  p << "<grid(" << getHeight() << ", " << getWidth() << "), [";
  llvm::interleaveComma(getSplits(), p, [&](Attribute split) {
    if (auto axis = dyn_cast<SplitAttr>(split))
      printSplit(p, axis);
    else
      p << '*';
  });
  p << ']';
  for (Axis axis : {Axis::y, Axis::x})
    if (getAt(axis) >= 0)
      p << ", at " << stringifyAxis(axis) << " = " << getAt(axis);
  p << '>';
}
