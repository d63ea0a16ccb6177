/* SPDX-License-Identifier: MIT */
/* Rows per server and per outage. A server without requests has no row, and redirects have columns only if
 * there were some. */
#include "node_report.h"

#include <inttypes.h>

#include "recording/json/json_block.h"

static const char *name_of(const struct nodes *n, uint32_t node)
{
	return nodes_at(n, (uint16_t)node)->name;
}

static uint64_t redirects(const struct stats *s, enum redirect why)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->node_count; i++)
		sum += s->nodes[i] ? s->nodes[i]->redirects[why] : 0;
	return sum;
}

static bool any_redirects(const struct stats *s)
{
	return redirects(s, REDIRECT_MOVED) + redirects(s, REDIRECT_ASK) + redirects(s, REDIRECT_LATER) > 0;
}

static double seconds_after(uint64_t t_ns, uint64_t start_ns)
{
	return ((double)t_ns - (double)start_ns) * 1e-9;
}

static void outage_row(FILE *to, const struct nodes *n, const struct outage *x, uint64_t start_ns)
{
	fprintf(to, "  %s: keys without a server ", name_of(n, x->node));
	if (x->last_ok_ns && x->first_ok_ns)
		fprintf(to, "for %.3f s: last answer at %.3f s, next answer at %.3f s from %s",
			seconds_after(x->first_ok_ns, x->last_ok_ns), seconds_after(x->last_ok_ns, start_ns),
			seconds_after(x->first_ok_ns, start_ns), name_of(n, x->after));
	else if (x->first_ok_ns)
		fprintf(to, "until %.3f s, when %s answered", seconds_after(x->first_ok_ns, start_ns),
			name_of(n, x->after));
	else
		fprintf(to, "from %.3f s to the end",
			seconds_after(x->last_ok_ns ? x->last_ok_ns : x->noticed_ns, start_ns));
	fprintf(to, "; %" PRIu64 " request%s failed, %" PRIu64 " %s delayed", x->failed,
		x->failed == 1 ? "" : "s", x->delayed, x->delayed == 1 ? "was" : "were");
	if (x->delayed)
		fprintf(to, ", the longest by %.3f s", (double)x->longest_ns * 1e-9);
	fputc('\n', to);
}

void node_report(FILE *to, const struct nodes *n, const struct stats *s, const struct outages *o,
		 uint64_t start_ns, double seconds)
{
	bool sent_away = any_redirects(s);

	fprintf(to, "\n%-26s%14s%10s%12s%10s%10s%10s%s\n", "by server (ms)", "requests", "errors",
		"requests/s", "p50", "p99", "maximum", sent_away ? "     moved       ask     later" : "");
	for (uint32_t i = 0; i < s->node_count; i++) {
		const struct node_stats *x = s->nodes[i];

		if (!x)
			continue;
		fprintf(to, "  %-24s%14" PRIu64 "%10" PRIu64 "%12.0f%10.3f%10.3f%10.3f", name_of(n, i),
			x->requests, x->errors, seconds > 0 ? (double)(x->requests - x->errors) / seconds : 0,
			(double)ft_histogram_percentile(&x->latency, 50) * 1e-6,
			(double)ft_histogram_percentile(&x->latency, 99) * 1e-6,
			(double)x->latency.max_ns * 1e-6);
		for (int k = 0; sent_away && k < REDIRECTS; k++)
			fprintf(to, "%10" PRIu64, x->redirects[k]);
		fputc('\n', to);
	}
	if (sent_away)
		fprintf(to,
			"%" PRIu64 " requests were sent again after a server redirected or refused them; "
			"their due times stayed the same\n",
			s->redirected);
	if (o->count)
		fprintf(to, "outages\n");
	for (uint32_t i = 0; i < o->count; i++)
		outage_row(to, n, &o->list[i], start_ns);
	if (o->lost)
		fprintf(to, "  and %" PRIu64 " more\n", o->lost);
}

static void outage_members(json_t *j, const struct nodes *n, const struct outage *x)
{
	json_put_text(j, "server", name_of(n, x->node));
	json_put_text(j, "after", x->first_ok_ns ? name_of(n, x->after) : "");
	json_put_count(j, "noticed_ns", x->noticed_ns);
	json_put_count(j, "last_ok_ns", x->last_ok_ns);
	json_put_count(j, "first_ok_ns", x->first_ok_ns);
	json_put_count(j, "gap_ns", x->last_ok_ns && x->first_ok_ns ? x->first_ok_ns - x->last_ok_ns : 0);
	json_put_count(j, "failed", x->failed);
	json_put_count(j, "delayed", x->delayed);
	json_put_count(j, "longest_ns", x->longest_ns);
}

void node_report_json(json_t *j, const struct nodes *n, const struct stats *s, const struct outages *o)
{
	json_t *list = json_put_array(j, "nodes"), *away;

	for (uint32_t i = 0; i < s->node_count; i++) {
		const struct node_stats *x = s->nodes[i];
		json_t *node;

		if (!x)
			continue;
		node = json_put_object(list, NULL);
		json_put_text(node, "server", name_of(n, i));
		json_put_count(node, "requests", x->requests);
		json_put_count(node, "errors", x->errors);
		json_put_count(node, "p50_ns", ft_histogram_percentile(&x->latency, 50));
		json_put_count(node, "p99_ns", ft_histogram_percentile(&x->latency, 99));
		json_put_count(node, "p99.9_ns", ft_histogram_percentile(&x->latency, 99.9));
		json_put_count(node, "max_ns", x->latency.max_ns);
		for (int k = 0; k < REDIRECTS; k++)
			json_put_count(node, redirect_names[k], x->redirects[k]);
	}
	away = json_put_object(j, "redirects");
	for (int k = 0; k < REDIRECTS; k++)
		json_put_count(away, redirect_names[k], redirects(s, (enum redirect)k));
	json_put_count(away, "requests", s->redirected);
	list = json_put_array(j, "outages");
	for (uint32_t i = 0; i < o->count; i++)
		outage_members(json_put_object(list, NULL), n, &o->list[i]);
}

void node_report_notes(struct ft_writer *w, const struct nodes *n, const struct outages *o)
{
	for (uint32_t i = 0; i < o->count; i++) {
		json_t *note = json_note(o->list[i].noticed_ns, "outage");

		outage_members(note, n, &o->list[i]);
		write_json_note(w, note);
	}
}
