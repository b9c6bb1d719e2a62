/* Tells a run while it happens, in plain words. One sentence per verb and language. */
#include "hazard_facts.h"
#include "text.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SENTENCE_MAX = 400, TRACE_MAX = 256, LOOK_EVERY_MS = 100 };

/* {who} {what} {list} {nodes} {wish} {status} {values} {noted}: filled in below. */
static const hazard_text sentences[HAZARD_VERBS] = {
    [SEND] = {"{who} asks to {wish}.", "{who} 请求{wish}。"},
    [UNTIL] = {"{who} is held at \"{what}\"{values}.", "{who} 走到“{what}”，停在那里{values}。"},
    [AS_FAR_AS] = {"{who} goes on: {stands}{values}.", "{who} 往前走：{stands}{values}。"},
    [PASSED] = {"{who} has passed \"{what}\".", "看到 {who} 经过了“{what}”。"},
    [RELEASE] = {"{who} may go on.", "放行 {who}。"},
    [ANSWER] = {"{who} is answered: {status}.", "{who} 得到应答：{status}。"},
    [RUN] = {"{who} asks to {wish}, and is answered: {status}.",
             "{who} 请求{wish}，得到应答：{status}。"},
    [PAY] = {"{who} pays for the order.", "{who} 为订单付款。"},
    [RETRY] = {"{who} was refused and asks again with the same key: {status}.",
               "{who} 被拒绝，用同一个幂等键重试：{status}。"},
    [SEND_AGAIN] = {"{who} asks once more, with a new key.", "{who} 换了一个新的键再请求一次。"},
    [REPEAT] = {"{who} sends the request again with the same key: {status}.",
                "{who} 用同一个键再发一次：{status}。"},
    [EVICT] = {"The lock server runs out of memory for a moment: {noted}.",
               "锁服务器内存一时不足：{noted}。"},
    [INSIST] = {"{who} asks to {wish}, again while the lock server is away: {stands}{values}.",
                "{who} 请求{wish}，锁服务器没有应答就重试：{stands}{values}。"},
    [LEAP] = {"The clock of node {what} jumps beyond the lease: its copy of the lock is gone.",
              "节点 {what} 的时钟跳过了租约：它那一份锁没了。"},
    [CUT_REPLICA] = {"The replica of the lock server is cut off and gets no more updates.",
                     "锁服务器的副本被断开，收不到任何更新。"},
    [FAIL_OVER] = {"The master is killed, and the Sentinels promote the replica.",
                   "主节点被强杀，哨兵把副本提升为主节点。"},
    [DEPOSE] = {"The leader of the three servers is killed; the other two elect another.",
                "三台服务器中的 leader 被强杀，另外两台选出新的 leader。"},
    [NEED_COPY] = {"The master is told to write nothing while no replica follows it "
                   "(min-replicas-to-write 1).",
                   "主节点设为：没有副本跟随就不接受写入（min-replicas-to-write 1）。"},
    [SPLIT] = {"The network splits. The Sentinels and the replica are on one side, the old master "
               "and its clients on the other. The replica is promoted: there are two masters.",
               "网络一分为二：一边是哨兵和副本，另一边是老主节点和还连着它的客户端。"
               "副本被提升：现在有两个主节点。"},
    [KILL] = {"The instance that serves {who} is killed (kill -9).",
              "处理 {who} 请求的实例被强杀（kill -9）。"},
    [RESTART] = {"The instance that serves {who} starts again.", "处理 {who} 请求的实例重新启动。"},
    [STOP] = {"The process that serves {who} is stopped.", "处理 {who} 请求的进程停住不动。"},
    [CONTINUE] = {"The process that serves {who} wakes up.", "处理 {who} 请求的进程恢复运行。"},
    [OUTLIVE] = {"A whole lease passes: {noted}.", "一整个租约过去了：{noted}。"},
    [GONE] = {"The lock server says: the key is gone.", "锁服务器说：key 已经没有了。"},
    [STILL_THERE] = {"The lock server says: the key is still there.", "锁服务器说：key 还在。"},
    [DELETE] = {"Somebody deletes the key on the lock server.", "锁 key 在锁服务器上被删除。"},
    [DOWN] = {"Nodes {list} of the lock servers are killed.", "锁服务器的节点 {what} 被强杀。"},
    [UP] = {"Nodes {list} of the lock servers start again, empty.",
            "锁服务器的节点 {list} 丢了数据重启。"},
    [REBOOT] = {"The lock server is killed and started again: {noted}.",
                "锁服务器被强杀后重启：{noted}。"},
    [LOSE] = {"The network will lose the answer to {who}'s next command about the lock{nodes}.",
              "{who} 下一条锁命令的应答将在网络上丢失{nodes}。"},
    [LOST] = {"That answer is lost: the command was done, and {who} was not told.",
              "应答丢了：命令已执行，{who} 并不知道。"},
    [LOSE_ASKING] = {"The network will lose {who}'s next command about the lock.",
                     "{who} 下一条锁命令将在网络上丢失。"},
    [ASKING_LOST] = {"That command is lost: nothing was done, and {who} cannot know.",
                     "命令丢了：什么也没执行，而 {who} 无从知道。"},
    [LOSE_LEAVE] = {"The network will lose {who}'s command to leave the queue.",
                    "{who} 退出队列的命令将在网络上丢失。"},
    [SILENCE] =
        {"{who}'s subscription goes silent: the connection stays open, and messages vanish.",
         "{who} 的订阅收不到消息了：连接还开着，消息却都丢失。"},
    [UNHEARD] = {"The message to {who} is lost.", "发给 {who} 的消息丢了。"},
    [CUT] = {"{who}'s connection to the lock server is cut.", "{who} 与锁服务器的连接被断开。"},
    [HOLD_COMMIT] = {"The network will hold {who}'s COMMIT on its way to the database.",
                     "{who} 发给数据库的 COMMIT 将在网络上被扣住。"},
    [COMMIT_HELD] = {"{who} has sent COMMIT. Its connection breaks, and no answer comes.",
                     "{who} 发出了 COMMIT；连接断开，没有应答。"},
    [LAND_COMMIT] = {"The network delivers the held COMMIT.", "被扣住的 COMMIT 送达数据库。"},
};

