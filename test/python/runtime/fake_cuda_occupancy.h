// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Part of fake_cuda.c: how many blocks and clusters fit.

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                     CUfunction function,
                                                     int threads,
                                                     size_t bytes) {
  WITH_CONTEXT("cuOccupancyMaxActiveBlocksPerMultiprocessor")
  say("occupancy %s %d %d\n", function->name, threads, (int)bytes);
  return *blocks = threads > 1024 ? 0 : 1024 / threads, 0;
}
CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                      const CUlaunchConfig *config) {
  WITH_CONTEXT("cuOccupancyMaxActiveClusters")
  unsigned size = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if ((int)config->attrs[i].id == 4)
      size = config->attrs[i].value.clusterDim.x *
             config->attrs[i].value.clusterDim.y *
             config->attrs[i].value.clusterDim.z;
  say("clusters %s %u %u\n", function->name, config->blockDimX, size);
  return *clusters = size > 8 ? 0 : (int)(128 / size), 0;
}
