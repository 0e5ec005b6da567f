//===- KernelsToGPU.cpp - kernels as functions of a GPU -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "dialects/Tile/TileTasks.h"
#include "lib/Conversion/TileToGPU/Exchange.h"
#include "lib/Conversion/TileToGPU/KernelGlobals.h"
#include "lib/Conversion/TileToGPU/KernelGrid.h"
#include "lib/Conversion/TileToGPU/KernelSizes.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

namespace tilewright {
#define GEN_PASS_DEF_KERNELSTOGPU
#include "lib/Conversion/TileToGPU/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

bool holdsTiles(tile::KernelOp kernel) {
  return kernel
      .walk([](Operation *op) {
        bool has = llvm::any_of(op->getResultTypes(), [](Type type) {
          return isa<tile::TileType>(type);
        });
        has |= isa<tile::CopyOp>(op);
        return has ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool holdsLaunches(tile::KernelOp kernel) {
  return kernel.walk([](tile::LaunchOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Makes a gpu.func of one kernel, tiles still in it. One that another kernel
/// launches is a function of that kernel: its last argument is the task.
class KernelToGpu {
public:
  KernelToGpu(tile::KernelOp kernel, gpu::GPUModuleOp module, int64_t threads,
              bool called)
      : kernel(kernel), b(kernel.getContext()), loc(kernel.getLoc()),
        threads(threads), called(called) {
    b.setInsertionPointToEnd(module.getBody());
  }

  LogicalResult run() {
    if (failed(checkTasks()) || failed(readThreads()) ||
        failed(convertLevels()) || failed(makeFunction()))
      return failure();
    Block &entry = function.getBody().front();
    b.setInsertionPointToStart(&entry);
    FailureOr<SmallVector<Value>> values = makeArguments();
    if (failed(values))
      return failure();
    KernelGrid grid(kernel, called);
    Block *place = &entry;
    Value task = called ? entry.getArguments().back() : Value();
    if (grid.isPersistent()) {
      scf::ForOp tasks = grid.makeTasks(b, boundArguments());
      place = tasks.getBody();
      task = tasks.getInductionVar();
      b.setInsertionPointToStart(place);
    }
    if (failed(grid.append(b, task, boundArguments(), *values)))
      return failure();
    Block &body = kernel.getBody().front();
    for (auto [old, value] : llvm::zip_equal(body.getArguments(), *values))
      old.replaceAllUsesWith(value);
    moveBody(body, entry, *place);
    foldSizes(function);
    if (failed(checkLayouts()))
      return failure();
    placeBuffers();
    placeConstants(function);
    placeSemaphores(function);
    setAttributes();
    kernel.erase();
    return success();
  }

private:
  LogicalResult readThreads() {
    if (auto own = tile::decisions::kThreads.get(kernel))
      threads = own.getInt();
    else if (auto warps = tile::decisions::kWarps.get(kernel))
      threads = 32 * warps.getInt();
    oneThread = !holdsTiles(kernel) && !holdsLaunches(kernel);
    if (oneThread && !called)
      threads = 32;
    if (threads < 32 || threads > 1024 || !llvm::isPowerOf2_64(threads))
      return kernel.emitOpError("has ")
             << threads << " threads, but must have a power of two from 32 to "
             << "1024: change `tile.threads` or `tile.warps`, or the option "
             << "threads";
    return success();
  }

  /// Named levels become address spaces; what is on the stack stays there.
  LogicalResult convertLevels() {
    auto space = [&](gpu::AddressSpace which) {
      return gpu::AddressSpaceAttr::get(b.getContext(), which);
    };
    bool isKnown = true;
    auto convert = [&](Value value) {
      auto type = dyn_cast<MemRefType>(value.getType());
      if (!type || isOnStack(value))
        return;
      auto level = dyn_cast_or_null<tile::LevelAttr>(type.getMemorySpace());
      Attribute to = space(gpu::AddressSpace::Global);
      if (level && level.getName() == "shared")
        to = space(gpu::AddressSpace::Workgroup);
      else if (type.getMemorySpace() && !(level && level.getName() == "memory"))
        isKnown = false;
      value.setType(MemRefType::Builder(type).setMemorySpace(to));
    };
    llvm::for_each(kernel.getBody().getArguments(), convert);
    kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      llvm::for_each(op->getResults(), convert);
      for (Region &region : op->getRegions())
        llvm::for_each(region.getArguments(), convert);
    });
    if (isKnown)
      return success();
    return kernel.emitOpError("uses a memory level that is neither \"shared\" "
                              "nor \"memory\"; a GPU has these two");
  }

  static bool isOnStack(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (isa<memref::AllocaOp>(op))
        return true;
      if (op->getNumOperands() == 0 ||
          !isa<MemRefType>(op->getOperand(0).getType()))
        return false;
      value = op->getOperand(0);
    }
    return false;
  }

  LogicalResult makeFunction() {
    SmallVector<Type> types;
    for (auto [index, input] : llvm::enumerate(kernel.getInputs()))
      if (failed(addParameters(static_cast<int64_t>(index), input, types)))
        return failure();
    for (int64_t dim : KernelGrid(kernel, called).getOpenBounds()) {
      addParameter("bound", {b.getNamedAttr("dim", b.getI64IntegerAttr(dim))});
      types.push_back(b.getI32Type());
    }
    if (called) {
      addParameter("task", {});
      types.push_back(b.getIndexType());
    }
    function = gpu::GPUFuncOp::create(b, loc, kernel.getSymName(),
                                      b.getFunctionType(types, {}));
    function->setAttr(called ? StringRef(tile::decisions::kCode)
                             : gpu::GPUDialect::getKernelFuncAttrName(),
                      b.getUnitAttr());
    return success();
  }

  void addParameter(StringRef kind, SmallVector<NamedAttribute> entries) {
    entries.push_back(b.getNamedAttr("kind", b.getStringAttr(kind)));
    parameters.push_back(b.getDictionaryAttr(entries));
  }

  NamedAttribute entry(StringRef name, int64_t value) {
    return b.getNamedAttr(name, b.getI64IntegerAttr(value));
  }

  LogicalResult addParameters(int64_t index, Value input,
                              SmallVectorImpl<Type> &types) {
    auto type = dyn_cast<MemRefType>(input.getType());
    if (!type) {
      addParameter("scalar", {entry("arg", index)});
      types.push_back(input.getType());
      return success();
    }
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    if (failed(type.getStridesAndOffset(strides, offset)))
      return kernel.emitOpError("has an argument of type ")
             << type << ", whose layout is not strided";
    int64_t align =
        getBaseDivisor(input) * bytesOfElement(type.getElementType());
    SmallVector<NamedAttribute> pointer = {entry("arg", index),
                                           entry("align", align)};
    if (!ShapedType::isDynamic(offset) && offset != 0)
      pointer.push_back(entry("offset", offset));
    addParameter("pointer", pointer);
    if (called) {
      types.push_back(type);
      return success();
    }
    types.push_back(MemRefType::get({}, type.getElementType(),
                                    MemRefLayoutAttrInterface(),
                                    type.getMemorySpace()));
    auto addOpen = [&](StringRef kind, ArrayRef<int64_t> numbers) {
      for (auto [dim, number] : llvm::enumerate(numbers))
        if (ShapedType::isDynamic(number)) {
          addParameter(kind, {entry("arg", index),
                              entry("dim", static_cast<int64_t>(dim))});
          types.push_back(b.getI64Type());
        }
    };
    addOpen("size", type.getShape());
    // A row-major memref's strides follow from its sizes.
    if (!type.getLayout().isIdentity())
      addOpen("stride", strides);
    return success();
  }

  /// The kernel's inputs from the function's arguments.
  FailureOr<SmallVector<Value>> makeArguments() {
    SmallVector<Value> values;
    next = 0;
    for (Value input : kernel.getInputs()) {
      auto type = dyn_cast<MemRefType>(input.getType());
      if (!type) {
        values.push_back(function.getArgument(next++));
        continue;
      }
      int64_t align =
          getBaseDivisor(input) * bytesOfElement(type.getElementType());
      function.setArgAttr(next, tile::decisions::kAlign,
                          b.getI64IntegerAttr(align));
      values.push_back(
          called ? function.getArgument(next++)
                 : makeMemref(type, cast<BlockArgument>(input).getArgNumber()));
    }
    return values;
  }

  OpFoldResult takeNumber() {
    Value number = function.getArgument(next++);
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), number)
        .getResult();
  }

  /// The size of a dimension: one value for all that are equal in any run.
  OpFoldResult takeSize(int64_t argument, int64_t dim) {
    OpFoldResult own = takeNumber();
    std::optional<size_t> number = findEqualSizes(kernel, argument, dim);
    return number ? equalSizes.try_emplace(*number, own).first->second : own;
  }

  Value makeMemref(MemRefType type, int64_t argument) {
    Value pointer = function.getArgument(next++);
    SmallVector<int64_t> known;
    int64_t offset = 0;
    (void)type.getStridesAndOffset(known, offset);
    SmallVector<OpFoldResult> sizes, strides;
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      sizes.push_back(ShapedType::isDynamic(size)
                          ? takeSize(argument, dim)
                          : OpFoldResult(b.getIndexAttr(size)));
    bool rowMajor = type.getLayout().isIdentity();
    for (int64_t stride : known)
      strides.push_back(ShapedType::isDynamic(stride) && !rowMajor
                            ? takeNumber()
                            : OpFoldResult(b.getIndexAttr(stride)));
    if (rowMajor)
      fillStrides(known, sizes, strides);
    // The pointer is to the first element; to the type's base where the type
    // says how far that is.
    if (ShapedType::isDynamic(offset))
      offset = 0;
    auto layout = StridedLayoutAttr::get(b.getContext(), offset, known);
    auto start = MemRefType::get(type.getShape(), type.getElementType(), layout,
                                 type.getMemorySpace());
    if (rowMajor)
      start = type;
    Value memref = memref::ReinterpretCastOp::create(
        b, loc, start, pointer, OpFoldResult(b.getIndexAttr(offset)), sizes,
        strides);
    if (start == type)
      return memref;
    return memref::CastOp::create(b, loc, type, memref);
  }

  /// Strides of a row-major memref with open sizes.
  void fillStrides(ArrayRef<int64_t> known, ArrayRef<OpFoldResult> sizes,
                   SmallVectorImpl<OpFoldResult> &strides) {
    for (auto dim = static_cast<int64_t>(known.size()) - 2; dim >= 0; --dim) {
      if (!ShapedType::isDynamic(known[dim]))
        continue;
      Value below = getValueOrCreateConstantIndexOp(b, loc, strides[dim + 1]);
      Value size = getValueOrCreateConstantIndexOp(b, loc, sizes[dim + 1]);
      strides[dim] = arith::MulIOp::create(b, loc, below, size).getResult();
    }
  }

  ArrayRef<BlockArgument> boundArguments() {
    return function.getArguments().drop_front(next);
  }

  /// Without tiles the program is one of scalars: one thread runs it.
  void moveBody(Block &body, Block &entry, Block &place) {
    body.getTerminator()->erase();
    OpBuilder atEnd = OpBuilder::atBlockEnd(&entry);
    gpu::ReturnOp::create(atEnd, loc);
    Operation *end = place.getTerminator();
    if (!oneThread) {
      place.getOperations().splice(Block::iterator(end), body.getOperations());
      return;
    }
    OpBuilder at(end);
    Value isFirst = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq,
                                          getThreadNumber(at, loc),
                                          constantI32(at, loc, 0));
    auto branch = scf::IfOp::create(at, loc, isFirst, /*withElse=*/false);
    Block *block = branch.thenBlock();
    block->getOperations().splice(Block::iterator(block->getTerminator()),
                                  body.getOperations());
  }

  /// Blocks of a grid run in any order, some of them after others have ended.
  /// Those that run several tasks run at the same time, and take tasks in
  /// order.
  LogicalResult checkTasks() {
    if (tile::hasWaits(kernel) && !KernelGrid(kernel, called).isPersistent())
      return kernel.emitOpError(
          "has tasks that wait for others (tile.semaphore_take), which a GPU "
          "may not have started yet: give it tile.persistent, so that all of "
          "its blocks run at the same time, and a grid");
    WalkResult result = kernel.walk([](Operation *op) {
      auto copy = dyn_cast<tile::CopyOp>(op);
      if (!isa<tile::BarrierOp>(op) && !(copy && !copy.getAt().empty()))
        return WalkResult::advance();
      op->emitOpError("needs another task of the grid, which a GPU may not "
                      "have started yet: end the kernel here, and let a second "
                      "one read from memory what the first one wrote");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  /// Shared memory is addressed by rows, with chunks of 16 bytes exchanged, or
  /// by panels of columns; any other order would be read as that of rows.
  LogicalResult checkLayouts() {
    WalkResult result = function.walk([](tile::AllocOp alloc) {
      auto layouts = tile::decisions::kLayouts.get(alloc);
      if (!layouts)
        return WalkResult::advance();
      Attribute first = layouts.empty() ? Attribute() : layouts[0];
      auto layout = dyn_cast_or_null<tile::LayoutAttr>(first);
      if (layout && isAddressed(layout, alloc.getType()))
        return WalkResult::advance();
      alloc.emitOpError("has a layout that shared memory of a GPU does not "
                        "have: ")
          << layouts
          << "; rows may have a swizzle, or be cut in panels of one size "
             "(perm = [0, last, 1, ...], inner = [last], tiles = [columns])";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  static bool isAddressed(tile::LayoutAttr layout, MemRefType type) {
    if (layout.isIdentity())
      return true;
    int64_t rank = type.getRank();
    if (layout.getInterleave() || layout.getStorage() || rank == 0)
      return false;
    if (layout.getInner().empty())
      return layout.getPerm().empty();
    SmallVector<int64_t> perm{0, rank - 1};
    llvm::append_range(perm, llvm::seq<int64_t>(1, rank - 1));
    return rank > 1 && layout.getPerm() == ArrayRef(perm) &&
           layout.getInner() == ArrayRef<int64_t>{rank - 1} &&
           type.getShape().back() % layout.getTiles().front() == 0;
  }

  /// Buffers one after the other in the shared array.
  void placeBuffers() {
    auto space = gpu::AddressSpaceAttr::get(b.getContext(),
                                            gpu::AddressSpace::Workgroup);
    auto array =
        MemRefType::get({0}, b.getI8Type(), MemRefLayoutAttrInterface(), space);
    function.walk([&](tile::AllocOp alloc) {
      OpBuilder at(alloc);
      Location where = alloc.getLoc();
      MemRefType type = alloc.getType();
      uint64_t alignment =
          std::max<uint64_t>(16, alloc.getAlignment().value_or(16));
      auto layouts = tile::decisions::kLayouts.get(alloc);
      // A swizzle is a matter of address bits up to the tenth.
      if (layouts)
        alignment = std::max<uint64_t>(alignment, 1024);
      shared = static_cast<int64_t>(llvm::alignTo(shared, alignment));
      Value all = memref::GetGlobalOp::create(at, where, array, sharedName);
      auto view = memref::ViewOp::create(
          at, where, type, all, constantIndex(at, where, shared), ValueRange());
      if (layouts)
        view->setAttr(tile::decisions::kLayouts, layouts);
      shared += type.getNumElements() * bytesOfElement(type.getElementType());
      alloc.getResult().replaceAllUsesWith(view.getResult());
      alloc.erase();
    });
  }

  void setAttributes() {
    for (NamedAttribute attribute : kernel->getDiscardableAttrs())
      function->setAttr(attribute.getName(), attribute.getValue());
    function->removeAttr(tile::decisions::kWarps);
    function->setAttr(tile::decisions::kThreads, b.getI64IntegerAttr(threads));
    function->setAttr(tile::decisions::kSharedBytes,
                      b.getI64IntegerAttr(shared));
    function->setAttr(tile::decisions::kParams, b.getArrayAttr(parameters));
    if (oneThread)
      function->setAttr(tile::decisions::kOneThread, b.getUnitAttr());
    if (auto cluster = kernel.getCluster()) {
      int64_t blocks = 1;
      for (int64_t size : *cluster)
        blocks *= size;
      function->setAttr(tile::decisions::kCluster,
                        b.getDenseI64ArrayAttr({blocks, 1, 1}));
      function.setKnownClusterSizeAttr(
          b.getDenseI32ArrayAttr({static_cast<int32_t>(blocks), 1, 1}));
    }
    function.setKnownBlockSizeAttr(
        b.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
  }

  tile::KernelOp kernel;
  gpu::GPUFuncOp function;
  OpBuilder b;
  Location loc;
  int64_t threads, shared = 0;
  unsigned next = 0;
  bool called;
  /// Values of sizes, by the number of their class in `tile.equal_sizes`.
  llvm::DenseMap<size_t, OpFoldResult> equalSizes;
  bool oneThread = false;
  SmallVector<Attribute> parameters;
};

struct KernelsToGPU : public tilewright::impl::KernelsToGPUBase<KernelsToGPU> {
  using KernelsToGPUBase::KernelsToGPUBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<tile::KernelOp> kernels(module.getOps<tile::KernelOp>());
    if (kernels.empty())
      return;
    gpu::GPUModuleOp device = makeModule(module);
    llvm::StringSet<> called;
    for (tile::KernelOp kernel : kernels)
      kernel.walk(
          [&](tile::LaunchOp launch) { called.insert(launch.getKernel()); });
    for (tile::KernelOp kernel : kernels)
      if (failed(KernelToGpu(kernel, device, threads,
                             called.contains(kernel.getSymName()))
                     .run()))
        return signalPassFailure();
  }

private:
  /// A module with the array that shared memory is part of: external, since
  /// its size is said at the launch.
  gpu::GPUModuleOp makeModule(ModuleOp module) {
    OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
    Location loc = module.getLoc();
    auto device = gpu::GPUModuleOp::create(b, loc, StringRef("kernels"));
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                    b.getUnitAttr());
    b.setInsertionPointToStart(device.getBody());
    auto space = gpu::AddressSpaceAttr::get(b.getContext(),
                                            gpu::AddressSpace::Workgroup);
    auto type =
        MemRefType::get({0}, b.getI8Type(), MemRefLayoutAttrInterface(), space);
    memref::GlobalOp::create(b, loc, sharedName,
                             /*sym_visibility=*/StringAttr(), type,
                             /*initial_value=*/Attribute(),
                             /*constant=*/false, b.getI64IntegerAttr(1024));
    return device;
  }
};

} // namespace
