//===- Fragments.cpp - layouts of products --------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/Fragments.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

int64_t tilewright::getCapability(int64_t option, Operation *op) {
  return option >= 0 ? option : Device(op).getCapability().value_or(80);
}

static Type elementOf(Value tile) {
  return cast<tile::TileType>(tile.getType()).getElementType();
}

static ArrayRef<int64_t> shapeOf(Value tile) {
  return cast<tile::TileType>(tile.getType()).getShape();
}

static int64_t bitsFor(int64_t size) { return llvm::Log2_64_Ceil(size); }

static std::optional<MmaShape> shapeByTypes(tile::MmaOp op, int64_t arch) {
  Type a = elementOf(op.getA()), b = elementOf(op.getB());
  Type c = elementOf(op.getC());
  if (arch < 80)
    return std::nullopt;
  if (a.isF16() && b.isF16() && c.isF32())
    return MmaShape{16, 8, 16, 2, "f32.f32"};
  if (a.isBF16() && b.isBF16() && c.isF32())
    return MmaShape{16, 8, 16, 2, "bf16"};
  if (a.isInteger(8) && b.isInteger(8) && c.isInteger(32)) {
    StringRef left = op.getAUnsigned() ? "u8" : "s8";
    StringRef right = op.getBUnsigned() ? "u8" : "s8";
    StringRef name = left == right  ? left
                     : left == "u8" ? StringRef("u8.s8")
                                    : StringRef("s8.u8");
    return MmaShape{16, 8, 32, 4, name};
  }
  bool tf32 = op->hasAttr(tile::decisions::kTf32);
  if (a.isF32() && b.isF32() && c.isF32() && tf32)
    return MmaShape{16, 8, 8, 1, "tf32", true};
  auto isFp8 = [](Type type) {
    return isa<Float8E4M3FNType, Float8E5M2Type>(type);
  };
  if (isFp8(a) && isFp8(b) && c.isF32() && arch >= 90) {
    bool leftFour = isa<Float8E4M3FNType>(a),
         rightFour = isa<Float8E4M3FNType>(b);
    StringRef name =
        leftFour ? (rightFour ? "f32.e4m3.e4m3.f32" : "f32.e4m3.e5m2.f32")
                 : (rightFour ? "f32.e5m2.e4m3.f32" : "f32.e5m2.e5m2.f32");
    return MmaShape{16, 8, 32, 4, name};
  }
  return std::nullopt;
}

/// Products whose `a` is 2:4 sparse: of 16 bits, and bytes of whole numbers.
static std::optional<MmaShape> withMeta(tile::MmaOp op, MmaShape shape,
                                        int64_t arch) {
  bool isFloat = isa<FloatType>(elementOf(op.getA()));
  bool isByte = elementOf(op.getA()).getIntOrFloatBitWidth() == 8;
  if (*op.getSparsity() != ArrayRef<int64_t>{2, 4} || shape.tf32 ||
      (isFloat && isByte))
    return std::nullopt;
  shape.sparse = true;
  shape.ordered = arch >= 90;
  return shape;
}

std::optional<MmaShape> MmaShape::of(tile::MmaOp op, int64_t arch) {
  std::optional<MmaShape> shape = shapeByTypes(op, arch);
  if (shape && op.getMeta())
    return withMeta(op, *shape, arch);
  if (shape)
    shape->neighbours = op->hasAttr(tile::decisions::kPacked);
  return shape;
}

bool tilewright::isPackedMeta(tile::MmaOp op) {
  return shapeOf(op.getMeta()) != shapeOf(op.getA());
}

/// Matrix units where the types have an instruction and the result a block.
static FailureOr<MmaUnit> getAmdUnit(tile::MmaOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getC());
  bool can = MfmaShape::of(op).has_value();
  auto name = tile::decisions::kUnit.get(op);
  if (!name)
    return can && shape[0] * shape[1] >= 64 ? MmaUnit::mfma : MmaUnit::fma;
  if (name.getValue() == "fma")
    return MmaUnit::fma;
  if (name.getValue() == "mfma" && can)
    return MmaUnit::mfma;
  return op.emitOpError("has the unit ")
         << name << ", which an AMD GPU has not for elements of "
         << elementOf(op.getA()) << " with sums of " << elementOf(op.getC())
         << "; leave out `tile.unit`";
}

