//===- TileDecisions.td - attributes that carry decisions --*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every discardable attribute `tile.*`: declared here once. From these records
// tools/cmake/decisions.py generates the table that the dialect's verifier uses
// and the constants of C++ (`TileDecisions.h`), the accessors of Python
// (`python/tilewright/ir/decisions.py`) and the page `Decisions.md`.
// What changes the meaning of an operation is no decision: it is one of the
// operation's own arguments (`bounded` of tile.load).
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_DECISIONS
#define TILEWRIGHT_TILE_DECISIONS

include "dialects/Tile/TileDecisionTypes.td"

/// One discardable attribute, `tile.` and `decision`.
class Tile_Decision<string decision, Tile_DecisionKind valueKind,
                    Tile_Carriers carriers, list<string> written,
                    list<string> read, list<string> machines, string text> {
  string name = decision;
  Tile_DecisionKind kind = valueKind;
  list<string> on = carriers.names;
  list<string> writers = written; // passes; or who else
  list<string> readers = read;
  list<string> targets = machines; // whose code it decides about
  string doc = text;
  bit informational = 0;
}

/// Nobody but people and reports reads it: it changes no code.
class Tile_Information<string decision, Tile_DecisionKind valueKind,
                       Tile_Carriers carriers, list<string> written,
                       list<string> read, string text>
    : Tile_Decision<decision, valueKind, carriers, written, read, [], text> {
  let informational = 1;
}

//===----------------------------------------------------------------------===//
// The module, its functions and their arguments
//===----------------------------------------------------------------------===//

def : Tile_Decision<"device", Tile_Machine, Tile_OnModule,
    ["the driver", "tile-set-target"], ["most passes"], ["cpu", "cuda"],
    "the machine that code is made for">;
def : Tile_Decision<"options", Tile_Dictionary, Tile_OnModule,
    ["the driver", "tile-set-target"],
    ["passes of the plan", "tile-math-to-intrinsics", "tile-plan-arena",
     "tile-sanitize", "tile-emit-cpu", "tile-emit-ptx"], ["cpu", "cuda"],
    "what the user chose: precision, accuracy, opt_level, choices, ranges, "
    "sanitize">;
def : Tile_Decision<"weights", Tile_Text, Tile_OnModule,
    ["dumps of the driver"], ["passes of the plan that look at masks"],
    ["cpu", "cuda"],
    "the file with the elements of external globals, beside the IR">;
def : Tile_Information<"signature", Tile_Dictionary, Tile_OnModule,
    ["dumps of the driver"], ["compilations that begin there"],
    "the model's inputs and outputs as users see them: names, types, shapes">;
def : Tile_Information<"op_count", Tile_Dictionary, Tile_Carriers<["*"]>,
    ["tile-count-ops"], ["people"],
    "how often each operation occurs inside">;
def : Tile_Decision<"arena_bytes", Tile_Integer,
    Tile_On<["builtin.module", "func.func", "llvm.func"]>,
    ["tile-plan-arena", "convert-tile-launch-to-runtime"],
    ["convert-tile-launch-to-runtime", "the artifact"], ["cpu"],
    "bytes of the arena; on the entry, for the manifest">;
def : Tile_Decision<"name", Tile_Text, Tile_On<["argument", "result"]>,
    ["importers"], ["convert-tile-launch-to-runtime", "the manifest"],
    ["cpu"], "what the model calls an input or output">;
def : Tile_Decision<"global", Tile_Text, Tile_On<["argument", "result"]>,
    ["tile-hoist-init", "tile-globals-to-arguments"],
    ["convert-tile-launch-to-runtime", "the driver", "the host program"],
    ["cpu", "cuda"], "the weight that is passed here, or computed by @init">;
def : Tile_Decision<"result", Tile_Integer, Tile_On<["argument", "result"]>,
    ["tile-results-to-arguments"],
    ["convert-tile-launch-to-runtime", "the host program"], ["cpu", "cuda"],
    "number of the model's output that is written here, or returned">;
