//===- TaskNumbers.cpp - arithmetic on the numbers of tasks ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/TaskNumbers.h"

using namespace mlir;

namespace tilewright {

Value TaskNumbers::constant(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}

Value TaskNumbers::add(Value x, Value y) {
  return arith::AddIOp::create(b, loc, x, y);
}

Value TaskNumbers::sub(Value x, Value y) {
  return arith::SubIOp::create(b, loc, x, y);
}

Value TaskNumbers::mul(Value x, Value y) {
  return arith::MulIOp::create(b, loc, x, y);
}

Value TaskNumbers::div(Value x, Value y) {
  return arith::DivUIOp::create(b, loc, x, y);
}

Value TaskNumbers::rem(Value x, Value y) {
  return arith::RemUIOp::create(b, loc, x, y);
}

Value TaskNumbers::min(Value x, Value y) {
  return arith::MinUIOp::create(b, loc, x, y);
}

Value TaskNumbers::minSigned(Value x, Value y) {
  return arith::MinSIOp::create(b, loc, x, y);
}

Value TaskNumbers::maxSigned(Value x, Value y) {
  return arith::MaxSIOp::create(b, loc, x, y);
}

Value TaskNumbers::select(Value which, Value x, Value y) {
  return arith::SelectOp::create(b, loc, which, x, y);
}

Value TaskNumbers::compare(arith::CmpIPredicate predicate, Value x, Value y) {
  return arith::CmpIOp::create(b, loc, predicate, x, y);
}

Value TaskNumbers::toIndex(Value x) {
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), x);
}

Value TaskNumbers::fromIndex(Value x) {
  return arith::IndexCastOp::create(b, loc, b.getI32Type(), x);
}

/// The last two coordinates; gives what is left of the task's number.
static Value takeBand(TaskNumbers &n, Value task, int64_t bandHeight,
                      ArrayRef<Value> sizes,
                      MutableArrayRef<Value> coordinates) {
  size_t rank = sizes.size();
  Value height = n.constant(bandHeight);
  Value rows = sizes[rank - 2], columns = sizes[rank - 1];
  Value plane = n.mul(rows, columns);
  Value inPlane = rank == 2 ? task : n.rem(task, plane);
  Value perBand = n.mul(height, columns);
  Value band = n.div(inPlane, perBand), rest = n.rem(inPlane, perBand);
  Value first = n.mul(band, height);
  Value here = n.min(height, n.sub(rows, first));
  coordinates[rank - 2] = n.add(first, n.rem(rest, here));
  coordinates[rank - 1] = n.div(rest, here);
  return rank > 2 ? n.div(task, plane) : task;
}

void takeCoordinates(TaskNumbers &n, Value task, int64_t band,
                     ArrayRef<Value> sizes,
                     MutableArrayRef<Value> coordinates) {
  int64_t last = static_cast<int64_t>(sizes.size()) - 1;
  if (band > 0) {
    task = takeBand(n, task, band, sizes, coordinates);
    last -= 2;
  }
  for (int64_t dim = last; dim > 0; --dim) {
    coordinates[dim] = n.rem(task, sizes[dim]);
    task = n.div(task, sizes[dim]);
  }
  if (last >= 0)
    coordinates[0] = task;
}

} // namespace tilewright
