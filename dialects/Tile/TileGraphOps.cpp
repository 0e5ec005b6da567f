//===- TileGraphOps.cpp - tile.group and tile.yield -----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tilewright::tile;

//===----------------------------------------------------------------------===//
// GroupOp
//===----------------------------------------------------------------------===//

void GroupOp::build(OpBuilder &builder, OperationState &state, StringRef level,
                    ValueRange inputs, TypeRange resultTypes) {
  state.addAttribute(getLevelAttrName(state.name),
                     builder.getStringAttr(level));
  state.addOperands(inputs);
  state.addTypes(resultTypes);
  auto *block = new Block;
  state.addRegion()->push_back(block);
  for (Value input : inputs)
    block->addArgument(input.getType(), input.getLoc());
}

YieldOp GroupOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

/// `(%a = %x : type, ...)`
static ParseResult
parseGroupOperands(OpAsmParser &parser, OperationState &result,
                   SmallVectorImpl<OpAsmParser::Argument> &arguments) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  SMLoc loc = parser.getCurrentLocation();
  auto parseOne = [&]() -> ParseResult {
    OpAsmParser::Argument &argument = arguments.emplace_back();
    if (parser.parseArgument(argument) || parser.parseEqual() ||
        parser.parseOperand(operands.emplace_back()) ||
        parser.parseColonType(argument.type))
      return failure();
    types.push_back(argument.type);
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  return parser.resolveOperands(operands, types, loc, result.operands);
}

ParseResult GroupOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr level;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseAttribute(level, getLevelAttrName(result.name),
                            result.attributes) ||
      parseGroupOperands(parser, result, arguments) ||
      parser.parseOptionalArrowTypeList(result.types) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void GroupOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getLevelAttr() << " (";
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getInputs()),
                        printer, [&](auto pair) {
                          printer << std::get<0>(pair) << " = "
                                  << std::get<1>(pair) << " : "
                                  << std::get<1>(pair).getType();
                        });
  printer << ')';
  if (getNumResults() > 0) {
    printer << " -> (";
    llvm::interleaveComma(getResultTypes(), printer);
    printer << ')';
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getLevelAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

OperandRange GroupOp::getEntrySuccessorOperands(RegionSuccessor successor) {
  return getInputs();
}

void GroupOp::getSuccessorRegions(RegionBranchPoint point,
                                  SmallVectorImpl<RegionSuccessor> &regions) {
  if (point.isParent())
    regions.emplace_back(&getBody(), getBody().getArguments());
  else
    regions.emplace_back(getOperation(), getResults());
}

/// group_c2 is upheld by RegionBranchOpInterface.
LogicalResult GroupOp::verify() {
  // group_c4
  if (getLevel().empty())
    return emitOpError("needs the name of a level");
  // group_c1
  Block &block = getBody().front();
  if (block.getNumArguments() != getInputs().size())
    return emitOpError("has ") << getInputs().size() << " operands and "
                               << block.getNumArguments() << " block arguments";
  for (auto [number, input] : llvm::enumerate(getInputs()))
    if (block.getArgument(number).getType() != input.getType())
      return emitOpError("block argument ")
             << number << " has type " << block.getArgument(number).getType()
             << ", its operand " << input.getType();
  // group_c3
  for (auto outer = (*this)->getParentOfType<GroupOp>(); outer;
       outer = outer->getParentOfType<GroupOp>())
    if (outer.getLevel() == getLevel()) {
      InFlightDiagnostic error =
          emitOpError("of level \"")
          << getLevel() << "\" stands inside a group of the same level";
      error.attachNote(outer.getLoc()) << "the outer group";
      return error;
    }
  return success();
}

namespace {

/// Drops operands that the body ignores and merges equal ones.
struct SimplifyGroupOperands : OpRewritePattern<GroupOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GroupOp op,
                                PatternRewriter &rewriter) const override {
    Block &block = op.getBody().front();
    llvm::SmallDenseMap<Value, unsigned> first;
    llvm::BitVector dead(block.getNumArguments());
    for (auto [number, input] : llvm::enumerate(op.getInputs())) {
      BlockArgument argument = block.getArgument(number);
      auto [known, inserted] = first.try_emplace(input, number);
      if (!inserted)
        rewriter.replaceAllUsesWith(argument, block.getArgument(known->second));
      if (argument.use_empty())
        dead.set(number);
    }
    if (dead.none())
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      block.eraseArguments(dead);
      op->eraseOperands(dead);
    });
    return success();
  }
};

/// Drops results that nobody uses; a result that is an operand passed through
/// is replaced by it.
struct SimplifyGroupResults : OpRewritePattern<GroupOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GroupOp op,
                                PatternRewriter &rewriter) const override {
    YieldOp yield = op.getYield();
    Block &block = op.getBody().front();
    llvm::BitVector dead(op.getNumResults());
    for (auto [number, value] : llvm::enumerate(yield.getOperands())) {
      auto argument = dyn_cast<BlockArgument>(value);
      if (argument && argument.getOwner() == &block)
        rewriter.replaceAllUsesWith(op.getResult(number),
                                    op.getInputs()[argument.getArgNumber()]);
      if (op.getResult(number).use_empty())
        dead.set(number);
    }
    if (dead.none())
      return failure();
    rewriter.modifyOpInPlace(yield, [&] { yield->eraseOperands(dead); });
    SmallVector<Type> types;
    SmallVector<Value> kept;
    for (OpResult result : op.getResults())
      if (!dead[result.getResultNumber()]) {
        types.push_back(result.getType());
        kept.push_back(result);
      }
    auto smaller = GroupOp::create(rewriter, op.getLoc(), op.getLevel(),
                                   op.getInputs(), types);
    smaller->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.mergeBlocks(&block, &smaller.getBody().front(),
                         smaller.getBody().front().getArguments());
    for (auto [before, after] : llvm::zip_equal(kept, smaller.getResults()))
      rewriter.replaceAllUsesWith(before, after);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void GroupOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<SimplifyGroupOperands, SimplifyGroupResults>(context);
}

//===----------------------------------------------------------------------===//
// YieldOp
//===----------------------------------------------------------------------===//

LogicalResult YieldOp::verify() {
  // yield_c1
  if (isa<AsyncOp>((*this)->getParentOp()) && getNumOperands() > 0)
    return emitOpError("of a tile.async takes no operands: movement has no "
                       "results but its token");
  return success();
}
