/* Prints where CUPTI's headers put the fields that src/layout.rs reads. See offsets.sh. */
#include <cuda.h>
#include <cupti_activity.h>
#include <stddef.h>
#include <stdio.h>

#define FIELD(TYPE, NAME) printf("%-9s %-20s %3zu %zu\n", #TYPE, #NAME, offsetof(TYPE, NAME), sizeof(((TYPE *)0)->NAME));
#define TIMED(TYPE) FIELD(TYPE, kind) FIELD(TYPE, start) FIELD(TYPE, end)
#define PLACED(TYPE) TIMED(TYPE) FIELD(TYPE, deviceId) FIELD(TYPE, contextId) FIELD(TYPE, streamId) \
    FIELD(TYPE, correlationId) FIELD(TYPE, graphId)

int main(void) {
  PLACED(KERNEL)
  FIELD(KERNEL, registersPerThread) FIELD(KERNEL, gridX) FIELD(KERNEL, gridY) FIELD(KERNEL, gridZ)
  FIELD(KERNEL, blockX) FIELD(KERNEL, blockY) FIELD(KERNEL, blockZ)
  FIELD(KERNEL, staticSharedMemory) FIELD(KERNEL, dynamicSharedMemory) FIELD(KERNEL, name)
  PLACED(MEMCPY)
  FIELD(MEMCPY, copyKind) FIELD(MEMCPY, srcKind) FIELD(MEMCPY, dstKind) FIELD(MEMCPY, bytes)
  PLACED(PEER)
  FIELD(PEER, copyKind) FIELD(PEER, srcKind) FIELD(PEER, dstKind) FIELD(PEER, bytes)
  PLACED(MEMSET)
  FIELD(MEMSET, bytes) FIELD(MEMSET, memoryKind)
  TIMED(SYNC)
  FIELD(SYNC, type) FIELD(SYNC, correlationId) FIELD(SYNC, contextId) FIELD(SYNC, streamId) FIELD(SYNC, cudaEventId)
  TIMED(API)
  FIELD(API, cbid) FIELD(API, threadId) FIELD(API, correlationId)
  TIMED(OVERHEAD)
  FIELD(OVERHEAD, overheadKind)
  PLACED(GRAPH)
  return 0;
}
