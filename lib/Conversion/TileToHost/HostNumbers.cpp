//===- HostNumbers.cpp - a launch as operations on numbers ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToHost/HostNumbers.h"
#include "lib/Conversion/TileToVector/Combine.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;

/// Calls a function with each position of a shape, in row-major order, until it
/// fails.
static LogicalResult
forEach(ArrayRef<int64_t> shape,
        llvm::function_ref<LogicalResult(ArrayRef<int64_t>)> body) {
  SmallVector<int64_t> strides = computeStrides(shape);
  for (int64_t number = 0; number < computeProduct(shape); ++number)
    if (failed(body(delinearize(number, strides))))
      return failure();
  return success();
}

static ArrayRef<int64_t> shapeOf(Value tile) {
  return cast<tile::TileType>(tile.getType()).getShape();
}

LogicalResult HostNumbers::fail(const Twine &why) {
  reason = why.str();
  return failure();
}

LogicalResult HostNumbers::make() {
  SmallVector<int64_t> grid;
  for (Value bound : launch.getGrid()) {
    std::optional<int64_t> size = getConstantIntValue(bound);
    if (!size)
      return fail("a run tells how many tasks it has");
    grid.push_back(*size);
  }
  if (computeProduct(grid) > kMostElements)
    return fail("it has too many tasks");
  if (failed(checkBuffers()))
    return failure();
  return forEach(grid, [&](ArrayRef<int64_t> task) {
    scalars.clear();
    tiles.clear();
    scalars.map(kernel.getInputs(), launch.getKernelOperands());
    for (auto [id, place] : llvm::zip_equal(kernel.getGridIds(), task))
      set(id, arith::ConstantIndexOp::create(b, loc, place));
    return run(kernel.getEntryBlock());
  });
}

/// Whether NumPy alone has numbers of a type: a host may lack packages that
/// have the others.
static bool isOfNumPy(Type type) {
  if (auto shaped = dyn_cast<MemRefType>(type))
    type = shaped.getElementType();
  else if (auto tile = dyn_cast<tile::TileType>(type))
    type = tile.getElementType();
  if (auto integer = dyn_cast<IntegerType>(type))
    return llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
  return isa<IndexType, Float16Type, Float32Type, Float64Type>(type);
}

LogicalResult HostNumbers::checkBuffers() {
  for (Type type : launch.getKernelOperands().getTypes()) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref)
      continue;
    if (!isOfNumPy(memref) || !memref.hasStaticShape() ||
        memref.getNumElements() > kMostElements)
      return fail("a buffer has many elements, or of an unusual type");
  }
  return success();
}

LogicalResult HostNumbers::run(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (failed(visit(&op)))
      return failure();
    if (count > kMostOperations)
      return fail("it is too much work for single numbers");
  }
  return success();
}

LogicalResult HostNumbers::visit(Operation *op) {
  if (!llvm::all_of(op->getResultTypes(), isOfNumPy))
    return fail("it has numbers of an unusual type");
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return add(loop);
  if (op->getNumRegions() > 0)
    return fail("it has '" + op->getName().getStringRef() + "'");
  bool hasTile =
      llvm::any_of(op->getOperandTypes(), llvm::IsaPred<tile::TileType>) ||
      llvm::any_of(op->getResultTypes(), llvm::IsaPred<tile::TileType>);
  return hasTile ? visitTile(op) : visitNumber(op);
}

LogicalResult HostNumbers::visitTile(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<tile::LoadOp, tile::StoreOp, tile::ReduceOp, tile::BroadcastOp,
            tile::TransposeOp, tile::ExtractOp, tile::IotaOp>(
          [&](auto each) { return add(each); })
      .Case([&](arith::ConstantOp) { return addConstant(op); })
      .Case([&](tile::ReshapeOp reshape) {
        tiles[reshape] = Numbers(tiles.at(reshape.getSource()));
        return success();
      })
      .Case([&](tile::SplatOp splat) {
        tiles[splat] =
            Numbers(computeProduct(shapeOf(splat)), number(splat.getScalar()));
        return success();
      })
      .Default([&](Operation *) { return addElementwise(op); });
}

/// Numbers, views, and reads and writes of numbers.
LogicalResult HostNumbers::visitNumber(Operation *op) {
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    Numbers indices = llvm::map_to_vector(
        load.getIndices(), [&](Value index) { return number(index); });
    set(load, read(number(load.getMemRef()), indices));
    return success();
  }
  if (!isPure(op) && !isa<memref::StoreOp>(op))
    return fail("it has '" + op->getName().getStringRef() + "'");
  if (isa<memref::StoreOp>(op))
    known.clear();
  Operation *copy = b.clone(*op, scalars);
  if (op->getNumResults() == 1)
    set(op->getResult(0), made(copy));
  else
    ++count;
  return success();
}

void HostNumbers::set(Value from, Value to) { scalars.map(from, to); }

