//===- TileProgramOps.cpp - tile.program and its steps --------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace tilewright::tile;

//===----------------------------------------------------------------------===//
// ProgramOp
//===----------------------------------------------------------------------===//

void ProgramOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                      FunctionType type, int64_t units) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getUnitsAttrName(state.name),
                     builder.getI64IntegerAttr(units));
  auto *block = new Block;
  state.addRegion()->push_back(block);
  for (Type input : type.getInputs())
    block->addArgument(input, state.location);
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  (void)impl::parseOptionalVisibilityKeyword(parser, result.attributes);
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  IntegerAttr units;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      shared::parseArguments(
          parser, result, arguments, getFunctionTypeAttrName(result.name),
          getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name)) ||
      parser.parseKeyword("units") ||
      parser.parseAttribute(units, parser.getBuilder().getI64Type(),
                            getUnitsAttrName(result.name), result.attributes) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void ProgramOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  if (std::optional<StringRef> visibility = getSymVisibility())
    printer << *visibility << ' ';
  printer.printSymbolName(getSymName());
  shared::printArguments(printer, *this);
  printer << " units " << getUnits();
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getFunctionTypeAttrName(),
                            getUnitsAttrName(), getArgAttrsAttrName(),
                            getResAttrsAttrName(), getSymVisibilityAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/false);
}

LogicalResult ProgramOp::verifyType() {
  // program_c2
  if (static_cast<int64_t>(getUnits()) <= 0)
    return emitOpError("needs at least one unit");
  return shared::verifySignature(*this, getFunctionType());
}

namespace {

/// Runs the signals and waits of all units until none can go on.
class ProgramRun {
public:
  explicit ProgramRun(Block &body) {
    for (Operation &op : body.without_terminator()) {
      if (auto signal = dyn_cast<SignalOp>(op))
        scripts[signal.getUnit()].push_back(&op);
      else if (auto wait = dyn_cast<WaitOp>(op))
        scripts[wait.getUnit()].push_back(&op);
    }
  }

  /// The wait that lasts forever, null where every unit comes to its end.
  Operation *findStuck() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (auto &[unit, script] : scripts)
        progress |= advance(unit, script);
    }
    for (auto &[unit, script] : scripts)
      if (position[unit] < script.size())
        return script[position[unit]];
    return nullptr;
  }

private:
  bool advance(uint64_t unit, ArrayRef<Operation *> script) {
    size_t &next = position[unit];
    size_t start = next;
    for (; next < script.size(); ++next) {
      if (auto signal = dyn_cast<SignalOp>(script[next])) {
        ++counts[signal.getEvent()];
        continue;
      }
      auto wait = cast<WaitOp>(script[next]);
      if (counts[wait.getEvent()] < wait.getCount())
        break;
    }
    return next != start;
  }

  std::map<uint64_t, SmallVector<Operation *>> scripts;
  std::map<uint64_t, size_t> position;
  std::map<uint64_t, uint64_t> counts;
};

} // namespace

LogicalResult ProgramOp::verifyRegions() {
  // program_c3
  for (Operation &op : getBody().front().without_terminator())
    if (!isa<PlaceOp, SignalOp, WaitOp>(op) && !isMemoryEffectFree(&op))
      return op.emitOpError("stands in a tile.program, which holds tile.place, "
                            "tile.signal, tile.wait and operations without "
                            "memory effects only");
  // program_c4
  if (Operation *stuck = ProgramRun(getBody().front()).findStuck())
    return stuck->emitOpError("waits forever: the signals that can arrive "
                              "before it are too few");
  return success();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// place_c4, signal_c1, wait_c1
template <typename Step> static LogicalResult verifyUnit(Step op) {
  auto program = cast<ProgramOp>(op->getParentOp());
  if (op.getUnit() < program.getUnits())
    return success();
  return op.emitOpError("unit ")
         << static_cast<int64_t>(op.getUnit()) << " is none of the program's "
         << program.getUnits() << " units";
}

LogicalResult PlaceOp::verify() {
  // place_c3
  int64_t count = 1;
  for (int64_t bound : getGrid()) {
    if (bound < 0)
      return emitOpError("grid bound ") << bound << " is negative";
    count *= bound;
  }
  ArrayRef<int64_t> tasks = getTasks();
  if (tasks.size() != 2 || tasks[0] < 0 || tasks[0] > tasks[1] ||
      tasks[1] > count)
    return emitOpError("tasks must be a range [b, e] with 0 <= b <= e <= ")
           << count;
  return verifyUnit(*this);
}

LogicalResult PlaceOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  // place_c1
  auto kernel =
      symbolTable.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("@") << getKernel() << " is no tile.kernel here";
  if (kernel.getGridRank() != getGrid().size())
    return emitOpError("gives ")
           << getGrid().size() << " grid bounds, @" << getKernel() << " has "
           << kernel.getGridRank() << " coordinates";
  // place_c2
  if (getOperandTypes() != TypeRange(kernel.getArgumentTypes()))
    return emitOpError("operands (")
           << getOperandTypes() << ") are not of the types of @" << getKernel()
           << "'s arguments, (" << kernel.getArgumentTypes() << ')';
  return success();
}

LogicalResult SignalOp::verify() {
  // signal_c2
  if (static_cast<int64_t>(getEvent()) < 0)
    return emitOpError("event is negative");
  return verifyUnit(*this);
}

LogicalResult WaitOp::verify() {
  // wait_c2
  if (static_cast<int64_t>(getEvent()) < 0 ||
      static_cast<int64_t>(getCount()) <= 0)
    return emitOpError("needs an event that is not negative and a positive "
                       "count");
  return verifyUnit(*this);
}
