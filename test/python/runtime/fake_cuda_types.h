// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What fake_cuda.c needs of cuda.h, for machines that have none.

typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute,
    CUjit_option, CUmemPool_attribute;
typedef int CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle,
    CUtensorMapL2promotion;
typedef int CUtensorMapFloatOOBfill, CUstreamCaptureMode;
typedef unsigned long long CUdeviceptr;
typedef struct context *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct {
  _Alignas(64) cuuint64_t opaque[16];
} CUtensorMap;
typedef struct {
  int type, id;
} CUmemLocation;
typedef struct {
  int allocType, handleTypes;
  CUmemLocation location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
} CUmemPoolProps;
typedef union {
  char pad[64];
  struct {
    unsigned x, y, z;
  } clusterDim;
  int cooperative;
} CUlaunchAttributeValue;
typedef struct {
  int id;
  char pad[4];
  CUlaunchAttributeValue value;
} CUlaunchAttribute;
typedef struct {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
      sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
} CUlaunchConfig;
