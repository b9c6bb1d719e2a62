/* Faults of the lock server and of the connections to it: see HAZARD_VERB_MAP. Each returns 0, or
 * -1 with run->message when the fault was not observed to take effect. */
#ifndef HAZARD_FAULTS_H
#define HAZARD_FAULTS_H

#include "hazard_run.h"

int fault_outlive(struct hazard_run *run, const struct hazard_step *step);
int fault_gone(struct hazard_run *run, const struct hazard_step *step);
int fault_still_there(struct hazard_run *run, const struct hazard_step *step);
int fault_delete(struct hazard_run *run, const struct hazard_step *step);
int fault_evict(struct hazard_run *run, const struct hazard_step *step);
int fault_reboot(struct hazard_run *run, const struct hazard_step *step);
int fault_down(struct hazard_run *run, const struct hazard_step *step);
int fault_up(struct hazard_run *run, const struct hazard_step *step);
int fault_leap(struct hazard_run *run, const struct hazard_step *step);
int fault_cut_replica(struct hazard_run *run, const struct hazard_step *step);
int fault_fail_over(struct hazard_run *run, const struct hazard_step *step);
int fault_depose(struct hazard_run *run, const struct hazard_step *step);
int fault_need_copy(struct hazard_run *run, const struct hazard_step *step);
int fault_split(struct hazard_run *run, const struct hazard_step *step);
int fault_lose(struct hazard_run *run, const struct hazard_step *step);
int fault_lose_leave(struct hazard_run *run, const struct hazard_step *step);
int fault_silence(struct hazard_run *run, const struct hazard_step *step);
int fault_unheard(struct hazard_run *run, const struct hazard_step *step);
int fault_lose_asking(struct hazard_run *run, const struct hazard_step *step);
int fault_lost(struct hazard_run *run, const struct hazard_step *step);
int fault_asking_lost(struct hazard_run *run, const struct hazard_step *step);
int fault_cut(struct hazard_run *run, const struct hazard_step *step);
/* hazard_faults_store.c */
int fault_hold_commit(struct hazard_run *run, const struct hazard_step *step);
int fault_commit_held(struct hazard_run *run, const struct hazard_step *step);
int fault_land_commit(struct hazard_run *run, const struct hazard_step *step);

#endif
