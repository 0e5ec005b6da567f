//===- CoreMeshInstructionOps.cpp - what cores do ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CoreMesh/CoreMeshDetail.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tilewright::coremesh;
using namespace tilewright::coremesh::shared;

//===----------------------------------------------------------------------===//
// What instructions have in common
//===----------------------------------------------------------------------===//

/// compute_c4, send_c3, recv_c3, relay_c3
template <typename Op>
static LogicalResult verifyExpressions(Op op, ArrayRef<AffineMap> indices) {
  unsigned dims = domainOf(op).size();
  SmallVector<AffineExpr> exprs;
  for (AffineMap index : indices) {
    if (index.getNumResults() != 1)
      return op.emitOpError("needs one expression for a slot, not ")
             << AffineMapAttr::get(index);
    llvm::append_range(exprs, index.getResults());
  }
  if (std::optional<IntegerSet> cores = op.getCores())
    llvm::append_range(exprs, cores->getConstraints());
  if (!divideByPositive(exprs))
    return op.emitOpError("divides by what is no positive number");
  if (areOf(exprs, dims))
    return success();
  return op.emitOpError("has an expression of more than y, x and the ")
         << dims - 2 << " loops around it";
}

/// The token of an instruction is waited for: send_c4, recv_c4, relay_c4.
template <typename Op> static LogicalResult verifyWaited(Op op) {
  for (Operation *user : op.getToken().getUsers())
    if (isa<WaitOp>(user) && user->getBlock() == op->getBlock())
      return success();
  return op.emitOpError("makes a token that nobody waits for: a coremesh.wait "
                        "must follow in the same block");
}

/// Labels 1 to 3 of what sends or receives one slot.
template <typename Op> static LogicalResult verifyTransfer(Op op) {
  auto buffer = findIn<BufferOp>(op, op.getBufferAttr());
  if (!buffer || failed(verifyExpressions(op, op.getIndex())))
    return failure();
  return verifySlot(op, buffer, op.getIndex(), op.getCores());
}

//===----------------------------------------------------------------------===//
// SendOp, RecvOp, RelayOp, WaitOp
//===----------------------------------------------------------------------===//

LogicalResult SendOp::verify() { return verifyWaited(*this); } // send_c4

LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &) {
  if (!findIn<RouteOp>(*this, getRouteAttr())) // send_c1
    return failure();
  return verifyTransfer(*this); // send_c2
}

LogicalResult RecvOp::verify() { return verifyWaited(*this); } // recv_c4

LogicalResult RecvOp::verifySymbolUses(SymbolTableCollection &) {
  if (!findIn<RouteOp>(*this, getRouteAttr())) // recv_c1
    return failure();
  return verifyTransfer(*this); // recv_c2
}

LogicalResult RelayOp::verify() { return verifyWaited(*this); } // relay_c4

LogicalResult RelayOp::verifySymbolUses(SymbolTableCollection &) {
  // relay_c1
  if (!findIn<RouteOp>(*this, getIncomingAttr()) ||
      !findIn<RouteOp>(*this, getOutgoingAttr()))
    return failure();
  return verifyTransfer(*this); // relay_c2
}

