/*
 * A judge of the fence alone. It stands at db.h, between the service and the store, and sees each
 * fenced write: resource, fence, version read, version written. It reads no row of the database.
 *
 * What it asserts is the invariant at the head of db.h: a fenced write lands only on the row state
 * that its holder read, and never after a write of a newer holder. So of the fenced writes that
 * were committed to one epoch of a resource
 *   - no two cover one version (each covers those from the one it read to the one it wrote);
 *   - in the order of their versions, fences of one guard do not fall.
 * This holds under every guard and setting, for fenced writes.
 *
 * Writes of unknown outcome, and of instances that were killed meanwhile, are left out.
 */
#ifndef SIM_FENCE_H
#define SIM_FENCE_H

/* A new run. */
void sim_fence_begin(void);
/* The power failed: what was committed may be gone, unless each commit was flushed. */
void sim_fence_power_cut(void);

#endif
