//===- SkewRecurrences.cpp - two recurrences along diagonals --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/UsedValues.h"
#include "lib/Transforms/Recurrences/ListBuilder.h"
#include "lib/Transforms/Recurrences/ListGroups.h"
#include "lib/Transforms/Recurrences/Passes.h"
#include "lib/Transforms/Recurrences/RecurrencePair.h"
#include "lib/Transforms/Recurrences/SplitScans.h"

#include "mlir/IR/IRMapping.h"

namespace tilewright {
#define GEN_PASS_DEF_SKEWRECURRENCES
#include "lib/Transforms/Recurrences/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

namespace {
/// Makes the scan over diagonals of one pair, in front of it.
class Skew {
public:
  explicit Skew(RecurrencePair pair)
      : p(std::move(pair)), b(p.outer->getLoc(), p.outer),
        diagonals(p.rows + p.columns - 1) {}

  LogicalResult run();

private:
  Block &body() { return p.outer->getRegion(0).front(); }
  AffineMap map(unsigned dims, ArrayRef<AffineExpr> results) {
    return AffineMap::get(dims, 0, results, b.getContext());
  }
  AffineExpr d(unsigned number) { return b.getAffineDimExpr(number); }

  LogicalResult listRows();
  SmallVector<Value> initialStates();
  Value diagonalsOf(Value list);
  Value insideDomain();
  SmallVector<Value> step(ImplicitLocOpBuilder &b, ValueRange arguments);
  SmallVector<Value> point(ImplicitLocOpBuilder &b, ValueRange arguments);
  Value selected(ImplicitLocOpBuilder &b, Value inside, Value after,
                 Value before);
  void replace(ScanOp scan);

  RecurrencePair p;
  ImplicitLocOpBuilder b;
  int64_t diagonals;
  /// What the inner scan reads that varies with the row -> a list of it.
  llvm::MapVector<Value, Value> rows;
  /// Lists of the inner scan that are no outer state, along diagonals.
  SmallVector<Value> skewed;
};
} // namespace

/// Values of the outer body that the inner scan reads become lists.
LogicalResult Skew::listRows() {
  SmallVector<Value> made;
  for (Value value : getUsedValues(p.inner)) {
    if (value.getParentBlock() != &body() ||
        llvm::is_contained(p.states, value))
      continue;
    if (!isElement(value.getType()))
      return p.outer->emitOpError("cannot become a wavefront: its body makes ")
             << value.getType()
             << " for its scan, which is no element of lists";
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument)
      rows[value] = p.arrays[argument.getArgNumber() - p.states.size()];
    else
      made.push_back(value);
  }
  if (made.empty())
    return success();
  MapOp map = buildMap(b, p.rows, p.arrays,
                       [&](ImplicitLocOpBuilder &in, ValueRange arguments) {
                         IRMapping now;
                         now.map(p.elements, arguments);
                         for (Operation &op : body().without_terminator())
                           if (&op != p.inner.getOperation())
                             in.clone(op, now);
                         return llvm::map_to_vector(made, [&](Value value) {
                           return now.lookup(value);
                         });
                       });
  for (auto [value, list] : llvm::zip_equal(made, map.getResults()))
    rows[value] = list;
  return success();
}

SmallVector<Value> Skew::initialStates() {
  SmallVector<Value> lists;
  for (Value init : p.inner.getInits()) {
    Value list = rows.lookup(init);
    if (!list)
      list = RepeatOp::create(b, ArrayType::listOf(p.rows, init.getType()),
                              init, Value(), b.getI64IntegerAttr(p.rows));
    lists.push_back(list);
  }
  return lists;
}

/// Element (j, d) is what the inner scan reads at row d, column j - d.
Value Skew::diagonalsOf(Value list) {
  AffineExpr column = d(0) - d(1);
  Value byRow = rows.lookup(list);
  return buildRead(b, byRow ? byRow : list,
                   byRow ? map(2, {d(1), column}) : map(2, {column}),
                   {diagonals, p.rows});
}

/// Whether row d of diagonal j has begun.
Value Skew::insideDomain() {
  auto type = RankedTensorType::get({diagonals, p.rows}, b.getI1Type());
  Value into = tensor::EmptyOp::create(b, type.getShape(), b.getI1Type());
  SmallVector<utils::IteratorType> parallel(2, utils::IteratorType::parallel);
  auto made = linalg::GenericOp::create(
      b, type, ValueRange{}, into, b.getMultiDimIdentityMap(2), parallel,
      [](OpBuilder &in, Location loc, ValueRange) {
        Value diagonal = linalg::IndexOp::create(in, loc, 0);
        Value row = linalg::IndexOp::create(in, loc, 1);
        Value begun = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::sge,
                                            diagonal, row);
        linalg::YieldOp::create(in, loc, begun);
      });
  auto leaf = RankedTensorType::get({}, b.getI1Type());
  return FromTensorOp::create(b, ArrayType::get(type.getShape(), leaf),
                              made.getResult(0));
}

