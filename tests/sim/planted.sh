#!/bin/sh
# Makes old mistakes again, one at a time, in a copy of the tree, and counts the seeds until the
# simulation finds each. Usage: tests/sim/planted.sh [NAME...]. At most SEEDS seeds and SECONDS_MAX
# seconds for each.
# A line of the table: name | file | what it becomes (a substitution of perl) | in words
set -eu
cd "$(dirname "$0")/../.."
copy=${B:-build}/planted
mkdir -p "$copy"
table() {
    cat <<'END'
fence-alone|db/sqlite/sqlite_sql.h|s/\(\?6 = -1 OR version = \?6\)/(?6 = -1 OR ?5 > 0 OR version = ?6)/|a fenced write does not test the version that was read
lock-given-early|app/section/attempt.c|s/(\s+)section_commit\(section\);/$1lock_set_release(&section->locks);$1section_commit(section);/|the lock is released before the commit
version-not-tested|app/section/section_write.c|s/fence > 0 \|\| row->guard->kind == GUARD_VERSION/fence > 0/|sql-version writes over whatever is there
key-not-stored|app/section/section_write.c|s/return op->answer.decided &&/return op->answer.decided \&\& op->answer.status < 300 \&\&/|a refusal is not stored under its key
log-not-flushed|db/sqlite/sqlite_setup.c|s/\? "FULL" : "NORMAL"/? "OFF" : "OFF"/|an answer is told before it is on the disk
undone-not-known|db/sqlite/sqlite_writer.c|s/return conn_exec\(&store->conn, "PRAGMA user_version = %d", SCHEMA_VERSION\) == DB_OK;/return true;/|a commit that failed counts as undone
work-not-undone|db/sqlite/sqlite_writer.c|s/conn_run_plain\(tx->conn, SQL_UNDO\);/(void)tx->conn;/|a refused work of a group leaves half of it
row-read-outside|app/section/section_write.c|s/if \(guard_reads_in_transaction\(section->rows\[i\].guard\)\)/if (guard_reads_in_transaction(section->rows[i].guard) \&\& section->n_rows > 1)/|sql-row and sql-atomic read before the transaction
mutex-not-kept|lockkit/guards/mutex.c|s/owner_of\(bucket, hold->key\) == hold \? LK_OK : LK_BUSY/LK_OK/|two threads have one mutex
lease-not-tested|lockkit/guards/sql_unique.c|s/#define FREE\(NOW\) "\(token IS NULL/#define FREE(NOW) "(1 OR token IS NULL/|a lock is taken from its holder
lead-not-given|db/sqlite/sqlite_queue.c|s/first->leads = true;\n\s*sem_post\(&first->woken\);/first->leads = true;/|the next writer is not woken
lane-not-called|app/lanes/lanes.c|s/pthread_cond_signal\(&thread->wanted\);/(void)thread;/|a thread is not woken for its lane
reflush-left-out|db/sqlite/sqlite_reflush.c|s/if \(!is_ours\(conn\)\)/if (!is_ours(conn) || conn)/|what a killed process left unflushed is told of
sharer-not-marked|db/sqlite/sqlite_shared_vfs.c|s/if \(code == SQLITE_OK && level == SQLITE_LOCK_EXCLUSIVE\)/if (code == SQLITE_OK \&\& level > SQLITE_LOCK_EXCLUSIVE)/|a killed sharer leaves no mark
limit-in-batch|app/section/section.c|s/ops\[i\]->bought = bought\[i\];/ops[i]->bought = 0 * bought[i];/|pieces bought before do not count to the limit
redis-not-compared|lockkit/redis/redis_guard.c|s/(lk_redis_delete_if_mine\[\] = "if redis.call\('get', KEYS\[1\]\)) == ARGV\[1\]/$1/|a release on Redis deletes without comparing the token
redis-renewal-late|lockkit/core/watchdog.c|s/while \(watchdog->busy == hold\)/while (watchdog->busy == hold \&\& watchdog->stop)/|a release does not wait for the renewal that is under way
redis-fence-not-lifted|lockkit/redis/redis_guard.c|s/"fence = math.max\(fence, tonumber\(ARGV\[1\]\)\) "/"fence = fence "/|the fence of a Redis that came back empty is not lifted
redis-message-lost|lockkit/redis/redis_wake.c|s/\*ret_no_race_left = was_live && !is_first && !shares && hold->permits == 1;/*ret_no_race_left = hold->permits > 0;/|a waiter sleeps after it has subscribed, without a second try
redis-undo-late|lockkit/core/acquire.c|s/if \(!call->may_free_late\)/if (!call->may_free_late || call)/|an undoing that comes late may free a later grant
redis-master-demoted|lockkit/redis/redis_mux_combine.c|s/mux->demoted = true;/(void)mux;/|a master that became a replica is asked on
redis-script-forgotten|lockkit/redis/redis_command.c|s/strncmp\(reply->root.text, "NOSCRIPT", 8\) == 0/strncmp(reply->root.text, "NOSCRIPT", 8) == 1/|a script that Redis forgot is not sent again
redlock-half|lockkit/redlock/redlock_nodes.c|s/nodes->n \/ 2 \+ 1/nodes->n \/ 2/|redlock takes two of five votes
redis-answer-of-another|lockkit/redis/redis_mux_combine.c|s/if \(mux->broken \|\| has_moved\(mux\)\)/if (has_moved(mux))/|a late answer of Redis answers the next command
redis-fair-old-try|lockkit/guards/redis_fair.c|s/handover.asked_us != waiting->asked_us \|\|/handover.asked_us > waiting->asked_us ||/|redis-fair takes a hand-over that answers an older try
fence-not-tested|db/sqlite/sqlite_sql.h|s/\(\?5 = 0 OR last_fence <= \?5\)/(?5 = 0 OR last_fence >= 0)/|the store does not compare fences
END
}
if [ ! -d "$copy/build" ] && [ -d build/obj ]; then # what is built already
    mkdir -p "$copy/build"
    cp -a build/obj build/*.a "$copy/build/"
fi
for name in ${*:-$(table | cut -d'|' -f1)}; do
    line=$(table | grep "^$name|") || { echo "$name: not in the table" >&2; exit 2; }
    file=$(printf '%s' "$line" | awk -F'|' '{ print $2 }')
    words=${line##*|}
    change=${line#*|*|}
    change=${change%|*}
    for part in app db lockkit tests Makefile .layers; do cp -a -u "$part" "$copy/"; done
    cp -a "$file" "$copy/$file"
    perl -0pi -e "$change" "$copy/$file"
    if cmp -s "$file" "$copy/$file"; then
        echo "$name: does not apply to $file"
        continue
    fi
    touch "$copy/$file"
    if ! make -s -C "$copy" B=build CC="${CC:-gcc}" build/tests/sim/test_sim; then
        echo "$name: does not build"
        cp -a "$file" "$copy/$file"
        touch "$copy/$file"
        continue
    fi
    SIM_SEEDS=${SEEDS:-2000} SIM_SECONDS=${SECONDS_MAX:-600} SIM_UNTIL_BROKEN=1 \
        "$copy/build/tests/sim/test_sim" >"$copy/log" 2>/dev/null || :
    seeds=$(sed -n 's/.*"seeds": \([0-9]*\),.*/\1/p' "$copy/log")
    what=$(sed -n 's/^seed \([0-9]*\): \([^:]*\).*/seed \1: \2/p' "$copy/log" | head -n 1)
    echo "| $words | $seeds | ${what:-not found} |"
    cp -a "$file" "$copy/$file"
    touch "$copy/$file"
done