FailureOr<MmaUnit> tilewright::getUnit(tile::MmaOp op, int64_t arch) {
  if (isAmd(arch))
    return getAmdUnit(op);
  std::optional<MmaShape> shape = MmaShape::of(op, arch);
  if (op.getMeta() && !shape)
    return op.emitOpError("has sparsity metadata, for which sm_")
           << arch << " has no unit for elements of " << elementOf(op.getA())
           << " and " << elementOf(op.getB()) << " with sums of "
           << elementOf(op.getC())
           << "; tensor cores from sm_80 on take 2:4 of f16, bf16 and bytes; "
              "unpack the operand before";
  if (auto name = tile::decisions::kUnit.get(op)) {
    auto unit = llvm::StringSwitch<std::optional<MmaUnit>>(name.getValue())
                    .Case("fma", MmaUnit::fma)
                    .Case("mma", MmaUnit::mma)
                    .Case("wgmma", MmaUnit::wgmma)
                    .Default(std::nullopt);
    if (!unit)
      return op.emitOpError("has the unit ")
             << name << "; it must be \"fma\", \"mma\" or \"wgmma\"";
    if (*unit == MmaUnit::mma && !shape)
      return op.emitOpError("cannot be done by mma.sync on sm_")
             << arch << " for elements of " << elementOf(op.getA()) << " and "
             << elementOf(op.getB()) << " with sums of " << elementOf(op.getC())
             << "; leave out `tile.unit`";
    if (*unit == MmaUnit::fma && op.getMeta())
      return op.emitOpError("has sparsity metadata, which the unit fma does "
                            "not take; leave out `tile.unit`");
    return *unit;
  }
  // A fragment of sixteen rows for a row or two would waste most of it, and
  // ordinary units read operands once in either case.
  bool pays = shape && (op.getMeta() ||
                        shapeOf(op.getC())[0] * shapeOf(op.getC())[1] >= 64);
  return pays ? MmaUnit::mma : MmaUnit::fma;
}

WarpGrid tilewright::chooseWarps(ArrayRef<int64_t> shape, int64_t warps,
                                 bool rowsOnly) {
  WarpGrid grid;
  while (grid.rows * grid.columns < warps) {
    int64_t height = shape[0] / grid.rows, width = shape[1] / grid.columns;
    bool moreRows = height >= 32, moreColumns = width >= 16;
    if (rowsOnly ? moreRows : moreRows && (height >= width || !moreColumns))
      grid.rows *= 2;
    else if (moreColumns && !rowsOnly)
      grid.columns *= 2;
    else
      break;
  }
  grid.copies = warps / (grid.rows * grid.columns);
  return grid;
}

/// Bits `first` to `last` of a dimension.
static void addRegisters(LinearLayout &layout, int64_t dim, int64_t first,
                         int64_t last) {
  for (int64_t bit = first; bit < last; ++bit)
    layout.addRegister(dim, bit);
}

LinearLayout tilewright::mmaResultLayout(ArrayRef<int64_t> shape,
                                         WarpGrid warps) {
  LinearLayout layout(2);
  int64_t rows = std::max<int64_t>(4, bitsFor(shape[0]));
  int64_t columns = std::max<int64_t>(3, bitsFor(shape[1]));
  int64_t rowWarps = bitsFor(warps.rows), columnWarps = bitsFor(warps.columns);
  layout.addRegister(1, 0);
  layout.addRegister(0, 3);
  addRegisters(layout, 1, 3, columns - columnWarps);
  addRegisters(layout, 0, 4, rows - rowWarps);
  for (int64_t bit : {1, 2})
    layout.addThread(1, bit);
  for (int64_t bit : {0, 1, 2})
    layout.addThread(0, bit);
  for (int64_t bit = rows - rowWarps; bit < rows; ++bit)
    layout.addThread(0, bit);
  for (int64_t bit = columns - columnWarps; bit < columns; ++bit)
    layout.addThread(1, bit);
  for (int64_t copies = warps.copies; copies > 1; copies /= 2)
    layout.addReplica();
  return layout;
}

bool tilewright::isMmaResult(const LinearLayout &layout) {
  const CoordinateBit lanes[] = {{1, 1}, {1, 2}, {0, 0}, {0, 1}, {0, 2}};
  ArrayRef<CoordinateBit> registers = layout.getRegisterBits();
  return layout.getRank() == 2 && registers.size() >= 2 &&
         registers[0] == CoordinateBit{1, 0} &&
         registers[1] == CoordinateBit{0, 3} &&
         layout.getThreadBits().take_front(LinearLayout::laneBits) ==
             ArrayRef<CoordinateBit>(lanes);
}

/// The operand's threads: lanes as given, warps as in the result (copies where
/// those differ in the other dimension).
static void addOperandThreads(LinearLayout &layout, const LinearLayout &result,
                              int64_t kept, ArrayRef<CoordinateBit> lanes) {
  for (CoordinateBit bit : lanes)
    layout.addThread(bit.dim, bit.bit);
  for (CoordinateBit bit :
       result.getThreadBits().drop_front(LinearLayout::laneBits)) {
    if (!bit.isNone() && bit.dim == kept)
      layout.addThread(bit.dim, bit.bit);
    else
      layout.addReplica();
  }
}

