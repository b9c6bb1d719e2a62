// All captions, in one table: [English, 中文].
const texts = {
  title: ["Flash sale under a lock", "分布式锁下的秒杀"],
  language: ["Language", "语言"],
  saleA: ["First sale", "第一场"],
  saleB: ["Second sale", "第二场"],
  guard: ["Guard", "锁"],
  lease: ["Lease, ms", "租约（毫秒）"],
  watchdog: ["Watchdog", "看门狗"],
  withFence: ["Fence", "栅栏令牌"],
  inLanes: ["Lanes", "合并批次"],
  noLab: ["Lease, watchdog, lanes and faults can be chosen in a service with --lab (make serve).", "只有用 --lab（make serve）启动的服务才能选择租约、看门狗、合并批次和故障。"],
  leaseIs: ["lease {ms} ms", "租约 {ms} 毫秒"],
  watched: ["watchdog", "看门狗"],
  unwatched: ["no watchdog", "无看门狗"],
  fenced: ["fence", "栅栏令牌"],
  unfenced: ["no fence", "无栅栏令牌"],
  batched: ["lanes", "合并批次"],
  buyers: ["Buyers", "买家数"],
  stock: ["Pieces", "库存件数"],
  connections: ["Connections", "连接数"],
  rate: ["Per second (0: at once)", "每秒请求（0：同时）"],
  lanes: ["Requests shown", "显示的请求数"],
  countdown: ["Countdown, s", "倒计时（秒）"],
  start: ["Start sale", "开始秒杀"],
  cancel: ["Cancel", "取消"],
  startsIn: ["Starts in {left} …", "{left} 秒后开始 …"],
  cancelled: ["Cancelled.", "已取消。"],
  left: ["pieces really left", "件实际剩余"],
  sold: ["sold", "已售出"],
  row: ["stock in the row", "数据库中的库存"],
  oversold: ["oversold", "超卖"],
  lost: ["lost updates", "丢失的更新"],
  refused: ["refused", "被拒绝"],
  perSecond: ["requests/s", "请求/秒"],
  lanesTitle: ["Requests that bought: who waited, who was inside", "成功的请求：谁在等待，谁在临界区"],
  keyWaiting: ["waiting", "等待"],
  keyHolding: ["holding the guard", "持有锁"],
  keySection: ["read to write", "从读到写"],
  keyClash: ["✗ two read the same value", "✗ 两个请求读到同一个值"],
  connected: ["● live", "● 已连接"],
  reconnecting: ["○ connecting …", "○ 正在连接 …"],
  idle: ["not started", "尚未开始"],
  queued: ["its turn comes", "等候中"],
  running: ["… selling", "… 销售中"],
  good: ["✓ exact: {sold} of {initial} sold", "✓ 正好：售出 {sold} / {initial}"],
  bad: ["✗ OVERSOLD by {oversold}, updates lost: {lost}", "✗ 超卖 {oversold} 件，丢失更新：{lost}"],
  under: ["✗ {left} pieces left over", "✗ 剩余 {left} 件未售出"],
  failed: ["The sale failed: {why}", "秒杀失败：{why}"],
  noDemo: ["Start the service with --demo (make serve) to run sales from here.", "请用 --demo（make serve）启动服务后再从此页面发起秒杀。"],
  limits: ["{unnoted} requests counted but not drawn: more than the page can show.", "另有 {unnoted} 个请求只计数、未绘出：超出页面可显示的数量。"],
  chart: ["{guard}: pieces over the seconds of the sale; now {left} are really left, and the row says {row}", "{guard}：件数随秒数的变化；现在实际剩余 {left}，数据库中为 {row}"],
  chartTitle: ["Pieces, by seconds of the sale", "件数（横轴：开始后的秒数）"],
  keyLeft: ["really left", "实际剩余"],
  keyUnder: ["oversold", "超卖"],
  keyRow: ["as the row says", "数据库中的库存"],
  seconds: ["{s} s", "{s} 秒"],
  lane: ["{key}: read {read}, wrote {wrote}", "{key}：读到 {read}，写入 {wrote}"],
  clash: ["✗ Both read {value}, each wrote its own result: one sale vanished from the stock.", "✗ 两个请求都读到 {value}，各自写回结果：库存少扣了一次。"],
  alone: ["✓ Nobody else read this value: the guard kept them apart.", "✓ 没有其他请求读到这个值：锁把它们隔开了。"],
  batch: ["✓ Read once for a whole batch, under one lock, and decided one after the other.", "✓ 整批请求在同一把锁内只读一次，然后依次决定。"],
  batches: ["With lanes one lock serves a batch of requests, which then stand side by side.", "合并批次时一把锁服务一批请求，所以它们并排出现。"],
  request: ["request", "请求"],
  readValue: ["read", "读到"],
  wroteValue: ["wrote", "写入"],
  waited: ["waited", "等待"],
  inside: ["read to write", "从读到写"],
  fence: ["fence", "栅栏令牌"],
  ledger: ["Rows of the ledger that start from one version:", "账本中从同一版本出发的两行："],
  fault: ["Fault", "故障"],
  faultNone: ["none", "无"],
  faultPause: ["pause the holder", "暂停持有者"],
  faultFlush: ["flush the lock", "清除锁"],
  faultKill: ["kill the instance", "杀死实例"],
  faultCut: ["cut Redis", "切断 Redis"],
  faultMend: ["restore Redis", "恢复 Redis"],
  faultAfter: ["Fault after, s", "故障延迟（秒）"],
  faultNow: ["Now:", "立即："],
  faultIsCut: ["The wire to Redis is cut: nobody can take a lock, or renew one.", "到 Redis 的连接已切断：无法加锁，也无法续租。"],
  faultCutOrders: ["Meanwhile {refused} orders were refused (503), and {written} written.", "其间 {refused} 个订单被拒绝（503），{written} 个被写入。"],
  faultRestored: ["The wire is whole again.", "连接已恢复。"],
  faultWireHeld: ["nobody has cut the wire, or made it whole", "没有人切断或恢复连接"],
  keyKilled: ["† killed inside; its lock stands", "† 在临界区内被杀死；锁仍在"],
  killedInside: ["† Its instance was killed while it was inside: it has written nothing.", "† 实例在它处于临界区时被杀死：它没有写入任何内容。"],
  faultKilled: ["The instance is killed with it (SIGKILL), and the load with the instance.", "实例连同它被杀死（SIGKILL），负载也随之结束。"],
  faultNotBack: ["nobody has started the service again", "没有人重新启动服务"],
  faultOrphan: ["A new instance is up. The lock of the dead one stands for {left} ms more.", "新实例已启动。死者的锁还会保留 {left} 毫秒。"],
  faultHeir: ["✓ The next buyer had to wait {waited} ms, and bought.", "✓ 下一位买家等待了 {waited} 毫秒后买到。"],
  faultStuck: ["✗ The next buyer did not get in: {why}", "✗ 下一位买家无法进入：{why}"],
  stopped: ["stopped: {sold} of {initial} sold", "已中止：售出 {sold} / {initial}"],
  keyLease: ["lease ends", "租约到期"],
  keyMarked: ["‖ held on purpose", "‖ 被故意暂停"],
  faultHeld: ["{key} is inside and is held just before its write.", "{key} 已进入临界区，在写入前被暂停。"],
  faultTooLate: ["Nobody was about to write any more.", "已没有请求要写入。"],
  faultLease: ["Its lease has {left} ms left.", "其租约还剩 {left} 毫秒。"],
  faultNoLease: ["Its lock has no lease.", "这把锁没有租约。"],
  faultNoLock: ["There is no lock.", "没有锁。"],
  faultFlushed: ["Its lock is deleted from the lock server.", "它的锁已从锁服务器中删除。"],
  faultNext: ["Another one got in, read and decided. The first may go on.", "另一个请求进入，读取并做出了决定。放行第一个请求。"],
  faultRenewed: ["The watchdog renewed the lock: nobody got in. It may go on.", "看门狗续租：没有其他请求进入。放行。"],
  faultNobody: ["Nobody got in. It may go on.", "没有其他请求进入。放行。"],
  faultRefused: ["✓ Its late write was refused.", "✓ 迟到的写入被拒绝。"],
  faultAgain: ["✓ Its late write was refused. It read again, and wrote.", "✓ 迟到的写入被拒绝。它重新读取后完成写入。"],
  faultWrote: ["It wrote.", "它完成了写入。"],
  faultLost: ["✗ Lost updates in the ledger: {lost}.", "✗ 账本中丢失的更新：{lost}。"],
  faultFenced: ["✓ The ledger has no lost update: the fence let one of the two writes through.", "✓ 账本中没有丢失的更新：两次写入中栅栏令牌只放行了一次。"],
  faultNothingLost: ["✓ The ledger has no lost update.", "✓ 账本中没有丢失的更新。"],
  refusedLate: ["✓ It was held until another one had written; its own write, from {value}, was refused.", "✓ 它被暂停到另一个请求写入之后；它基于 {value} 的写入被拒绝。"],
  save: ["Save as a file", "保存为文件"],
  parameters: ["Parameters", "参数"],
  parameter: ["parameter", "参数"],
  inAddress: ["in the address", "地址中的名称"],
  value: ["value", "值"],
  cores: ["{cores} cores", "{cores} 核"],
  counterexample: ["Counter-example of {guard}", "{guard} 的反例"],
  close: ["Close", "关闭"],
  toSteps: ["Step by step", "逐步演示"],
};

let column = 0;

// Captions of another page, over these.
export function addTexts(more) {
  Object.assign(texts, more);
}

// The one of a pair [English, 中文].
export function chosen(pair) {
  return pair[column];
}

export function setLanguage(lang) {
  column = lang === "zh" ? 1 : 0;
  document.documentElement.lang = column ? "zh" : "en";
  document.title = text("title");
  translate(document);
}

export function translate(root) {
  for (const element of root.querySelectorAll("[data-text]"))
    element.textContent = text(element.dataset.text);
}

export function text(name, values = {}) {
  return texts[name][column].replace(/\{(\w+)\}/g, (_, key) => number(values[key]));
}

export function number(value) {
  return typeof value === "number" ? value.toLocaleString("en-US").replace("-", "−") : String(value);
}

export function duration(us) {
  if (us < 1000) return `${us} µs`;
  return us < 1e6 ? `${(us / 1000).toPrecision(3)} ms` : `${(us / 1e6).toFixed(2)} s`;
}