def : Tile_Decision<"appends", Tile_Integers,
    Tile_On<["argument", "func.func", "llvm.func"]>,
    ["tile-append-in-place", "convert-tile-launch-to-runtime"],
    ["tile-results-to-arguments", "convert-tile-launch-to-runtime",
     "the artifact"], ["cpu"],
    "output, input and axis: here is room for the input's rows and those that "
    "the output has behind them; on the entry, all such">;
def : Tile_Decision<"sizes_of", Tile_Integer, Tile_OnArgument,
    ["tile-results-to-arguments"], ["convert-tile-launch-to-runtime"], ["cpu"],
    "number of the model's output whose sizes are written here">;
def : Tile_Decision<"arena", Tile_Flag, Tile_OnArgument,
    ["tile-plan-arena"],
    ["convert-tile-launch-to-runtime", "the host program"], ["cpu", "cuda"],
    "the buffer that holds all temporaries">;
def : Tile_Decision<"inputs", Tile_Texts, Tile_OnFunction,
    ["convert-tile-launch-to-runtime"], ["the artifact"], ["cpu"],
    "names of the entry's inputs, in order">;
def : Tile_Decision<"outputs", Tile_Texts, Tile_OnFunction,
    ["convert-tile-launch-to-runtime"], ["the artifact"], ["cpu"],
    "names of the entry's outputs, in order">;
def : Tile_Decision<"globals", Tile_Texts, Tile_OnFunction,
    ["convert-tile-launch-to-runtime"], ["the artifact"], ["cpu"],
    "names of the weights that the entry takes, in order">;
def : Tile_Decision<"tell", Tile_Flag, Tile_On<["cf.assert"]>,
    ["importers"], ["convert-tile-launch-to-runtime"], ["cpu"],
    "the message ends with the numbers that the condition compares">;

//===----------------------------------------------------------------------===//
// The plan: operations on tensors
//===----------------------------------------------------------------------===//

def : Tile_Decision<"host", Tile_Text, Tile_OnTensors,
    ["tile-mark-host-fallback"],
    ["tile-plan-fusion", "tile-inline-widenings", "tile-verify-plan"],
    ["cpu", "cuda"], "no kernel takes it, for this reason">;
def : Tile_Decision<"order", Tile_Integers, Tile_OnTensors,
    ["tile-plan-orders"], ["tile-apply-orders"], ["cpu"],
    "order of the result's dimensions in memory">;
def : Tile_Decision<"apart", Tile_FlagOrInteger, Tile_OnTensors,
    ["tile-split-k", "tile-split-kv"], ["tile-plan-fusion", "tile-split-kv",
    "tile-plan-gpu-tiles"], ["cpu", "cuda"],
    "shares no task with its readers; a number: with what has another one">;
def : Tile_Decision<"task", Tile_Integer, Tile_OnTensors,
    ["tile-plan-fusion", "tile-apply-layouts"],
    ["tile-plan-tiles", "tile-plan-gpu-tiles", "tile-plan-online",
     "tile-apply-layouts", "tile-form-groups"], ["cpu", "cuda"],
    "operations with one number are one kernel">;
def : Tile_Decision<"nest", Tile_Integer, Tile_OnTensors,
    ["tile-plan-fusion", "tile-plan-tiles", "tile-plan-online",
     "tile-apply-layouts"],
    ["tile-plan-tiles", "tile-plan-gpu-tiles", "tile-plan-online",
     "tile-form-groups"], ["cpu", "cuda"],
    "operations of a task with one number meet in registers">;
def : Tile_Decision<"epilogue", Tile_Flag, Tile_On<["linalg."]>,
    ["tile-plan-epilogues"], ["tile-form-epilogues"], ["cpu", "cuda"],
    "computed in the tasks of the kernel that it follows, element by element">;
def : Tile_Decision<"kernel", Tile_Text,
    Tile_On<["linalg.", "tensor.", "tile.group"]>,
    ["tile-plan-tiles", "tile-plan-gpu-tiles", "tile-apply-layouts",
     "tile-form-groups"],
    ["tile-plan-tiles", "tile-form-groups", "tile-groups-to-kernels"],
    ["cpu", "cuda"], "name of the kernel">;