/* {n} {woken} {accepted} {refused} {failed}: filled in below. */
static const hazard_text crowd_sentences[HAZARD_VERBS] = {
    [SEND] = {"{n} buyers ask for one piece each.", "{n} 个买家各要一件。"},
    [UNTIL] = {"All {n} wait for the lock.", "{n} 个买家都在等锁。"},
    [AS_FAR_AS] = {"The first buyers go on until two have decided, or until one has decided and "
                   "another waits for the lock.",
                   "最前面的买家往前走：直到两个都已算好，或者一个算好、另一个在等锁。"},
    [PASSED] = {"The release woke {woken} of them.", "这一次释放锁叫醒了 {woken} 个等待者。"},
    [RELEASE] = {"All may go on.", "全部放行。"},
    [ANSWER] = {"All are answered: {accepted} accepted, {refused} turned away, {failed} failed.",
                "全部得到应答：抢到 {accepted} 个，未抢到 {refused} 个，失败 {failed} 个。"},
};

/* They come by themselves, and are answered by nobody. */
static const hazard_text tasks_sentences[HAZARD_VERBS] = {
    [SEND] = {"When the order's time is over, the scheduled task of each instance will handle it.",
              "订单一到期，每个实例的定时任务都会来处理它。"},
    [AS_FAR_AS] =
        {"The tasks go on until \"{what}\", until they wait for the order's lock, or "
         "until they leave because another task is at work.",
         "定时任务往前走，直到“{what}”、在等订单的锁，或者因为另一个任务正在处理而离开。"},
    [RELEASE] = {"The tasks may go on.", "放行定时任务。"},
    [ANSWER] = {"The tasks are done with the order.", "定时任务处理完了这张订单。"},
};

/* {queue}: how many they are. */
static const hazard_text queue_sentences[HAZARD_VERBS] = {
    [SEND] = {"{queue} others come, one after another. Each waits before the next comes.",
              "又来了 {queue} 个请求，一个接一个：前一个在等，后一个才来。"},
    [ANSWER] = {"All {queue} are served.", "{queue} 个请求都已完成。"},
};