/// What an operation gives, which is gone where it folds.
Value HostNumbers::made(Operation *op) {
  SmallVector<Value> folded;
  if (succeeded(b.tryFold(op, folded)) && folded.size() == 1 &&
      folded.front() != op->getResult(0)) {
    op->erase();
    return folded.front();
  }
  if (!op->hasTrait<OpTrait::ConstantLike>())
    ++count;
  return op->getResult(0);
}

Value HostNumbers::read(Value memref, ValueRange indices) {
  std::vector<void *> places;
  for (Value index : indices) {
    std::optional<int64_t> place = getConstantIntValue(index);
    places.push_back(place ? reinterpret_cast<void *>(2 * *place + 1)
                           : index.getAsOpaquePointer());
  }
  Value &found = known[{memref.getAsOpaquePointer(), std::move(places)}];
  if (!found) {
    found = memref::LoadOp::create(b, loc, memref, indices);
    ++count;
  }
  return found;
}

LogicalResult HostNumbers::add(scf::ForOp loop) {
  SmallVector<int64_t> bounds;
  for (Value bound :
       {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()}) {
    std::optional<int64_t> known = getConstantIntValue(number(bound));
    if (!known)
      return fail("a run tells how often a loop of it runs");
    bounds.push_back(*known);
  }
  auto carry = [&](ValueRange from, ValueRange to) {
    SmallVector<std::pair<Value, Numbers>> moved;
    for (auto [source, target] : llvm::zip_equal(from, to))
      moved.emplace_back(target, isa<tile::TileType>(source.getType())
                                     ? Numbers(tiles.at(source))
                                     : Numbers{number(source)});
    for (auto &[target, numbers] : moved) {
      if (isa<tile::TileType>(target.getType()))
        tiles[target] = numbers;
      else
        set(target, numbers.front());
    }
  };
  carry(loop.getInitArgs(), loop.getRegionIterArgs());
  for (int64_t step = bounds[0], made = 0; step < bounds[1];
       step += bounds[2]) {
    if (++made > kMostElements)
      return fail("a loop of it runs too often");
    set(loop.getInductionVar(),
        arith::ConstantOp::create(
            b, loc, b.getIntegerAttr(loop.getInductionVar().getType(), step)));
    if (failed(run(*loop.getBody())))
      return failure();
    carry(loop.getYieldedValues(), loop.getRegionIterArgs());
  }
  carry(loop.getRegionIterArgs(), loop.getResults());
  return success();
}

LogicalResult HostNumbers::addConstant(Operation *op) {
  auto values =
      dyn_cast<DenseElementsAttr>(cast<arith::ConstantOp>(op).getValue());
  if (!values)
    return fail("it has a constant of an unusual form");
  Numbers &numbers = tiles[op->getResult(0)];
  if (values.isSplat()) {
    Value one = arith::ConstantOp::create(
        b, loc, cast<TypedAttr>(values.getSplatValue<Attribute>()));
    numbers.assign(values.getNumElements(), one);
    return success();
  }
  for (Attribute value : values.getValues<Attribute>())
    numbers.push_back(
        arith::ConstantOp::create(b, loc, cast<TypedAttr>(value)));
  return success();
}

/// Arithmetic on tiles is the same on each of their elements.
LogicalResult HostNumbers::addElementwise(Operation *op) {
  auto convert = dyn_cast<tile::ConvertOp>(op);
  auto select = dyn_cast<tile::SelectOp>(op);
  bool isKnown = convert || select ||
                 isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
  if (!isKnown || op->getNumResults() != 1)
    return fail("it has '" + op->getName().getStringRef() + "'");
  auto type = cast<tile::TileType>(op->getResult(0).getType());
  Numbers results;
  for (int64_t i = 0; i < computeProduct(type.getShape()); ++i) {
    Numbers operands;
    for (Value operand : op->getOperands())
      operands.push_back(isa<tile::TileType>(operand.getType())
                             ? tiles.at(operand)[i]
                             : number(operand));
    if (convert) {
      Value value =
          convertNumber(b, loc, operands.front(), type.getElementType(),
                        convert.getIsUnsigned());
      Operation *maker = value.getDefiningOp();
      results.push_back(value == operands.front() ? value : made(maker));
      continue;
    }
    StringRef name = select ? arith::SelectOp::getOperationName()
                            : op->getName().getStringRef();
    OperationState state(loc, name, operands, {type.getElementType()},
                         select ? ArrayRef<NamedAttribute>() : op->getAttrs());
    results.push_back(made(b.create(state)));
  }
  tiles[op->getResult(0)] = std::move(results);
  return success();
}

template <typename Op> LogicalResult HostNumbers::checkAccess(Op op) {
  if (op.getIndices() || op.getTileType().getLayout())
    return fail("it gathers, or has a layout of its own");
  for (Value bound : op.getValid())
    if (!getConstantIntValue(number(bound)))
      return fail("a run tells how much it reads or writes");
  return success();
}

template <typename Op>
bool HostNumbers::isValid(Op op, ArrayRef<int64_t> position) {
  return llvm::all_of(llvm::enumerate(op.getValid()), [&](auto bound) {
    return position[bound.index()] <
           *getConstantIntValue(number(bound.value()));
  });
}

