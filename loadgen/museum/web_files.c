#include "web_files.h"

#include <string.h>

/* The paths start at the top of the source tree, where the Makefile compiles. */
#define EMBED(symbol, path)                                                                        \
    __asm__(".section .rodata\n"                                                                   \
            ".global museum_" #symbol "\n"                                                         \
            "museum_" #symbol ":\n"                                                                \
            ".incbin \"" path "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".previous\n");                                                                        \
    extern const char museum_##symbol[];

/* app/page/player: what the live page plays with, too. */
#define SHARED_ASSET_MAP(X)                                                                        \
    X(player_style, "player.css")                                                                  \
    X(state, "state.js")                                                                           \
    X(view, "view.js")                                                                             \
    X(desk, "desk.js")                                                                             \
    X(tree, "tree.js")                                                                             \
    X(bet, "bet.js")
#define SHARED_PART_MAP(X)                                                                         \
    X(player_en, "player.en.json")                                                                 \
    X(player_zh, "player.zh.json")                                                                 \
    X(commands, "commands.json")                                                                   \
    X(levels, "levels.json")                                                                       \
    X(levels_en, "levels.en.json")                                                                 \
    X(levels_zh, "levels.zh.json")
/* loadgen/museum/web */
#define ASSET_MAP(X)                                                                               \
    X(style, "style.css")                                                                          \
    X(zoom, "zoom.js")                                                                             \
    X(moment, "moment.js")                                                                         \
    X(embed, "embed.js")                                                                           \
    X(present, "present.js")                                                                       \
    X(follow, "follow.js")                                                                         \
    X(player, "player.js")                                                                         \
    X(opening, "opening.js")                                                                       \
    X(which, "which.js")                                                                           \
    X(levels_script, "levels.js")
#define PART_MAP(X)                                                                                \
    X(head, "head.html")                                                                           \
    X(index, "index.html")                                                                         \
    X(lesson, "lesson.html")                                                                       \
    X(matrix, "matrix.html")                                                                       \
    X(levels_page, "levels.html")                                                                  \
    X(teach, "teach.html")                                                                         \
    X(interview, "interview.html")                                                                 \
    X(teach_data, "teach.json")                                                                    \
    X(interview_data, "interview.json")                                                            \
    X(words_en, "words.en.json")                                                                   \
    X(words_zh, "words.zh.json")                                                                   \
    X(which_data, "which.json")
#define EMBED_OWN(symbol, file)    EMBED(symbol, "loadgen/museum/web/" file)
#define EMBED_SHARED(symbol, file) EMBED(symbol, "app/page/player/" file)
ASSET_MAP(EMBED_OWN)
PART_MAP(EMBED_OWN)
SHARED_ASSET_MAP(EMBED_SHARED)
SHARED_PART_MAP(EMBED_SHARED)

static const struct {
    const char *name, *text;
} files[] = {
#define FILE_ROW(symbol, file) {file, museum_##symbol},
    ASSET_MAP(FILE_ROW) PART_MAP(FILE_ROW) SHARED_ASSET_MAP(FILE_ROW) SHARED_PART_MAP(FILE_ROW)
#undef FILE_ROW
};

const char *web_asset(size_t i)
{
#define FILE_NAME(symbol, file) file,
    static const char *const names[] = {SHARED_ASSET_MAP(FILE_NAME) ASSET_MAP(FILE_NAME) NULL};
#undef FILE_NAME
    return i < sizeof names / sizeof *names ? names[i] : NULL;
}

const char *web_find(const char *name)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i].name, name) == 0)
            return files[i].text;
    return NULL;
}