def : Tile_Decision<"rows", Tile_Integers, Tile_OnTensors,
    ["tile-plan-fusion"], ["tile-plan-tiles", "tile-plan-gpu-tiles"],
    ["cpu", "cuda"], "on a root: loops that all nests of the task share">;
def : Tile_Decision<"block", Tile_Integer, Tile_OnTensors,
    ["tile-plan-fusion"], ["tile-plan-tiles", "tile-plan-gpu-tiles"],
    ["cpu", "cuda"],
    "on the last root: iterations of the innermost row that a task takes">;
def : Tile_Decision<"gathers", Tile_Integers, Tile_OnTensors,
    ["tile-plan-fusion"], ["tile-plan-tiles", "tile-plan-gpu-tiles"],
    ["cpu", "cuda"], "loops along which indices that are computed differ">;
def : Tile_Decision<"rtile", Tile_Sizes, Tile_OnTensors,
    ["tile-plan-tiles", "tile-plan-gpu-tiles", "tile-plan-online"],
    ["tile-plan-online", "tile-apply-layouts", "tile-apply-online",
     "tile-groups-to-kernels", "tile-verify-plan"], ["cpu", "cuda"],
    "on a root: tile sizes of its loops at each level, and their order">;
def : Tile_Decision<"layouts", Tile_Layouts,
    Tile_On<["linalg.", "tensor.", "tile.alloc", "memref.view"]>,
    ["tile-plan-orders", "tile-plan-tiles", "tile-pipeline-loads",
     "tile-kernels-to-gpu"],
    ["tile-apply-layouts", "tile-specialize-warps", "tile-kernels-to-gpu",
     "convert-tile-to-gpu"], ["cpu", "cuda"],
    "how each operand is stored; of a buffer in shared memory, how it is">;
def : Tile_Decision<"pack_rtiles", Tile_SizesOrUnits, Tile_OnTensors,
    ["tile-plan-tiles"], ["tile-apply-layouts"], ["cpu"],
    "tile of the copy that packs each operand">;
def : Tile_Decision<"pack_apart", Tile_Flag, Tile_OnTensors,
    ["tile-plan-tiles"], ["tile-apply-layouts"], ["cpu"],
    "the copies that pack operands are tasks of their own">;
def : Tile_Decision<"grid", Tile_Integers, Tile_OnRootAndKernel,
    ["tile-plan-tiles", "tile-split-host-device"],
    ["tile-groups-to-kernels", "tile-kernels-to-gpu"], ["cpu", "cuda"],
    "on a root: loops whose tasks come first; on a kernel of a GPU: bounds of "
    "the grid, the least i64 where a launch tells">;
def : Tile_Decision<"tasks_inside", Tile_Flag, Tile_OnRootAndKernel,
    ["tile-plan-tiles"],
    ["tile-groups-to-kernels", "convert-tile-kernel-to-func"], ["cpu"],
    "the loop over tasks runs inside of those of the task">;
def : Tile_Decision<"tails", Tile_IntegerLists, Tile_OnTensors,
    ["tile-plan-tiles"], ["tile-groups-to-kernels"], ["cpu"],
    "on a root: register tiles of what a whole one leaves, per loop">;
def : Tile_Decision<"bounds", Tile_Integers, Tile_OnTensors,
    ["tile-plan-tiles", "tile-apply-online"],
    ["tile-apply-online", "tile-groups-to-kernels"], ["cpu", "cuda"],
    "on a root: the most that open loops run to; -1 where nobody knows">;
def : Tile_Decision<"prefetch", Tile_Integers, Tile_OnTensors,
    ["tile-plan-tiles"], ["tile-groups-to-kernels"], ["cpu"],
    "numbers of inputs whose next tile is fetched while one is in use">;
def : Tile_Decision<"block_sums", Tile_Integer, Tile_OnTensors,
    ["tile-plan-tiles"], ["tile-groups-to-kernels"], ["cpu"],
    "so many inner loops are summed before their scale is multiplied">;
def : Tile_Decision<"image", Tile_Integers, Tile_OnTensors,
    ["tile-plan-tiles"], ["tile-groups-to-kernels"], ["cpu"],
    "operand, dimension and the indices between which it is not zero">;
