//===- DerivedLayouts.h - layouts that follow from others -------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With these layouts an op moves nothing between threads.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_DERIVEDLAYOUTS_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_DERIVEDLAYOUTS_H

#include "lib/Analysis/LinearLayout.h"

namespace tilewright {

/// The result's layout from the source's.
std::optional<LinearLayout> getResultLayout(tile::TransposeOp op,
                                            const LinearLayout &source);
std::optional<LinearLayout> getResultLayout(tile::ReshapeOp op,
                                            const LinearLayout &source);
/// None where the slice is cut out of what threads hold together.
std::optional<LinearLayout> getExtractLayout(tile::ExtractOp op,
                                             const LinearLayout &source);
/// The source's layout from the result's.
LinearLayout getBroadcastSource(tile::BroadcastOp op,
                                const LinearLayout &result);
std::optional<LinearLayout> getSourceLayout(tile::TransposeOp op,
                                            const LinearLayout &result);
std::optional<LinearLayout> getSourceLayout(tile::ReshapeOp op,
                                            const LinearLayout &result);
/// The layout of the index tile of a gather along `dim`.
LinearLayout getIndexLayout(const LinearLayout &tile, int64_t dim);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_DERIVEDLAYOUTS_H