static const hazard_text readers_sentences[HAZARD_VERBS] = {
    [SEND] = {"Two readers begin. Each leaves only while the other is inside.",
              "两个读者开始接力：另一个进来了，自己才走。"},
    [UNTIL] = {"The readers have been inside together again.", "两个读者又一次同时在里面。"},
    [AS_FAR_AS] = {"The readers go on: {noted}.", "读者往前走：{noted}。"},
    [ANSWER] = {"The readers leave. They were inside together {together} times, and {torn} times a "
                "reader saw the value change.",
                "读者离开。两个读者同时在里面 {together} 次；有 {torn} 次读者看到数值变了。"},
};

/* As run_classify() defines them. */
static const hazard_text outcomes[HAZARD_OUTCOMES] = {
    [HAZARD_SAFE] = {"SAFE: nothing was lost, and each request has the answer that it should have.",
                     "安全：什么都没丢，每个请求都得到了应得的应答。"},
    [HAZARD_UNSAFE] = {"UNSAFE: something was lost, or done more often than it was asked for.",
                       "不安全：有更新丢失，或者重复执行。"},
    [HAZARD_STUCK] = {"STUCK: a request waited for the lock in vain.",
                      "卡死：有请求一直等不到锁。"},
    [HAZARD_REFUSED] = {"REFUSED: nothing was lost, and a request was not served.",
                        "被拒绝：什么都没丢，但有请求没有办成。"},
    [HAZARD_SLOW] = {"SLOW: nothing was lost, but it took longer than it should.",
                     "太慢：什么都没丢，但用时过长。"},
};

/* The last value that this actor passed a point with. */
static bool last_value(const struct hazard_run *run, const struct actor *actor, const char *point,
                       int64_t *ret)
{
    static struct lab_event events[TRACE_MAX];
    char ignored[LAB_MESSAGE_MAX];
    int n;
    bool found = false;
    if (actor->instance == NULL || actor->instance->stopped ||
        lab_trace(&actor->instance->target, events, TRACE_MAX, &n, ignored) != 0)
        return false;
    for (int i = 0; i < n; i++)
        if (strcmp(events[i].key, actor->key) == 0 && strcmp(events[i].point, point) == 0 &&
            events[i].has_value) {
            found = true;
            *ret = events[i].value;
        }
    (void)run;
    return found;
}

static void tell_values(const struct hazard_run *run, const struct actor *actor, char *out,
                        size_t size)
{
    static const hazard_text forms = {": it read %lld and will write %lld",
                                      "：它读到 %lld，准备写 %lld"};
    int64_t read, written;
    out[0] = '\0';
    if (last_value(run, actor, "read", &read) && last_value(run, actor, "decided", &written)) {
        const char *form = forms[run->how.language];
        snprintf(out, size, form, (long long)read, (long long)written);
    }
}

/* What it asks for, as the service understands it. */
static void tell_wish(const struct hazard_run *run, const struct actor *actor, char *out,
                      size_t size)
{
    static const hazard_text pays = {"pay for the order", "为订单付款"};
    static const hazard_text forms[][2] = {
        [ACCOUNT] = {{"withdraw %s", "扣 %s"}, {"deposit %s", "存入 %s"}},
        [ITEM] = {{"buy %s", "买 %s 件"}, {"return %s", "退回 %s 件"}},
        [TRANSFER] = {{"transfer %s from the first account to the second",
                       "从第一个账户转 %s 到第二个"},
                      {"transfer %s from the second account to the first",
                       "从第二个账户转 %s 到第一个"}},
    };
    const int64_t delta = hazard_delta(run->hazard, actor->who);
    char amount[TEXT_MAX];
    const char *form = actor->pays ? pays[run->how.language]
                                   : forms[run->hazard->subject][delta > 0][run->how.language];
    snprintf(out, size, form, text_count(amount, delta < 0 ? -delta : delta));
}

