#include "page.h"

#include <string.h>

#define EMBED(symbol, path)                                                                        \
    __asm__(".section .rodata\n"                                                                   \
            ".global page_" #symbol ", page_" #symbol "_bytes\n"                                   \
            "page_" #symbol ":\n"                                                                  \
            ".incbin \"" path "\"\n"                                                               \
            "page_" #symbol "_end:\n"                                                              \
            ".byte 0\n"                                                                            \
            ".balign 8\n"                                                                          \
            "page_" #symbol "_bytes:\n"                                                            \
            ".quad page_" #symbol "_end - page_" #symbol "\n"                                      \
            ".previous\n");                                                                        \
    extern const char page_##symbol[];                                                             \
    extern const size_t page_##symbol##_bytes;

#define HTML   "text/html; charset=utf-8"
#define STYLE  "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define PLAIN  "text/plain; charset=utf-8"
#define JSON   "application/json"

/* Files of app/page/web: symbol, name, file, type. The paths start at the top of the source tree,
 * where the Makefile compiles. */
#define OWN_MAP(X)                                                                                 \
    X(index, "", "index.html", HTML)                                                               \
    X(style, "style.css", "style.css", STYLE)                                                      \
    X(page, "page.js", "page.js", SCRIPT)                                                          \
    X(export, "export.js", "export.js", SCRIPT)                                                    \
    X(faults, "faults.js", "faults.js", SCRIPT)                                                    \
    X(strikes, "strikes.js", "strikes.js", SCRIPT)                                                 \
    X(wire, "wire.js", "wire.js", SCRIPT)                                                          \
    X(pane, "pane.js", "pane.js", SCRIPT)                                                          \
    X(settings, "settings.js", "settings.js", SCRIPT)                                              \
    X(countdown, "countdown.js", "countdown.js", SCRIPT)                                           \
    X(chart, "chart.js", "chart.js", SCRIPT)                                                       \
    X(lanes, "lanes.js", "lanes.js", SCRIPT)                                                       \
    X(record, "record.js", "record.js", SCRIPT)                                                    \
    X(play, "play.js", "play.js", SCRIPT)                                                          \
    X(requests, "requests.js", "requests.js", SCRIPT)                                              \
    X(detail, "detail.js", "detail.js", SCRIPT)                                                    \
    X(stream, "stream.js", "stream.js", SCRIPT)                                                    \
    X(text, "text.js", "text.js", SCRIPT)                                                          \
    X(words_en, "words_en.js", "words_en.js", SCRIPT)                                              \
    X(words_zh, "words_zh.js", "words_zh.js", SCRIPT)                                              \
    X(arena_html, "arena.html", "arena.html", HTML)                                                \
    X(arena_style, "arena.css", "arena.css", STYLE)                                                \
    X(arena, "arena.js", "arena.js", SCRIPT)                                                       \
    X(arena_judge, "arena_judge.js", "arena_judge.js", SCRIPT)                                     \
    X(arena_strike, "arena_strike.js", "arena_strike.js", SCRIPT)                                  \
    X(arena_tile, "arena_tile.js", "arena_tile.js", SCRIPT)                                        \
    X(steps_html, "steps.html", "steps.html", HTML)                                                \
    X(steps_style, "steps.css", "steps.css", STYLE)                                                \
    X(steps, "steps.js", "steps.js", SCRIPT)                                                       \
    X(steps_view, "steps_view.js", "steps_view.js", SCRIPT)                                        \
    X(notices, "notices.js", "notices.js", SCRIPT)                                                 \
    X(facts, "facts.js", "facts.js", SCRIPT)                                                       \
    X(exercises, "exercises.js", "exercises.js", SCRIPT)                                           \
    X(levels_loader, "levels.js", "levels.js", SCRIPT)                                             \
    X(moves, "moves.js", "moves.js", SCRIPT)                                                       \
    X(wagers, "wagers.js", "wagers.js", SCRIPT)                                                    \
    X(replay, "replay.js", "replay.js", SCRIPT)                                                    \
    X(lab, "lab.js", "lab.js", SCRIPT)                                                             \
    X(row, "row.js", "row.js", SCRIPT)                                                             \
    X(schedule, "schedule.js", "schedule.js", SCRIPT)

/* Files of app/page/player: loadgen/museum puts them into its pages, too. */
#define PLAYER_MAP(X)                                                                              \
    X(state, "state.js", "state.js", SCRIPT)                                                       \
    X(view, "view.js", "view.js", SCRIPT)                                                          \
    X(desk, "desk.js", "desk.js", SCRIPT)                                                          \
    X(tree, "tree.js", "tree.js", SCRIPT)                                                          \
    X(bet, "bet.js", "bet.js", SCRIPT)                                                             \
    X(player_style, "player.css", "player.css", STYLE)                                             \
    X(player_en, "player.en.json", "player.en.json", JSON)                                         \
    X(player_zh, "player.zh.json", "player.zh.json", JSON)                                         \
    X(commands, "commands.json", "commands.json", JSON)                                            \
    X(levels, "levels.json", "levels.json", JSON)                                                  \
    X(levels_en, "levels.en.json", "levels.en.json", JSON)                                         \
    X(levels_zh, "levels.zh.json", "levels.zh.json", JSON)

/* Files of packages (PKGS_BUILD in the Makefile): symbol, name, path, type. The minified D3 does
 * not contain its license. */
#define PACKAGED_MAP(X)                                                                            \
    X(d3, "d3.js", "/usr/share/javascript/d3/d3.min.js", SCRIPT)                                   \
    X(d3_terms, "d3-copyright.txt", "/usr/share/doc/libjs-d3/copyright", PLAIN)

#define OWN_EMBED(symbol, name, file, type)      EMBED(symbol, "app/page/web/" file)
#define PACKAGED_EMBED(symbol, name, path, type) EMBED(symbol, path)
#define PLAYER_EMBED(symbol, name, file, type)   EMBED(symbol, "app/page/player/" file)
OWN_MAP(OWN_EMBED)
PLAYER_MAP(PLAYER_EMBED)
PACKAGED_MAP(PACKAGED_EMBED)
#undef OWN_EMBED
#undef PLAYER_EMBED
#undef PACKAGED_EMBED

const struct page_file *page_find(const char *name)
{
    static struct page_file found; /* only the HTTP thread calls this */
#define FILE_FIND(symbol, its_name, file, its_type)                                                \
    if (strcmp(name, its_name) == 0) {                                                             \
        found = (struct page_file){.name = (its_name),                                             \
                                   .type = (its_type),                                             \
                                   .text = page_##symbol,                                          \
                                   .bytes = page_##symbol##_bytes};                                \
        return &found;                                                                             \
    }
    OWN_MAP(FILE_FIND)
    PLAYER_MAP(FILE_FIND)
    PACKAGED_MAP(FILE_FIND)
#undef FILE_FIND
    return NULL;
}