template <typename Op>
HostNumbers::Numbers HostNumbers::indicesOf(Op op, ArrayRef<int64_t> position) {
  SmallVector<int64_t> dims = op.getTileDims(), steps = op.getTileSteps();
  Numbers indices = llvm::map_to_vector(
      op.getOffsets(), [&](Value offset) { return number(offset); });
  for (auto [dim, step, place] : llvm::zip_equal(dims, steps, position))
    if (place * step != 0)
      indices[dim] = made(arith::AddIOp::create(
          b, loc, indices[dim],
          arith::ConstantIndexOp::create(b, loc, place * step)));
  return indices;
}

LogicalResult HostNumbers::add(tile::LoadOp load) {
  if (load.getBounded())
    return fail("it reads outside of its buffers");
  if (failed(checkAccess(load)))
    return failure();
  Numbers numbers;
  Value pad;
  if (load.getPad())
    pad = number(load.getPad());
  else if (!load.getValid().empty())
    pad = arith::ConstantOp::create(
        b, loc, b.getZeroAttr(load.getType().getElementType()));
  (void)forEach(load.getType().getShape(), [&](ArrayRef<int64_t> position) {
    numbers.push_back(isValid(load, position) ? read(number(load.getMemref()),
                                                     indicesOf(load, position))
                                              : pad);
    return success();
  });
  tiles[load] = std::move(numbers);
  return success();
}

LogicalResult HostNumbers::add(tile::StoreOp store) {
  if (store.getReduce())
    return fail("tasks add to one place");
  if (failed(checkAccess(store)))
    return failure();
  const Numbers &numbers = tiles.at(store.getTile());
  int64_t next = 0;
  known.clear();
  return forEach(shapeOf(store.getTile()), [&](ArrayRef<int64_t> position) {
    Value value = numbers[next++];
    if (isValid(store, position)) {
      memref::StoreOp::create(b, loc, value, number(store.getMemref()),
                              indicesOf(store, position));
      ++count;
    }
    return success();
  });
}

LogicalResult HostNumbers::add(tile::ReduceOp reduce) {
  const Numbers source = tiles.at(reduce.getSource());
  ArrayRef<int64_t> shape = shapeOf(reduce.getResult());
  SmallVector<int64_t> strides = computeStrides(shape);
  Numbers results(computeProduct(shape));
  int64_t next = 0;
  (void)forEach(shapeOf(reduce.getSource()), [&](ArrayRef<int64_t> position) {
    SmallVector<int64_t> place(position);
    for (int64_t dim : reduce.getDims())
      place[dim] = 0;
    Value &result = results[linearize(place, strides)];
    Value one = source[next++];
    result = result ? made(combine(b, loc, reduce.getKind(), result, one)
                               .getDefiningOp())
                    : one;
    return success();
  });
  tiles[reduce] = std::move(results);
  return success();
}

LogicalResult HostNumbers::add(tile::BroadcastOp broadcast) {
  const Numbers source = tiles.at(broadcast.getSource());
  ArrayRef<int64_t> from = shapeOf(broadcast.getSource());
  SmallVector<int64_t> strides = computeStrides(from);
  Numbers results;
  (void)forEach(shapeOf(broadcast.getResult()), [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t> place(at.take_back(from.size()));
    for (auto [dim, size] : llvm::enumerate(from))
      place[dim] = size == 1 ? 0 : place[dim];
    results.push_back(source[linearize(place, strides)]);
    return success();
  });
  tiles[broadcast] = std::move(results);
  return success();
}

LogicalResult HostNumbers::add(tile::TransposeOp transpose) {
  const Numbers source = tiles.at(transpose.getSource());
  SmallVector<int64_t> strides = computeStrides(shapeOf(transpose.getSource()));
  Numbers results;
  (void)forEach(shapeOf(transpose.getResult()), [&](ArrayRef<int64_t> at) {
    int64_t place = 0;
    for (auto [dim, from] : llvm::enumerate(transpose.getPermutation()))
      place += at[dim] * strides[from];
    results.push_back(source[place]);
    return success();
  });
  tiles[transpose] = std::move(results);
  return success();
}

LogicalResult HostNumbers::add(tile::ExtractOp extract) {
  const Numbers source = tiles.at(extract.getSource());
  SmallVector<int64_t> strides = computeStrides(shapeOf(extract.getSource()));
  int64_t first = linearize(extract.getOffsets(), strides);
  if (!isa<tile::TileType>(extract.getType())) {
    set(extract, source[first]);
    return success();
  }
  Numbers results;
  (void)forEach(shapeOf(extract.getResult()), [&](ArrayRef<int64_t> at) {
    results.push_back(source[first + linearize(at, strides)]);
    return success();
  });
  tiles[extract] = std::move(results);
  return success();
}

LogicalResult HostNumbers::add(tile::IotaOp iota) {
  Type element = iota.getType().getElementType();
  Numbers results;
  (void)forEach(shapeOf(iota.getResult()), [&](ArrayRef<int64_t> at) {
    results.push_back(arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(element, at[iota.getDim()])));
    return success();
  });
  tiles[iota] = std::move(results);
  return success();
}