def : Tile_Decision<"stream", Tile_Flag, Tile_OnTensors,
    ["tile-plan-tiles"], ["tile-plan-tiles", "tile-groups-to-kernels"],
    ["cpu"], "results go past the caches">;
def : Tile_Decision<"overlap", Tile_Integer, Tile_OnRootAndKernel,
    ["tile-plan-tiles"], ["tile-overlap-tasks"], ["cpu"],
    "so many tasks run step by step beside each other">;
def : Tile_Decision<"online", Tile_Integers, Tile_OnTensors,
    ["tile-plan-online", "tile-plan-gpu-tiles"], ["tile-apply-online"],
    ["cpu", "cuda"], "a loop and the size of its blocks: reductions go online">;
def : Tile_Decision<"live", Tile_Integers, Tile_OnTensors,
    ["tile-plan-online", "tile-split-kv"],
    ["tile-plan-gpu-tiles", "tile-groups-to-kernels"], ["cpu", "cuda"],
    "which blocks of a loop a mask leaves: numbers of a linear bound">;
def : Tile_Decision<"skip", Tile_Integer, Tile_OnTensors,
    ["tile-skip-masked-blocks"], ["tile-plan-online", "tile-groups-to-kernels"], ["cpu"],
    "number of an input, not used by the body, that is zero where a mask of this run leaves nothing of the result">;
def : Tile_Decision<"pair", Tile_Integers, Tile_OnRecurrence,
    ["tile-find-pairs"], ["tile-plan-wavefronts"], ["cpu", "cuda"],
    "lengths of a recurrence and of the scan that its states go through">;
def : Tile_Decision<"unroll", Tile_FlagOrInteger, Tile_OnRecurrence,
    ["tile-plan-wavefronts"], ["tile-unroll-recurrences"], ["cpu", "cuda"],
    "each step of the recurrence is code of its own; with a number, so many are an iteration">;
def : Tile_Decision<"wavefront", Tile_FlagOrInteger, Tile_OnRecurrence,
    ["tile-plan-wavefronts"], ["tile-skew-recurrences"], ["cpu", "cuda"],
    "the recurrence and the scan in its body run along diagonals, as one; with a number, bands of so many rows do">;
def : Tile_Decision<"shift", Tile_Integer, Tile_On<["scf.for"]>,
    ["tile-find-shifts"], ["tile-plan-shifts", "tile-fuse-shifted"],
    ["cpu", "cuda"],
    "the loop becomes one with the loop in front of it, so many iterations behind">;
def : Tile_Decision<"implicit_padding", Tile_Flag, Tile_On<["tensor.pad"]>,
    ["tile-fold-padding"], ["tile-fold-padding", "tile-form-groups"], ["cuda"],
    "zeros that windows alone read: they are in no memory">;
def : Tile_Decision<"packed", Tile_FlagOrDictionary,
    Tile_On<["linalg.", "tile.mma"]>,
    ["tile-weight-only-quantization", "tile-fuse-dequantization"],
    ["tile-plan-tiles", "tile-plan-gpu-tiles",
     "tile-assign-distributed-layouts"], ["cpu", "cuda"],
    "an operand is small in memory and widened in registers; on a CPU with "
    "bits, block, inner and the times predicted">;
def : Tile_Decision<"tf32", Tile_Flag, Tile_On<["linalg.", "tile.mma"]>,
    ["tile-allow-tf32"],
    ["tile-plan-gpu-tiles", "tile-select-wgmma", "convert-tile-to-gpu"],
    ["cuda"], "operands of f32 may be rounded to tf32">;
def : Tile_Decision<"promotion", Tile_Terms, Tile_On<["linalg.", "tile.mma"]>,
    ["tile-promote-float8"], ["tile-plan-gpu-tiles", "tile-promote-sums"],
    ["cuda"],
    "so many terms of a sum of floats a warpgroup's unit adds itself, before "
    "vector units add them to the others in f32; 0: all (fast accumulation)">;