/// The state after, where the point is inside of the domain.
Value Skew::selected(ImplicitLocOpBuilder &in, Value inside, Value after,
                     Value before) {
  if (auto array = dyn_cast<ArrayType>(after.getType()))
    return buildMap(in, array.getLength(), {after, before},
                    [&](ImplicitLocOpBuilder &inner, ValueRange both) {
                      return SmallVector<Value>{
                          selected(inner, inside, both[0], both[1])};
                    })
        .getResult(0);
  auto type = cast<RankedTensorType>(after.getType());
  int64_t rank = type.getRank();
  AffineMap all = in.getMultiDimIdentityMap(rank);
  AffineMap maps[] = {map(rank, {}), all, all, all};
  Value into =
      tensor::EmptyOp::create(in, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> parallel(rank,
                                            utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      in, type, ValueRange{inside, after, before}, into, maps, parallel,
      [](OpBuilder &inner, Location loc, ValueRange args) {
        Value one =
            arith::SelectOp::create(inner, loc, args[0], args[1], args[2]);
        linalg::YieldOp::create(inner, loc, one);
      });
  return generic.getResult(0);
}

/// One point: the inner scan's body. Arguments: states, the outer states, what
/// is inside, lists of the inner scan, values that vary with the row.
SmallVector<Value> Skew::point(ImplicitLocOpBuilder &in, ValueRange arguments) {
  ValueRange states = arguments.take_front(p.inner.getInits().size());
  arguments = arguments.drop_front(states.size());
  ValueRange outer = arguments.take_front(p.states.size());
  Value inside = arguments[outer.size()];
  arguments = arguments.drop_front(outer.size() + 1);
  ValueRange elements = arguments.take_front(skewed.size());
  IRMapping now;
  now.map(p.inner.getStates(), states);
  for (auto [row, value] :
       llvm::zip_equal(rows, arguments.drop_front(elements.size())))
    now.map(row.first, value);
  for (auto [list, argument] :
       llvm::zip_equal(p.inner.getArrays(), p.inner.getElements())) {
    const auto *state = llvm::find(p.states, list);
    if (state != p.states.end()) {
      now.map(argument, outer[state - p.states.begin()]);
      continue;
    }
    now.map(argument, elements.front());
    elements = elements.drop_front();
  }
  for (Operation &op : p.inner.getBodyBlock().without_terminator())
    in.clone(op, now);
  SmallVector<Value> next;
  for (auto [value, before] :
       llvm::zip_equal(p.inner.getYield().getValues(), states))
    next.push_back(selected(in, inside, now.lookupOrDefault(value), before));
  return next;
}

/// One diagonal. Arguments: lists of states, then borders, what is inside, the
/// lists of the inner scan.
SmallVector<Value> Skew::step(ImplicitLocOpBuilder &in, ValueRange arguments) {
  ValueRange states = arguments.take_front(p.inner.getInits().size());
  ValueRange borders =
      arguments.drop_front(states.size()).take_front(p.states.size());
  SmallVector<Value> lists(states);
  for (auto [number, border] : llvm::zip_equal(p.next, borders)) {
    Value below = states[number];
    lists.push_back(ShiftOp::create(in, below.getType(), below, /*by=*/-1,
                                    border, /*wrap=*/false));
  }
  llvm::append_range(lists,
                     arguments.drop_front(states.size() + borders.size()));
  for (auto &row : rows)
    lists.push_back(row.second);
  MapOp points = buildMap(in, p.rows, lists,
                          [&](ImplicitLocOpBuilder &inner, ValueRange args) {
                            return point(inner, args);
                          });
  return SmallVector<Value>(points.getResults());
}

/// Results of the outer recurrence, from the states of all diagonals.
void Skew::replace(ScanOp scan) {
  for (auto [number, result] : llvm::zip_equal(p.next, p.outer->getResults())) {
    Value lists = scan.getResult(number);
    AffineExpr last = b.getAffineConstantExpr(p.rows - 1);
    Value now = p.scans()
                    ? buildRead(b, lists, map(2, {d(0) + d(1), d(0)}),
                                {p.rows, p.columns})
                    : buildRead(b, lists, map(1, {d(0) + (p.rows - 1), last}),
                                {p.columns});
    if (now.getType() != result.getType())
      now = CastOp::create(b, result.getType(), now);
    result.replaceAllUsesWith(now);
  }
  p.outer->erase();
}

LogicalResult Skew::run() {
  if (failed(listRows()))
    return failure();
  SmallVector<Value> inits = initialStates(), lists;
  for (Value init : p.inits)
    lists.push_back(buildRead(b, init, map(1, {d(0)}), {diagonals}));
  lists.push_back(insideDomain());
  for (Value list : p.inner.getArrays())
    if (!llvm::is_contained(p.states, list))
      skewed.push_back(diagonalsOf(list));
  llvm::append_range(lists, skewed);
  ScanOp scan = buildScan(b, diagonals, inits, lists,
                          [&](ImplicitLocOpBuilder &in, ValueRange arguments) {
                            return step(in, arguments);
                          });
  replace(scan);
  return success();
}

/// The pair that an op is the outer part of, or an error that says why it is
/// none.
static FailureOr<RecurrencePair> askedFor(Operation *op) {
  std::string reason;
  std::optional<RecurrencePair> pair = pairOf(op, reason);
  if (pair)
    return *std::move(pair);
  return op->emitOpError("cannot become a wavefront, as '")
         << tile::decisions::kWavefront.name << "' asks: " << reason;
}

/// The same recurrence over a part of its elements.
template <typename Op>
static Op cloneOver(ImplicitLocOpBuilder &b, Op op, ValueRange states,
                    ValueRange lists, Part part) {
  SmallVector<Value> operands(states);
  for (Value list : lists)
    operands.push_back(part.of(b, list));
  auto clone = cast<Op>(b.clone(*op));
  clone->setOperands(operands);
  if constexpr (std::is_same_v<Op, ScanOp>)
    for (auto [result, state] : llvm::zip_equal(clone.getResults(), states))
      result.setType(ArrayType::listOf(part.count, state.getType()));
  return clone;
}

/// Cuts the outer recurrence into bands of so many rows, one behind the other;
/// returns its parts.
template <typename Op>
static SmallVector<Operation *> cut(Op op, int64_t rows) {
  SmallVector<Operation *> parts;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto band = [&](ImplicitLocOpBuilder &in, ValueRange states, ValueRange lists,
                  Part part) {
    Op clone = cloneOver(in, op, states, lists, part);
    parts.push_back(clone);
    return SmallVector<Value>(clone.getResults());
  };
  op.replaceAllUsesWith(overGroups(b, op, rows, band));
  op.erase();
  return parts;
}

/// The outer recurrence in bands, if its decision asks for some.
static FailureOr<SmallVector<Operation *>> bandsOf(Operation *op,
                                                   int64_t rows) {
  StringRef name = tile::decisions::kWavefront.name;
  auto asked = dyn_cast<IntegerAttr>(tile::decisions::kWavefront.get(op));
  if (asked && asked.getInt() < 1)
    return op->emitOpError("has a '") << name << "' of " << asked.getInt()
                                      << ": a band has one row or more";
  if (!asked || asked.getInt() >= rows)
    return SmallVector<Operation *>{op};
  if (auto scan = dyn_cast<ScanOp>(op))
    return cut(scan, asked.getInt());
  return cut(cast<FoldOp>(op), asked.getInt());
}

/// What a decision asks for.
static LogicalResult skew(Operation *op) {
  FailureOr<RecurrencePair> whole = askedFor(op);
  if (failed(whole))
    return failure();
  splitPair(*whole);
  FailureOr<SmallVector<Operation *>> bands = bandsOf(op, whole->rows);
  if (failed(bands))
    return failure();
  for (Operation *band : *bands) {
    FailureOr<RecurrencePair> pair = askedFor(band);
    if (failed(pair) || failed(Skew(*pair).run()))
      return failure();
  }
  return success();
}

namespace {
struct SkewRecurrences
    : tilewright::impl::SkewRecurrencesBase<SkewRecurrences> {
  void runOnOperation() override {
    SmallVector<Operation *> asked;
    getOperation()->walk([&](Operation *op) {
      if (tile::decisions::kWavefront.get(op))
        asked.push_back(op);
    });
    for (Operation *op : asked)
      if (failed(skew(op)))
        return signalPassFailure();
  }
};
} // namespace
