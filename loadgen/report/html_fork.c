#include "html.h"
#include "text.h"

void html_fork(const struct ledger_row fork[2], FILE *out)
{
    fputs("<table><thead><tr><th>request</th><th>instance</th><th>version read</th><th>before</th>"
          "<th>after</th></tr></thead><tbody>\n",
          out);
    for (int i = 0; i < 2; i++) {
        char before[TEXT_MAX], after[TEXT_MAX];
        fputs("<tr><td>", out);
        html_text(out, fork[i].txn_id);
        fputs("</td><td>", out);
        html_text(out, fork[i].instance);
        fprintf(out, "</td><td>%lld</td><td>%s</td><td>%s</td></tr>\n",
                (long long)fork[i].version_before, text_count(before, fork[i].before),
                text_count(after, fork[i].after));
    }
    fputs("</tbody></table><p class='note'>Both changes started from the same version, so one of "
          "the two is lost.</p>\n",
          out);
}