def : Tile_Decision<"approximate", Tile_Flag,
    Tile_On<["math.exp", "math.exp2"]>,
    ["tile-approximate-exponentials", "tile-fold-exponents"],
    ["tile-fold-exponents", "tile-math-to-intrinsics"], ["cuda"],
    "the special function unit's own result: it feeds an operand of 16 bits">;
def : Tile_Decision<"unit", Tile_Text, Tile_On<["linalg.", "tile.mma"]>,
    ["tile-plan-gpu-tiles", "tile-select-wgmma"],
    ["tile-select-wgmma", "tile-promote-sums", "tile-defer-waits",
     "tile-specialize-warps", "tile-copies-to-cp-async",
     "convert-tile-to-gpu"], ["cuda"],
    "the unit that does the product: fma, mma, wgmma, mfma">;
def : Tile_Information<"slow", Tile_Text, Tile_OnTensors,
    ["tile-transpose-operands", "tile-plan-gpu-tiles"],
    ["tile-verify-plan, for a remark"],
    "why a product is slower than it could be">;
def : Tile_Information<"widened", Tile_Text, Tile_OnTensors,
    ["tile-mark-widened"], ["tile-verify-plan, for a remark"],
    "why small numbers bring a product no speed">;
def : Tile_Decision<"sparsity", Tile_Dictionary,
    Tile_On<["linalg.", "tensor.", "sparse_tile."]>,
    ["tile-plan-sparsity", "tile-plan-dynamic"],
    ["tile-apply-sparsity", "tile-group-experts", "tile-lower-sparse",
     "reports"], ["cpu", "cuda"],
    "how a product with a pruned weight is computed: its cover, the runner-up, "
    "their predicted times; one with zeros of a run: up to which shares of live "
    "rows (rows_above) and elements (dense_above) it leaves zeros out">;
def : Tile_Information<"levels", Tile_Texts, Tile_OnTensors,
    ["tile-mark-levels"], ["people", "reports"],
    "at which level an operation meets each thing that it reads">;
def : Tile_Information<"parts", Tile_Dictionary, Tile_OnTensors,
    ["tile-split-kv"], ["people", "reports"],
    "parts of a chain, and the time predicted with and without them">;
def : Tile_Information<"prediction", Tile_Dictionary, Tile_OnRootAndKernel,
    ["tile-plan-tiles", "tile-plan-gpu-tiles"],
    ["people", "reports", "tuning"], "time that a kernel takes, and why">;

//===----------------------------------------------------------------------===//
// Kernels of a GPU
//===----------------------------------------------------------------------===//

def : Tile_Decision<"padded", Tile_Flag, Tile_OnTensors,
    ["tile-plan-gpu-tiles", "tile-plan-online", "tile-apply-online"],
    ["tile-plan-online", "tile-apply-online", "tile-groups-to-kernels"],
    ["cuda"], "tiles have the planned sizes, edges are bounds">;
def : Tile_Decision<"warps", Tile_Integer, Tile_OnRootAndKernel,
    ["tile-plan-gpu-tiles"],
    ["tile-select-wgmma", "tile-kernels-to-gpu"], ["cuda"],
    "warps that hold the tiles">;
def : Tile_Decision<"raster", Tile_Integer, Tile_OnRootAndKernel,
    ["tile-plan-gpu-tiles"], ["tile-stream-k", "tile-kernels-to-gpu"],
    ["cuda"], "tasks go in bands of so many along the last but one coordinate">;
def : Tile_Decision<"cluster", Tile_Integers, Tile_OnRootAndKernel,
    ["tile-plan-gpu-tiles", "tile-kernels-to-gpu"],
    ["tile-groups-to-kernels", "tile-specialize-warps", "the host program"],
    ["cuda"], "tasks of a cluster along each loop; blocks of one">;
def : Tile_Decision<"rounded", Tile_Integers, Tile_OnKernel,
    ["tile-groups-to-kernels"], ["tile-kernels-to-gpu", "the host program"],
    ["cuda"], "launched bounds are multiples of these">;
