// Ready-made exercises. subject: of an account, unless it is said; loses: what the learner will see;
// points: where each actor is held; texts: [English, 中文].
import { ITEM } from "./row.js";

export const ALL = ["waiting", "acquired", "read", "decided", "committed"];
const SOME = ["waiting", "decided", "committed"];
const LATE = ["waiting", "checked", "committed"]; // between the last look at the lock and the write
const LEASE_MS = 8000;

export const exercises = [
  {
    id: "lost-update", loses: true, guard: "none", actors: 2, fence: "off", lease: 0, points: [ALL, ALL],
    title: ["Lost update: no lock", "丢失更新：没有锁"],
    task: ["The account has 1,000. A takes 200, B takes 300: 500 should be left. Move the two so that money is lost.",
      "账户有 1,000。A 取 200，B 取 300，应剩 500。请安排两者的先后，让钱丢失。"],
    hint: ["Let both read before either of them writes.", "让两者都先读，再让任何一个写。"],
    lesson: ["Both worked out their result from one old value; whoever wrote last won.", "两者都按同一个旧值算出结果；后写的覆盖了先写的。"],
  },
  {
    id: "locked", loses: false, guard: "redis-token", actors: 2, fence: "on", lease: 0, points: [ALL, ALL],
    title: ["The same under a lock", "同样的操作，加锁"],
    task: ["The same two, under a Redis lock. Try to lose money now.", "同样两个请求，有 Redis 锁。现在再试试让钱丢失。"],
    hint: ["Move A until it has read, then B: B can only wait. The lock is let go after the write is committed.",
      "先让 A 读，再动 B：B 只能等。锁在写入提交之后才放开。"],
    lesson: ["Read, decision and write of one stood wholly before those of the other.", "一个请求的读、算、写，整个排在另一个之前。"],
  },
  {
    id: "last-piece", subject: ITEM, loses: true, guard: "none", actors: 2, fence: "off", lease: 0, points: [ALL, ALL],
    title: ["The last piece: no lock", "最后一件：没有锁"],
    task: ["One piece is left, and A and B both want it. Sell it twice.", "只剩一件，A 和 B 都想要。把它卖两次。"],
    hint: ["Let both read that one is left before either of them writes.", "让两者都先读到“还剩一件”，再让任何一个写。"],
    lesson: ["Both saw one piece and both sold it. The row says 0, as if nothing had happened: a lost update is an oversold piece.",
      "两者都看到一件，都卖了出去。库存显示 0，好像什么都没发生：丢失更新就是超卖。"],
  },
  {
    id: "last-piece-locked", subject: ITEM, loses: false, guard: "redis-token", actors: 2, fence: "on", lease: 0, points: [ALL, ALL],
    title: ["The last piece under a lock", "最后一件，加锁"],
    task: ["The same two, under a Redis lock. Try to sell the piece twice now.", "同样两个买家，有 Redis 锁。现在再试试卖两次。"],
    hint: ["Move A until it has read, then B: B can only wait, and finds nothing left when its turn comes.", "先让 A 读，再动 B：B 只能等，轮到它时已经没有了。"],
    lesson: ["The one who came second read only after the first had written: sold out, and nothing oversold.", "后到的等先到的写完才读：已售罄，没有超卖。"],
  },
  {
    id: "expired-lease", loses: true, guard: "redis-set", actors: 2, fence: "off", lease: LEASE_MS, points: [LATE, SOME],
    title: ["The lease ends too early", "租约先到期"],
    task: ["A's lock has a lease of a few seconds, and A is slow. Let B in when it is over, and lose money.",
      "A 的锁只有几秒租约，而 A 很慢。等租约到期让 B 进来，把钱丢掉。"],
    hint: ["Move A twice: it has looked at its lock for the last time. Wait until the lock is free, let B read, then let A write and B after it.",
      "移动 A 两次：它最后一次看过锁了。等锁空出来，让 B 读，再让 A 写，然后 B 写。"],
    lesson: ["The lock server was right by its clock, and two were inside. Only a watchdog or a fence helps.",
      "锁服务器按自己的钟没有错，里面却有两个人。只有看门狗或栅栏令牌能帮忙。"],
  },
  {
    id: "paused-holder", loses: true, guard: "redis-token", actors: 2, fence: "off", lease: LEASE_MS, points: [LATE, SOME],
    title: ["Paused holder, fence off", "持有者停顿，无栅栏令牌"],
    task: ["A's process stands still after its last look at the lock; each lock has its own token. Is that enough?",
      "A 的进程在最后一次看锁之后停住；每把锁都有自己的令牌。这就够了吗？"],
    hint: ["As before: A twice, wait for the lease, B until it has decided, then A, then B.", "同前：A 两次，等租约到期，B 移到“已决定”，再 A，再 B。"],
    lesson: ["A token of one's own keeps the release honest. It does not keep a late write out.", "自己的令牌只保证不放错锁，挡不住迟到的写入。"],
  },
  {
    id: "paused-holder-fence", loses: false, guard: "redis-token", actors: 2, fence: "on", lease: LEASE_MS, points: [LATE, SOME],
    title: ["Paused holder, fence on", "持有者停顿，有栅栏令牌"],
    task: ["The same, but the account's row refuses writes that do not fit the fences it has seen. Try again to lose money.",
      "同样的情形，但账户这一行会拒绝与已见令牌不符的写入。再试试丢钱。"],
    hint: ["The same moves: A twice, wait for the lease, B until it has decided, then A. Now look at what B may write.", "同样的步骤：A 两次，等租约到期，B 移到“已决定”，再 A。然后看 B 能写什么。"],
    lesson: ["Two with different fences had read one value: the row let only one of them write, and the other began again from what it really held.",
      "两个令牌不同的请求读了同一个值：这一行只让其中一个写，另一个按真实的值重新开始。"],
  },
  {
    id: "wrong-delete", loses: true, guard: "redis-set", actors: 3, fence: "off", lease: LEASE_MS, points: [SOME, SOME, SOME],
    title: ["The wrong lock deleted", "删错了锁"],
    task: ["A's lease ends while it works, and B gets the lock. Now A comes to its end and deletes the key. Let C in beside B.",
      "A 干活时租约到期，锁归了 B。A 收尾时删掉了 key。让 C 和 B 同时进去。"],
    hint: ["A twice; wait for the lease; B twice; A once more: it is refused, and frees B's lock; C twice; then B and C to their ends.",
      "A 两次；等租约到期；B 两次；A 再一次：它被拒绝，却放掉了 B 的锁；C 两次；然后 B、C 走完。"],
    lesson: ["A bare DEL asks nobody whose lock it is.", "直接 DEL，根本不问锁是谁的。"],
  },
  {
    id: "own-token", loses: false, guard: "redis-token", actors: 3, fence: "off", lease: LEASE_MS, points: [SOME, SOME, SOME],
    title: ["Only one's own lock deleted", "只删自己的锁"],
    task: ["The same three, but a release compares the token first. Try to let C in beside B.", "同样三个请求，但放锁前先比较令牌。试试让 C 和 B 同时进去。"],
    hint: ["The same moves: A's release finds B's token and leaves it alone; C has to wait.", "同样的步骤：A 放锁时看到 B 的令牌，就不动它；C 只能等。"],
    lesson: ["Compared and deleted in one step on the server: A freed nobody else's lock.", "在服务器上一步完成“比较再删除”：A 没有放掉别人的锁。"],
  },
];
