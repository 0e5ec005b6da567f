//===- TileDialect.cpp - registration -------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"
#include "dialects/Tile/TileTasks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright::tile;

#include "dialects/Tile/TileDialect.cpp.inc"

void TileDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tile/TileOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tile/TileTaskOps.cpp.inc"
      >();
}

Operation *TileDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                            Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

/// Decisions are checked where they are written, so that a hand edit with a
/// typo fails at once.
/// Dimensions of memory that a load or copy may reach out of.
static LogicalResult verifyBounded(Operation *op, Attribute value) {
  auto load = dyn_cast<LoadOp>(op);
  auto copy = dyn_cast<CopyOp>(op);
  auto dims = dyn_cast<DenseI64ArrayAttr>(value);
  if ((!load && !copy) || !dims)
    return op->emitError("attribute tile.bounded is an array<i64> of dimensions"
                         ", of a tile.load or a tile.copy");
  if (load && (load.getIndices() || load.getPad()))
    return op->emitError("reads over the border of its buffer (tile.bounded), "
                         "where there are zeros: it has neither indices nor a "
                         "pad");
  // A source that is no view is all of its buffer.
  auto view = copy ? copy.getSrc().getDefiningOp<memref::SubViewOp>()
                   : memref::SubViewOp();
  Value buffer = view   ? view.getSource()
                 : copy ? copy.getSrc()
                        : load.getMemref();
  int64_t rank = cast<MemRefType>(buffer.getType()).getRank();
  if (llvm::any_of(dims.asArrayRef(),
                   [&](int64_t dim) { return dim < 0 || dim >= rank; }))
    return op->emitError("attribute tile.bounded names a dimension that its "
                         "buffer of rank ")
           << rank << " does not have";
  return success();
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attr) {
  StringRef name = attr.getName().strref();
  if (name == "tile.rtile" && !isa<RTileAttr>(attr.getValue()))
    return op->emitError("attribute tile.rtile must be a #tile.rtile<...>");
  if (name == "tile.device" && !isa<DeviceAttr>(attr.getValue()))
    return op->emitError("attribute tile.device must be a #tile.device<...>");
  return name == "tile.bounded" ? verifyBounded(op, attr.getValue())
                                : success();
}