def : Tile_Decision<"equal_sizes", Tile_IntegerLists, Tile_OnKernel,
    ["tile-groups-to-kernels"], ["tile-kernels-to-gpu"], ["cuda"],
    "argument and dimension, in turn: sizes of a run that are one number">;
def : Tile_Decision<"stages", Tile_Integer,
    Tile_On<["linalg.", "tensor.", "scf.for"]>,
    ["tile-plan-gpu-tiles", "tile-groups-to-kernels"],
    ["tile-groups-to-kernels", "tile-pipeline-loads", "tile-stagger-products",
     "tile-stream-k"], ["cuda"], "slots of the ring that a loop's loads go "
    "through">;
def : Tile_Decision<"specialized", Tile_Flag, Tile_OnRootAndKernel,
    ["tile-plan-gpu-tiles"],
    ["tile-specialize-warps", "tile-scope-barriers", "tile-fetch-matrices",
     "tile-share-operands", "tile-copies-to-cp-async",
     "tile-mark-grid-constants"], ["cuda"],
    "a warpgroup of its own loads">;
def : Tile_Decision<"stagger", Tile_Flag, Tile_OnRootAndKernel,
    ["tile-plan-gpu-tiles"], ["tile-stagger-products"], ["cuda"],
    "the loop's second product stands in the step behind">;
def : Tile_Decision<"staged", Tile_Integer, Tile_OnRootAndKernel,
    ["tile-plan-gpu-tiles"], ["tile-stage-stores"], ["cuda"],
    "results go through shared memory and TMA; boxes of a warp that wait">;
def : Tile_Decision<"persistent", Tile_Integer, Tile_OnRootAndKernel,
    ["tile-plan-gpu-tiles"],
    ["tile-stream-k", "tile-kernels-to-gpu", "the host program"], ["cuda"],
    "blocks per multiprocessor; each computes task after task">;
def : Tile_Decision<"stream_k", Tile_Integer, Tile_OnRootAndKernel,
    ["tile-plan-gpu-tiles"], ["tile-stream-k"], ["cuda"],
    "blocks that the steps of the last waves are split between">;
def : Tile_Decision<"occupancy", Tile_Integer, Tile_OnRootAndKernel,
    ["tile-plan-gpu-tiles"],
    ["tile-specialize-warps", "tile-mark-grid-constants"], ["cuda"],
    "blocks that a multiprocessor holds; registers follow from it">;
def : Tile_Decision<"fetched", Tile_Flag, Tile_OnRootAndKernel,
    ["tile-plan-gpu-tiles"], ["tile-fetch-matrices"], ["cuda"],
    "matrices that sums meet come by TMA, beside the last steps">;

//===----------------------------------------------------------------------===//
// Inside kernels, and how they are called
//===----------------------------------------------------------------------===//

def : Tile_Decision<"streamed", Tile_Flag, Tile_On<["tile.store"]>,
    ["tile-groups-to-kernels"],
    ["tile-prefetch-rows", "convert-tile-to-vector"], ["cpu"],
    "the store goes past the caches">;
def : Tile_Information<"variant_of", Tile_Text, Tile_OnKernel,
    ["tile-open-strides"], ["reports"],
    "the kernel that this one is a copy of, for other layouts">;
def : Tile_Decision<"units", Tile_Integer, Tile_On<["scf.for"]>,
    ["tile-plan-programs"], ["tile-form-programs"], ["cpu"],
    "execution units that a program of the loop's steps uses">;
def : Tile_Decision<"steps", Tile_Integer, Tile_On<["scf.for"]>,
    ["tile-plan-programs"], ["tile-form-programs"], ["cpu"],
    "steps of the loop that one program takes">;
def : Tile_Decision<"independent", Tile_Flag, Tile_On<["scf.for"]>,
    ["tile-find-task-loops"], ["tile-plan-levels"], ["cpu", "cuda"],
    "no task of what it launches touches what others do, in any iteration">;
def : Tile_Decision<"host_operations", Tile_Integer, Tile_On<["tile.launch"]>,
    ["tile-find-host-work"], ["tile-plan-host-work"], ["cuda"],
    "operations on single numbers by which the host could do what it does">;
