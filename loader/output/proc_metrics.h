/* SPDX-License-Identifier: MIT */
/* Host and target metrics from /proc: the state of the machine around a spike. */
#ifndef FORKTAIL_LOADER_PROC_METRICS_H
#define FORKTAIL_LOADER_PROC_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct proc_metrics;

/* Series are named on first use:
 *   host.cpu.{user,system,idle,iowait,irq,softirq,steal}   percent of all CPUs together
 *   host.memory.{available,free,cached,dirty,writeback,swap_free}   bytes
 *   host.{page_faults,major_faults,swap_in,swap_out}   per second (pages)
 *   host.disk.{read,write}   bytes per second, label device
 *   host.softirq   per second, labels cpu and vector
 *   host.network.{receive,transmit}   bytes per second, label interface
 *   host.{oom_kills,page_cache_drops,slab_drops}   as the kernel counts them
 *   target.{cpu,rss,minor_faults,major_faults}   percent of one CPU, bytes, per second; label pid
 *   cgroup.{throttles,throttled}   as the kernel counts them: times, ns; label cgroup (quota.h)
 *   cgroup.memory.{limit_hits,high_hits,oom_kills}   as the kernel counts them; label cgroup
 *     (cgroup_memory.h)
 * A value is written when it differs from the previous one, so a series holds its last value until the next.
 * `proc` is where proc is mounted. Returns NULL without memory. */
struct proc_metrics *proc_metrics_open(struct ft_writer *w, const char *proc);
/* Reads everything once, but targets of thousands of threads more rarely. Rates are over the time since the
 * last reading. */
void proc_metrics_sample(struct proc_metrics *m, const pid_t *pids, size_t count);
/* Writes a value that the caller has read, with the time of the last proc_metrics_sample. */
void proc_metrics_level(struct proc_metrics *m, const char *name, const char *unit, double value,
			const char *label, const char *label_value);
/* A new file begins: series are named and values written again, whether or not they changed. Series that the
 * previous file did not need are forgotten. */
void proc_metrics_begin_segment(struct proc_metrics *m);
void proc_metrics_close(struct proc_metrics *m);

#ifdef __cplusplus
}
#endif

#endif
