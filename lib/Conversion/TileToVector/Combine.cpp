//===- Combine.cpp - the combiners of reductions --------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/Combine.h"

using namespace mlir;
using namespace tilewright;
using arith::AtomicRMWKind;

AtomicRMWKind tilewright::atomicKind(tile::ReduceKind kind, Type element) {
  bool isFloat = isa<FloatType>(element);
  switch (kind) {
  case tile::ReduceKind::add:
    return isFloat ? AtomicRMWKind::addf : AtomicRMWKind::addi;
  case tile::ReduceKind::mul:
    return isFloat ? AtomicRMWKind::mulf : AtomicRMWKind::muli;
  case tile::ReduceKind::max:
    return isFloat ? AtomicRMWKind::maximumf : AtomicRMWKind::maxs;
  case tile::ReduceKind::min:
    return isFloat ? AtomicRMWKind::minimumf : AtomicRMWKind::mins;
  case tile::ReduceKind::maxnum:
    return AtomicRMWKind::maxnumf;
  case tile::ReduceKind::minnum:
    return AtomicRMWKind::minnumf;
  case tile::ReduceKind::umax:
    return AtomicRMWKind::maxu;
  case tile::ReduceKind::umin:
    return AtomicRMWKind::minu;
  case tile::ReduceKind::and_:
    return AtomicRMWKind::andi;
  case tile::ReduceKind::or_:
    return AtomicRMWKind::ori;
  case tile::ReduceKind::xor_:
    return AtomicRMWKind::xori;
  }
  llvm_unreachable("unknown kind of reduction");
}

Value tilewright::combine(OpBuilder &b, Location loc, tile::ReduceKind kind,
                          Value x, Value y) {
  AtomicRMWKind upstream = atomicKind(kind, getElementTypeOrSelf(x.getType()));
  // The sign of a zero that wins a maximum is not ours to promise; without
  // this flag x86 spends three more instructions on it.
  auto noSignedZeros = arith::FastMathFlags::nsz;
  if (upstream == AtomicRMWKind::maximumf)
    return arith::MaximumFOp::create(b, loc, x, y, noSignedZeros);
  if (upstream == AtomicRMWKind::minimumf)
    return arith::MinimumFOp::create(b, loc, x, y, noSignedZeros);
  return arith::getReductionOp(upstream, b, loc, x, y);
}

TypedAttr tilewright::neutralElement(OpBuilder &b, tile::ReduceKind kind,
                                     Type element) {
  // Index is not known to upstream's table; its width is 64 on every target.
  Type known = element.isIndex() ? Type(b.getI64Type()) : element;
  TypedAttr neutral = arith::getIdentityValueAttr(atomicKind(kind, known),
                                                  known, b, b.getUnknownLoc());
  if (element.isIndex())
    return b.getIndexAttr(cast<IntegerAttr>(neutral).getInt());
  return neutral;
}