def : Tile_Decision<"level", Tile_Text,
    Tile_On<["scf.for", "tile.launch", "tile.kernel", "gpu.func", "func.func",
             "llvm.func"]>,
    ["tile-plan-levels", "tile-plan-host-work", "tile-sink-loops",
     "tile-keep-states"],
    ["tile-sink-loops", "tile-keep-states", "tile-plan-loops",
     "tile-inline-host-work"], ["cpu", "cuda"],
    "who runs a loop, or a kernel's: \"task\", each task all iterations; "
    "\"thread\", and threads keep states in registers; of a launch: \"host\"">;
def : Tile_Decision<"blocks", Tile_Integer,
    Tile_On<["scf.for", "scf.while", "scf.if", "tile.launch", "memref.load",
             "memref.copy", "tile.kernel", "gpu.func", "llvm.func"]>,
    ["tile-plan-loops"], ["tile-form-loops", "the host program"], ["cuda"],
    "one kernel with what stands beside it and has this, too; most blocks of it">;
def : Tile_Decision<"team", Tile_Integers,
    Tile_On<["scf.for", "scf.while", "scf.if", "tile.launch", "memref.copy"]>,
    ["tile-plan-teams"], ["tile-inline-launches"], ["cuda"],
    "in a kernel that launches others: the first of its blocks that run it, and "
    "how many do; these meet without the others">;
def : Tile_Decision<"code", Tile_Flag, Tile_OnKernel,
    ["convert-tile-kernel-to-func", "tile-kernels-to-gpu"],
    ["convert-tile-launch-to-runtime", "tile-inline-launches", "tile.launch"],
    ["cpu", "cuda"], "the function is a kernel's or program's code">;
def : Tile_Decision<"scratch_bytes", Tile_Integer, Tile_OnFunction,
    ["convert-tile-kernel-to-func"],
    ["convert-tile-launch-to-runtime", "the manifest"], ["cpu"],
    "memory that each thread gives to a task">;
def : Tile_Decision<"program_units", Tile_Integer, Tile_OnFunction,
    ["convert-tile-kernel-to-func"], ["convert-tile-launch-to-runtime"],
    ["cpu"], "execution units of a program">;
def : Tile_Decision<"program_events", Tile_Integer, Tile_OnFunction,
    ["convert-tile-kernel-to-func"], ["convert-tile-launch-to-runtime"],
    ["cpu"], "events that a program's units signal">;
def : Tile_Decision<"same_memory", Tile_IntegerLists, Tile_OnKernel,
    ["tile-split-host-device"],
    ["convert-tile-to-gpu", "tile-place-barriers", "tile-mark-grid-constants"],
    ["cuda"], "pairs of arguments that are one buffer">;
def : Tile_Decision<"may_overlap", Tile_IntegerLists, Tile_OnKernel,
    ["tile-split-host-device"],
    ["convert-tile-to-gpu", "tile-place-barriers", "tile-mark-grid-constants"],
    ["cuda"], "pairs of arguments that may lie in one another">;
def : Tile_Decision<"threads", Tile_Integer, Tile_OnKernel,
    ["tile-kernels-to-gpu", "tile-scope-barriers", "authors of kernels"],
    ["tile-kernels-to-gpu", "tile-assign-distributed-layouts",
     "tile-specialize-warps", "convert-tile-to-gpu", "the host program"],
    ["cuda"], "threads of a block">;
def : Tile_Decision<"shared_bytes", Tile_Integer, Tile_OnKernel,
    ["tile-kernels-to-gpu", "tile-plan-scratch", "tile-specialize-warps"],
    ["tile-plan-scratch", "tile-specialize-warps", "the host program"],
    ["cuda"], "shared memory of a block">;
def : Tile_Decision<"params", Tile_Parameters, Tile_OnKernel,
    ["tile-kernels-to-gpu", "tile-specialize-warps", "tile-stage-stores"],
    ["tile-mark-grid-constants", "convert-tile-to-gpu", "the host program"],
    ["cuda"], "what each parameter is">;