LinearLayout tilewright::mmaOperandLayout(const LinearLayout &result, bool isB,
                                          ArrayRef<int64_t> shape,
                                          const MmaShape &mma) {
  // `outer` is the dimension that the operand shares with the result.
  int64_t outer = isB ? 1 : 0, k = 1 - outer;
  int64_t packed = bitsFor(mma.packed), block = bitsFor(mma.k);
  int64_t depth =
      std::max(bitsFor(isB ? mma.depth() : mma.k), bitsFor(shape[k]));
  LinearLayout layout(2);
  addRegisters(layout, k, 0, packed);
  if (!isB)
    layout.addRegister(outer, 3);
  int64_t lane = mma.neighbours ? packed + 1 : packed;
  layout.addRegister(k, mma.neighbours ? packed : packed + 2);
  addRegisters(layout, k, block, depth);
  for (CoordinateBit bit : result.getRegisterBits())
    if (bit.dim == outer && bit.bit >= (isB ? 3 : 4))
      layout.addRegister(outer, bit.bit);
  CoordinateBit lanes[] = {
      {k, lane}, {k, lane + 1}, {outer, 0}, {outer, 1}, {outer, 2}};
  addOperandThreads(layout, result, outer, lanes);
  return layout;
}

LinearLayout tilewright::mmaMetaLayout(tile::MmaOp op,
                                       const LinearLayout &result) {
  // Of the bits of the number of a kept element, three are within eight that
  // may share an element of the tile.
  int64_t base = isPackedMeta(op) ? 0 : 3;
  bool isByte = elementOf(op.getA()).getIntOrFloatBitWidth() == 8;
  LinearLayout layout(2);
  addRegisters(layout, 1, 0, base);
  CoordinateBit lower{0, 3}, column{1, base};
  CoordinateBit half = isByte ? column : lower, lane = isByte ? lower : column;
  layout.addRegister(half.dim, half.bit);
  addRegisters(layout, 1, base + 2, bitsFor(shapeOf(op.getMeta())[1]));
  for (CoordinateBit bit : result.getRegisterBits())
    if (bit.dim == 0 && bit.bit >= 4)
      layout.addRegister(0, bit.bit);
  CoordinateBit lanes[] = {lane, {1, base + 1}, {0, 0}, {0, 1}, {0, 2}};
  addOperandThreads(layout, result, /*kept=*/0, lanes);
  return layout;
}

LinearLayout tilewright::wgmmaResultLayout(ArrayRef<int64_t> shape,
                                           int64_t threads) {
  LinearLayout layout(2);
  int64_t rows = std::max<int64_t>(6, bitsFor(shape[0]));
  int64_t columns = std::max<int64_t>(3, bitsFor(shape[1]));
  int64_t groups = bitsFor(threads / 128);
  layout.addRegister(1, 0);
  layout.addRegister(0, 3);
  addRegisters(layout, 1, 3, columns);
  addRegisters(layout, 0, 6 + groups, rows);
  for (int64_t bit : {1, 2})
    layout.addThread(1, bit);
  for (int64_t bit : {0, 1, 2, 4, 5})
    layout.addThread(0, bit);
  for (int64_t group = 0; group < groups; ++group)
    if (6 + group < rows)
      layout.addThread(0, 6 + group);
    else
      layout.addReplica();
  return layout;
}

LinearLayout tilewright::wgmmaOperandLayout(const LinearLayout &result,
                                            ArrayRef<int64_t> shape,
                                            int64_t elementBytes) {
  MmaShape fragment{16, 8, 32 / elementBytes, 4 / elementBytes, ""};
  return mmaOperandLayout(result, /*isB=*/false, shape, fragment);
}

LinearLayout tilewright::fmaResultLayout(ArrayRef<int64_t> shape,
                                         int64_t threads) {
  LinearLayout layout(2);
  int64_t rows = bitsFor(shape[0]), columns = bitsFor(shape[1]);
  int64_t perThread = std::max<int64_t>(
      0, rows + columns - static_cast<int64_t>(bitsFor(threads)));
  // Neighbours in registers, so that operands are read as vectors: columns
  // first, then rows.
  int64_t columnRun = std::min<int64_t>({2, columns, (perThread + 1) / 2});
  int64_t rowRun = std::min<int64_t>({2, rows, perThread - columnRun});
  addRegisters(layout, 1, 0, columnRun);
  addRegisters(layout, 0, 0, rowRun);
  int64_t column = columnRun, row = rowRun;
  auto addThreads = [&](int64_t count, int64_t &bit, int64_t end, int64_t dim) {
    int64_t added = 0;
    for (; added < count && bit < end; ++added)
      layout.addThread(dim, bit++);
    return added;
  };
  // A warp covers 8 x 4 blocks where it can, the block's warps the rest evenly.
  int64_t lanes = addThreads(3, column, columns, 1);
  lanes += addThreads(LinearLayout::laneBits - lanes, row, rows, 0);
  lanes += addThreads(LinearLayout::laneBits - lanes, column, columns, 1);
  int64_t left = bitsFor(threads) - lanes;
  while (left > 0 && (row < rows || column < columns)) {
    bool takeRow = rows - row >= columns - column;
    left -= takeRow ? addThreads(1, row, rows, 0)
                    : addThreads(1, column, columns, 1);
  }
  for (; left > 0; --left)
    layout.addReplica();
  addRegisters(layout, 1, column, columns);
  addRegisters(layout, 0, row, rows);
  return layout;
}
