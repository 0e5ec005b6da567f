//===- TileOps.cpp - generated definitions of all operations --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

using namespace mlir;
using namespace tilewright::tile;

/// A kind as its bare name; the default format would print two spaces before.
static ParseResult parseKind(OpAsmParser &parser, ReduceKindAttr &kind) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<ReduceKind> value = symbolizeReduceKind(name);
  if (!value)
    return parser.emitError(loc)
           << "'" << name << "' is no kind of reduction: expected add, mul, "
           << "max, min, maxnum, minnum, umax, umin, and, or, xor";
  kind = ReduceKindAttr::get(parser.getContext(), *value);
  return success();
}

static void printKind(OpAsmPrinter &printer, Operation *, ReduceKindAttr kind) {
  printer << stringifyReduceKind(kind.getValue());
}

#define GET_OP_CLASSES
#include "dialects/Tile/TileOps.cpp.inc"