def : Tile_Decision<"one_thread", Tile_Flag, Tile_OnKernel,
    ["tile-kernels-to-gpu"], ["tile-place-barriers", "convert-tile-to-gpu"],
    ["cuda"], "no tiles: one thread does the work">;
def : Tile_Decision<"waits", Tile_Flag, Tile_OnKernel,
    ["convert-tile-to-gpu"], ["the host program"], ["cuda"],
    "tasks wait for one another: all blocks run at a time">;
def : Tile_Decision<"align", Tile_Integer, Tile_OnArgument,
    ["tile-kernels-to-gpu"], ["convert-tile-to-gpu"], ["cuda"],
    "bytes that divide the address">;
def : Tile_Decision<"tasks", Tile_Flag, Tile_On<["scf.for"]>,
    ["tile-kernels-to-gpu"], ["tile-specialize-warps", "tile-place-barriers",
     "tile-assign-distributed-layouts"], ["cuda"],
    "the loop of a block over its tasks">;
def : Tile_Decision<"roles", Tile_Flag, Tile_On<["scf.if"]>,
    ["tile-specialize-warps"], ["tile-scope-barriers"], ["cuda"],
    "parts the warps that load from those that compute">;
def : Tile_Decision<"no_ring", Tile_Flag, Tile_On<["tile.load"]>,
    ["authors of kernels"], ["tile-pipeline-loads"], ["cuda"],
    "the load stays as it is where its loop is pipelined">;
def : Tile_Decision<"swizzle", Tile_Integer, Tile_On<["tile.load"]>,
    ["authors of kernels"], ["tile-pipeline-loads"], ["cuda"],
    "span of bytes in which chunks of the ring's rows are exchanged">;
def : Tile_Decision<"ring", Tile_Flag, Tile_On<["memref.view"]>,
    ["tile-specialize-warps", "tile-copies-to-cp-async"],
    ["tile-plan-scratch"], ["cuda"],
    "a barrier stands behind its last use: others may have the memory then">;
def : Tile_Decision<"partial", Tile_Flag, Tile_On<["tile.store"]>,
    ["tile-stream-k"], ["tile-stage-stores"], ["cuda"],
    "part of a sum, for another block">;
def : Tile_Decision<"box", Tile_Box, Tile_On<["tile.store"]>,
    ["tile-stage-stores"], ["tile-plan-scratch", "convert-tile-to-gpu"],
    ["cuda"], "parameter that describes memory in boxes, boxes that wait">;
def : Tile_Decision<"multicast", Tile_Flag, Tile_On<["tile.copy"]>,
    ["tile-mark-multicasts"], ["tile-specialize-warps"], ["cuda"],
    "all tasks of the cluster do this copy, each brings a part to all">;
def : Tile_Decision<"pending", Tile_Integer,
    Tile_On<["tile.mma", "tile.mma_wait"]>,
    ["tile-defer-waits", "tile-specialize-warps"],
    ["tile-specialize-warps", "convert-tile-to-gpu"], ["cuda"],
    "products that may be under way behind it">;
def : Tile_Decision<"starts", Tile_FlagOrInteger, Tile_On<["tile.mma"]>,
    ["tile-specialize-warps", "tile-promote-sums"], ["convert-tile-to-gpu"],
    ["cuda"], "its accumulator holds nothing in the loop's first step; a "
    "number: nor in the first one of each so many">;
def : Tile_Decision<"scratch", Tile_Integer, Tile_On<["tile."]>,
    ["tile-plan-scratch"], ["tile-place-barriers", "convert-tile-to-gpu"],
    ["cuda"], "offset in shared memory at which threads exchange values">;
def : Tile_Decision<"scratch_free", Tile_Flag, Tile_On<["tile."]>,
    ["tile-place-barriers"], ["convert-tile-to-gpu"], ["cuda"],
    "no thread uses that memory any more when it begins">;
def : Tile_Decision<"vector", Tile_Integer,
    Tile_On<["tile.load", "tile.store"]>,
    ["convert-tile-to-gpu"], ["convert-tile-to-gpu"], ["cuda"],
    "elements of one access, noted before the IR around it changes">;

#endif // TILEWRIGHT_TILE_DECISIONS