/* Where a request stands that went as far as a point: held there, answered, or waiting. */
static void tell_stand(const struct hazard_run *run, const struct actor *actor, char *out,
                       size_t size)
{
    static const hazard_text held = {"it is held at \"%s\"", "停在“%s”"};
    static const hazard_text waits = {"it waits for the lock", "在等锁"};
    static const hazard_text answered = {"it is answered", "已得到应答"};
    const char *form = actor->held_at >= 0             ? held[run->how.language]
                       : atomic_load(&actor->answered) ? answered[run->how.language]
                                                       : waits[run->how.language];
    snprintf(out, size, form, actor->held_at >= 0 ? actor->pauses[actor->held_at].point : "");
}

/* It has released its locks before its commit. */
static bool has_released_early(const struct actor *actor)
{
    static struct lab_event events[TRACE_MAX];
    char ignored[LAB_MESSAGE_MAX];
    int n, held = 0, released = 0;
    if (actor->instance == NULL || actor->instance->stopped ||
        lab_trace(&actor->instance->target, events, TRACE_MAX, &n, ignored) != 0)
        return false;
    for (int i = 0; i < n; i++) {
        if (strcmp(events[i].key, actor->key) != 0)
            continue;
        held += strcmp(events[i].point, "lock.acquired") == 0;
        released += strcmp(events[i].point, "lock.released") == 0;
        if (strcmp(events[i].point, "committed") == 0 || strcmp(events[i].point, "rejected") == 0)
            return false;
    }
    return held > 0 && released >= held;
}

/* list: the step's nodes; "": it names none. */
static void tell_nodes(const struct hazard_run *run, const char *list, char *out, size_t size)
{
    static const hazard_text forms = {" (nodes %s)", "（节点 %s）"};
    const char *form = forms[run->how.language];
    out[0] = '\0';
    if (list[0] != '\0')
        snprintf(out, size, form, list);
}

/* Copies the sentence with one of its names replaced. */
static void put(char sentence[SENTENCE_MAX], const char *name, const char *value)
{
    char rest[SENTENCE_MAX];
    char *at = strstr(sentence, name);
    if (at == NULL)
        return;
    snprintf(rest, sizeof rest, "%s", at + strlen(name));
    snprintf(at, SENTENCE_MAX - (size_t)(at - sentence), "%s%s", value, rest);
}

static void put_number(char sentence[SENTENCE_MAX], const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    put(sentence, name, text);
}

void narrate_begin(struct hazard_run *run)
{
    static const hazard_text form = {"guard %s%s%s", "加锁方式 %s%s%s"};
    const char *as = run->one->as[run->how.language];
    if (run->how.narrate == NULL)
        return;
    static const hazard_text may = {"What can go wrong: %s\n", "可能出的问题：%s\n"};
    fprintf(run->how.narrate, "\n%s (%s)\n", run->hazard->title[run->how.language],
            run->hazard->id);
    fprintf(run->how.narrate, may[run->how.language], run->hazard->story[run->how.language]);
    fprintf(run->how.narrate, form[run->how.language], run->one->guard, as == NULL ? "" : ", ",
            as == NULL ? "" : as);
    fputs("\n\n", run->how.narrate);
}

static bool is_silent(const struct hazard_run *run)
{
    return run->how.narrate == NULL || *run->how.stop;
}

/* A signal may have come to another thread, so that no read would be interrupted by it. */
static void await_key(const struct hazard_run *run)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    char key = '\0';
    fputs(run->how.language == ZH ? "  （按回车继续）" : "  (press Enter to go on)",
          run->how.narrate);
    fflush(run->how.narrate);
    while (key != '\n' && !*run->how.stop)
        if (poll(&keys, 1, LOOK_EVERY_MS) > 0 && read(STDIN_FILENO, &key, 1) <= 0)
            break;
    if (key != '\n') {
        fputc('\n', run->how.narrate);
        fflush(run->how.narrate);
    }
}

/* What the lab noted last, in the language of the story. */
static const char *noted(const struct hazard_run *run)
{
    static const hazard_text notes[] = {
        {"key gone", "key 没了"},
        {"key still there", "key 还在"},
        {"they wait", "他们在等写者"},
        {"inside together", "两人都在里面"},
    };
    const char *note = run->n_events > 0 ? run->events[run->n_events - 1].point : "";
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++)
        if (strcmp(note, notes[i][EN]) == 0)
            return notes[i][run->how.language];
    return note;
}