LogicalResult WaitOp::verify() {
  // wait_c1
  if (getTokens().empty())
    return emitOpError("waits for nothing: it needs a token");
  for (Value token : getTokens()) {
    Operation *maker = token.getDefiningOp();
    if (!maker || maker->getBlock() != (*this)->getBlock())
      return emitOpError("waits for a token that was not made in its block");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// LoopOp
//===----------------------------------------------------------------------===//

LogicalResult LoopOp::verify() {
  if (int64_t(getCount()) < 0) // loop_c1
    return emitOpError("runs ")
           << int64_t(getCount()) << " times: it must be 0 or more";
  // domainOf holds y, x and the loops around this one; loop_c2
  if (int64_t(domainOf(*this).size()) - 2 < kMostLoops)
    return success();
  return emitOpError("stands in ")
         << kMostLoops << " loops already: expressions have no name for more";
}

//===----------------------------------------------------------------------===//
// ComputeOp
//===----------------------------------------------------------------------===//

static ParseResult parseReads(OpAsmParser &parser,
                              SmallVectorImpl<OpAsmParser::Argument> &arguments,
                              ComputeOp::Properties &properties) {
  SmallVector<Attribute> buffers, indices;
  auto parseOne = [&]() -> ParseResult {
    FlatSymbolRefAttr buffer;
    AffineMapAttr index;
    OpAsmParser::Argument &argument = arguments.emplace_back();
    if (parser.parseArgument(argument) || parser.parseEqual() ||
        parseSlot(parser, buffer, index) ||
        parser.parseColonType(argument.type))
      return failure();
    buffers.push_back(buffer);
    indices.push_back(index);
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  properties.reads = parser.getBuilder().getArrayAttr(buffers);
  properties.read_indices = parser.getBuilder().getArrayAttr(indices);
  return success();
}

static ParseResult parseWrites(OpAsmParser &parser,
                               ComputeOp::Properties &properties) {
  SmallVector<Attribute> buffers, indices;
  auto parseOne = [&]() -> ParseResult {
    FlatSymbolRefAttr buffer;
    AffineMapAttr index;
    if (parseSlot(parser, buffer, index))
      return failure();
    buffers.push_back(buffer);
    indices.push_back(index);
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  properties.writes = parser.getBuilder().getArrayAttr(buffers);
  properties.write_indices = parser.getBuilder().getArrayAttr(indices);
  return success();
}

ParseResult ComputeOp::parse(OpAsmParser &parser, OperationState &result) {
  auto &properties = result.getOrAddProperties<Properties>();
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseAttribute(properties.name) ||
      parseReads(parser, arguments, properties) || parser.parseKeyword("to") ||
      parseWrites(parser, properties) ||
      parseCores(parser, properties.order, properties.cores) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  return parser.parseRegion(*result.addRegion(), arguments);
}

void ComputeOp::print(OpAsmPrinter &p) {
  p << ' ' << getNameAttr() << " (";
  llvm::interleaveComma(llvm::zip(getBody().getArguments(),
                                  getReads().getAsRange<FlatSymbolRefAttr>(),
                                  getReadIndices().getAsRange<AffineMapAttr>()),
                        p, [&](auto read) {
                          auto [argument, buffer, index] = read;
                          p << argument << " = ";
                          printSlot(p, *this, buffer, index);
                          p << " : " << argument.getType();
                        });
  p << ") to (";
  llvm::interleaveComma(
      llvm::zip(getWrites().getAsRange<FlatSymbolRefAttr>(),
                getWriteIndices().getAsRange<AffineMapAttr>()),
      p, [&](auto write) {
        auto [buffer, index] = write;
        printSlot(p, *this, buffer, index);
      });
  p << ')';
  printCores(p, *this, getOrderAttr(), getCoresAttr());
  p.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getNameAttrName(), getReadsAttrName(), getReadIndicesAttrName(),
       getWritesAttrName(), getWriteIndicesAttrName(), getOrderAttrName(),
       getCoresAttrName()});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

/// compute_c1, compute_c2, compute_c3: of the slots that are read, or written.
static LogicalResult verifySlots(ComputeOp op, StringRef what,
                                 ArrayAttr buffers, ArrayAttr indices,
                                 TypeRange types) {
  if (buffers.size() != indices.size() || buffers.size() != types.size())
    return op.emitOpError(what)
           << ' ' << buffers.size() << " slots, but has " << indices.size()
           << " expressions and " << types.size() << " values for them";
  for (auto [number, type] : llvm::enumerate(types)) {
    auto name = cast<FlatSymbolRefAttr>(buffers[number]);
    auto buffer = findIn<BufferOp>(op, name);
    if (!buffer)
      return failure();
    if (type != buffer.getTileType())
      return op.emitOpError(what)
             << ' ' << name << " as " << type << ", but its tiles are "
             << buffer.getTileType();
    AffineMap index = cast<AffineMapAttr>(indices[number]).getValue();
    if (failed(verifyExpressions(op, index)) ||
        failed(verifySlot(op, buffer, index, op.getCores())))
      return failure();
  }
  return success();
}

LogicalResult ComputeOp::verifySymbolUses(SymbolTableCollection &) {
  Block &body = getBody().front();
  Operation *last = body.empty() ? nullptr : &body.back();
  if (!isa_and_present<YieldOp>(last)) // compute_c3
    return emitOpError("must end in coremesh.yield");
  for (Operation &op : body.without_terminator())
    if (!isMemoryEffectFree(&op)) // compute_c6
      return op.emitOpError("has an effect besides its results: a kernel of "
                            "coremesh.compute computes with tensors alone");
  // compute_c5
  llvm::DenseSet<std::pair<Attribute, Attribute>> written;
  for (auto [buffer, index] : llvm::zip(getWrites(), getWriteIndices()))
    if (!written.insert({buffer, index}).second)
      return emitOpError("writes one slot of ") << buffer << " twice";
  if (getWrites().empty())
    return emitOpError("writes nothing: it needs a slot to write");
  if (failed(verifySlots(*this, "reads", getReads(), getReadIndices(),
                         body.getArgumentTypes())))
    return failure();
  return verifySlots(*this, "writes", getWrites(), getWriteIndices(),
                     last->getOperandTypes());
}
