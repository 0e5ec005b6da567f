//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How many CPUs this process may use.
//
//===----------------------------------------------------------------------===//

#include "Cpus.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace {

int affinityCount() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  // More CPUs than a cpu_set_t holds, or no such call: trust the library.
  return std::max(1u, std::thread::hardware_concurrency());
}

/// CPUs that `quota` microseconds in each `period` allow; 0 = no limit.
double quotaCpus(double quota, double period) {
  return quota > 0 && period > 0 ? quota / period : 0;
}

/// cgroup v2: "max 100000" or "150000 100000".
double readV2(const std::string &folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max")
    return 0;
  return quotaCpus(std::atof(quota.c_str()), period);
}

/// cgroup v1: two files; a quota of -1 means no limit.
double readV1(const std::string &folder) {
  std::ifstream quotaFile(folder + "/cpu.cfs_quota_us");
  std::ifstream periodFile(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (!(quotaFile >> quota) || !(periodFile >> period))
    return 0;
  return quotaCpus(quota, period);
}

double tighter(double a, double b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

/// The tightest limit from the group `path` up to the root: each level counts.
template <typename Read>
double walkUp(const std::string &root, std::string path, Read read) {
  double limit = 0;
  for (;;) {
    limit = tighter(limit, read(root + path));
    size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos)
      return limit;
    path.resize(slash);
  }
}

/// The limit named by one line "id:controllers:path" of /proc/self/cgroup.
double lineLimit(const std::string &line) {
  size_t first = line.find(':');
  size_t second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos)
    return 0;
  std::string controllers = line.substr(first + 1, second - first - 1);
  std::string path = line.substr(second + 1);
  if (path == "/")
    path.clear();
  if (controllers.empty())
    return walkUp("/sys/fs/cgroup", path, readV2);
  if (("," + controllers + ",").find(",cpu,") == std::string::npos)
    return 0;
  return walkUp("/sys/fs/cgroup/cpu", path, readV1);
}

double cgroupLimit() {
  std::ifstream groups("/proc/self/cgroup");
  double limit = 0;
  for (std::string line; std::getline(groups, line);)
    limit = tighter(limit, lineLimit(line));
  return limit;
}

} // namespace

int tilewright::runtime::availableCpus() {
  int cpus = affinityCount();
  double limit = cgroupLimit();
  if (limit > 0)
    cpus = std::min(cpus, static_cast<int>(std::ceil(limit)));
  return std::max(1, cpus);
}

int tilewright::runtime::useMatrixUnit() {
  // Linux, Documentation/arch/x86/xstate.rst: a process needs permission for
  // states that are large; its threads share it.
  constexpr long kRequestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;              // XFEATURE_XTILEDATA
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  static const int result =
      syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? 0 : errno;
  return result;
#else
  return ENOSYS;
#endif
}