void narrate_step(struct hazard_run *run, const struct hazard_step *step)
{
    char sentence[SENTENCE_MAX], values[80] = "", nodes[40], list[RUN_NODES_MAX], wish[120] = "",
                                 stands[80] = "", status[100] = "-";
    if (is_silent(run) || (step->verb == RETRY && !run->actors[step->who].retried))
        return;
    const hazard_text *said = step->who == CROWD     ? crowd_sentences
                              : step->who == TASKS   ? tasks_sentences
                              : step->who == QUEUE   ? queue_sentences
                              : step->who == READERS ? readers_sentences
                                                     : sentences;
    snprintf(sentence, sizeof sentence, "%s", said[step->verb][run->how.language]);
    if (step->who < HAZARD_ACTORS) {
        const struct actor *actor = &run->actors[step->who];
        if (strstr(sentence, "{values}") != NULL)
            tell_values(run, actor, values, sizeof values);
        tell_wish(run, actor, wish, sizeof wish);
        tell_stand(run, actor, stands, sizeof stands);
        if (atomic_load(&actor->answered) && actor->status != 0)
            snprintf(status, sizeof status, "%d%s%s", actor->status,
                     actor->problem[0] != '\0' ? " " : "", actor->problem);
    }
    put_number(sentence, "{n}", run->hazard->crowd);
    put_number(sentence, "{queue}", run->hazard->queue);
    put_number(sentence, "{woken}", run->crowd.first_wakes);
    put_number(sentence, "{accepted}", atomic_load(&run->crowd.accepted));
    put_number(sentence, "{refused}", atomic_load(&run->crowd.refused));
    put_number(sentence, "{failed}", atomic_load(&run->crowd.failed));
    put_number(sentence, "{together}", atomic_load(&run->readers.together));
    put_number(sentence, "{torn}", atomic_load(&run->readers.torn));
    put(sentence, "{values}", values);
    put(sentence, "{who}", who_name(step->who));
    run_node_list(step->what == NULL ? "" : step->what, list);
    tell_nodes(run, list, nodes, sizeof nodes);
    put(sentence, "{list}", list);
    put(sentence, "{nodes}", nodes);
    put(sentence, "{what}", step->what == NULL ? "" : step->what);
    put(sentence, "{wish}", wish);
    put(sentence, "{stands}", stands);
    put(sentence, "{status}", status);
    put(sentence, "{noted}", noted(run));
    fprintf(run->how.narrate, "  %s\n", sentence);
    if (step->who < HAZARD_ACTORS && (step->verb == UNTIL || step->verb == AS_FAR_AS) &&
        has_released_early(&run->actors[step->who]))
        fprintf(run->how.narrate,
                run->how.language == ZH ? "  %s 已经释放了锁，还没有提交。\n"
                                        : "  %s has released the lock, and has not committed.\n",
                who_name(step->who));
    if (run->how.step)
        await_key(run);
}

void narrate_end(struct hazard_run *run)
{
    static const hazard_text fix = {"What helps: %s\n", "对策：%s\n"};
    static struct lab_fact facts[LAB_FACTS_MAX];
    const struct lab_result result = {.hazard = run->hazard,
                                      .one = run->one,
                                      .fence = run->with.fence == ON,
                                      .observed = run->observed,
                                      .outcome = run->outcome,
                                      .events = run->events,
                                      .n_events = run->n_events < LAB_KEPT_EVENTS_MAX
                                                      ? run->n_events
                                                      : LAB_KEPT_EVENTS_MAX}; /* as reported */
    if (is_silent(run))
        return;
    fprintf(run->how.narrate, "\n  %s\n", outcomes[run->observed][run->how.language]);
    const int n = lab_facts(&result, facts);
    for (int i = 0; i < n; i++)
        fprintf(run->how.narrate, "  - %s\n", facts[i].text[run->how.language]);
    fputs("  ", run->how.narrate);
    fprintf(run->how.narrate, fix[run->how.language], run->hazard->fix[run->how.language]);
    fflush(run->how.narrate);
}
