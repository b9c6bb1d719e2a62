/* Scheduled tasks: orders whose time is over. Rows: double-task, late-payment. */
#include "hazard_rows.h"

static const struct hazard_step both_tasks_find_it[] = {
    {A, RUN, NULL},         {TASKS, SEND, NULL},   {TASKS, AS_FAR_AS, "decided"},
    {TASKS, RELEASE, NULL}, {TASKS, ANSWER, NULL}, HAZARD_END,
};

static const struct hazard_case double_task_cases[] = {
    {"none", HAZARD_UNSAFE, {0}, {NULL}, NULL},
    {"redis-token", HAZARD_SAFE, {.lease_ms = 10000}, {NULL}, NULL},
    {"zk-sequential", HAZARD_SAFE, {.lease_ms = 10000}, {NULL}, NULL},
    {"sql-row", HAZARD_SAFE, {0}, {NULL}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_double_task = {
    .id = "double-task",
    .title = {"The same task runs on two instances", "同一个定时任务在两个实例上执行"},
    .story =
        {"A reserves a piece and does not pay. When the reservation ends, the task of each "
         "instance finds the order and reads it as reserved. Each closes it and returns the "
         "piece. The ledger has two returns for one order.",
         "A 预订了一件，没有付款。预订到期，两个实例的定时任务都发现了这张订单，都读到“已预订”，"
         "都去关单、退库存：一张订单，流水表上退了两次。"},
    .warning =
        {"Every guide to scheduled jobs on several servers: the timer fires on each of them.",
         "讲多台服务器上跑定时任务的文章都会提醒：每一台都会触发。"},
    .fix = {"Use one lock for the task (lock:task:close-orders). A task that does not get it at "
            "once leaves the work to the other. Each order is also closed under its own guard.",
            "给任务一把锁（lock:task:close-"
            "orders）：没有立刻拿到的任务就跳过。每张订单也在自己的锁里关闭。"},
    .subject = ITEM,
    .initial = 10,
    .reserve_s = 3,
    .with = {.close_ms = 50},
    .steps = both_tasks_find_it,
    .cases = double_task_cases,
};

/* A's payment has read the order while it was open. */
static const struct hazard_step closed_while_it_is_paid[] = {
    {A, RUN, NULL},
    {A, PAY, NULL},
    {A, UNTIL, "decided"},
    {TASKS, SEND, NULL},
    {TASKS, AS_FAR_AS, "released"},
    {A, RELEASE, NULL},
    {A, ANSWER, NULL},
    {TASKS, RELEASE, NULL},
    {TASKS, ANSWER, NULL},
    HAZARD_END,
};

static const struct hazard_step closed_and_then_paid[] = {
    {A, RUN, NULL},
    {TASKS, SEND, NULL},
    {TASKS, AS_FAR_AS, "released"},
    {TASKS, RELEASE, NULL},
    {TASKS, ANSWER, NULL},
    {A, PAY, NULL},
    {A, ANSWER, NULL},
    HAZARD_END,
};

static const struct hazard_case late_payment_cases[] = {
    {"none", HAZARD_UNSAFE, {0}, {"closed while it is being paid", "正在付款时被关单"}, NULL},
    {"redis-token",
     HAZARD_SAFE,
     {.lease_ms = 10000},
     {"closed while it is being paid", "正在付款时被关单"},
     NULL},
    {"sql-row", HAZARD_SAFE, {0}, {"closed while it is being paid", "正在付款时被关单"}, NULL},
    {"redis-token",
     HAZARD_REFUSED,
     {.lease_ms = 10000},
     {"paid after it was closed", "关单之后才付款"},
     closed_and_then_paid},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_late_payment = {
    .id = "late-payment",
    .title = {"The payment arrives after the piece returned to stock", "库存已经退回，付款才到"},
    .story = {"A's payment reads its order as open. Before the payment is written, the reservation "
              "ends and the task returns the piece to stock. The payment is written all the same. "
              "A has paid for a piece that the next buyer gets too.",
              "A 的付款读到订单未关闭。还没写入，预订到期，任务把这一件退回库存。付款照样写入：A "
              "付了钱，同一件货又卖给下一个买家。"},
    .warning = {"Flash-sale texts that close unpaid orders with a delayed message, but do not say "
                "what happens to a payment on its way.",
                "秒杀文章用延迟消息关掉未付款的订单，却不说路上的那笔付款怎么办。"},
    .fix = {"Payment and closing take the same lock, and each checks the order's state under it. "
            "The second one learns that the order is paid or closed.",
            "付款和关单用同一把锁，都在锁里检查订单状态：后到的得知已付款，或者已关闭。"},
    .subject = ITEM,
    .initial = 10,
    .reserve_s = 3,
    .with = {.instances = 1, .close_ms = 50},
    .steps = closed_while_it_is_paid,
    .cases = late_payment_cases,
};
