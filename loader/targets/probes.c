/* SPDX-License-Identifier: MIT */
/* Probes that the user named: functions and static probes of programs, whose hits are marks of the recording.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/programs.h"
#include "loader/attach.h"
#include "loader/system.h"
#include "loader/targets.h"
#include "probes.skel.h"
#include "recording/json_block.h"
#include "recording/recording.h"

enum { LIBBPF_ERRORS = __LIBBPF_ERRNO__START }; /* libbpf's own ones, here of a file that is no ELF file */

struct probes {
	const struct probe_wanted *wanted;
	size_t count;
	struct probes_bpf *skeleton;
	struct bpf_link *links[2 * FT_PROBES_MAX]; /* at a function's entry, and at its return */
	struct ring_buffer *ring;
	struct ft_writer *writer; /* during probes_tick */
};

/* Copies the text up to the next colon; *rest is what follows it. False: no colon, or the text does not fit.
 */
static bool take_part(const char **rest, char *to, size_t room)
{
	const char *colon = strchr(*rest, ':');
	if (!colon || (size_t)(colon - *rest) >= room)
		return false;
	memcpy(to, *rest, (size_t)(colon - *rest));
	to[colon - *rest] = 0;
	*rest = colon + 1;
	return true;
}

bool probe_parse(const char *text, struct probe_wanted *p)
{
	char kind[8];
	const char *rest = text;
	*p = (struct probe_wanted){.text = text};
	if (!take_part(&rest, kind, sizeof kind) || !take_part(&rest, p->file, sizeof p->file))
		return false;
	p->is_static = strcmp(kind, "usdt") == 0;
	if (!p->is_static && strcmp(kind, "uprobe") != 0)
		return false;
	if (p->is_static && (!take_part(&rest, p->provider, sizeof p->provider) || !*p->provider))
		return false;
	p->name = rest;
	return *rest && !strchr(rest, ':');
}

static int on_hit(void *context, void *data, size_t bytes)
{
	const struct probes *p = context;
	const struct ft_probe_hit *hit = data;
	if (bytes < sizeof *hit || hit->probe >= p->count)
		return 0;
	json_t *note = json_note(hit->t_ns, "probe");
	json_put_text(note, "probe", p->wanted[hit->probe].text);
	json_put_text(note, "name", p->wanted[hit->probe].name);
	json_put_count(note, "pid", hit->tgid);
	json_put_count(note, "tid", hit->tid);
	if (!p->wanted[hit->probe].is_static)
		json_put_count(note, "duration_ns", hit->duration_ns);
	write_json_note(p->writer, note);
	return 0;
}

struct probes *probes_open(const struct probe_wanted *wanted, size_t count, int targets_map,
			   uint32_t pid_namespace)
{
	struct probes *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->wanted = wanted;
	p->count = count;
	p->skeleton = probes_bpf__open();
	int err = p->skeleton ? 0 : -errno;
	if (!err) {
		p->skeleton->rodata->pid_ns = pid_namespace;
		err = bpf_map__reuse_fd(p->skeleton->maps.targets, targets_map);
	}
	err = err ? err : probes_bpf__load(p->skeleton);
	if (!err) {
		p->ring = ring_buffer__new(bpf_map__fd(p->skeleton->maps.probes_ring), on_hit, p, NULL);
		err = p->ring ? 0 : -errno;
	}
	if (!err)
		return p;
	probes_close(p);
	errno = -err;
	return NULL;
}

static struct bpf_link *attach_function(const struct probe_wanted *w, const struct bpf_program *program,
					const char *file, size_t number, bool at_return)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .func_name = w->name, .retprobe = at_return,
		    .bpf_cookie = number);
	return bpf_program__attach_uprobe_opts(program, -1, file, 0, &options);
}

/* Returns 0 or a negative errno. */
static int attach_one(struct probes *p, size_t i, const char *file)
{
	const struct probe_wanted *w = &p->wanted[i];
	struct bpf_link **links = &p->links[2 * i];
	if (w->is_static) {
		LIBBPF_OPTS(bpf_usdt_opts, options, .usdt_cookie = i);
		links[0] = bpf_program__attach_usdt(p->skeleton->progs.probe_reached, -1, file, w->provider,
						    w->name, &options);
		return links[0] ? 0 : -errno;
	}
	links[0] = attach_function(w, p->skeleton->progs.probe_enters, file, i, false);
	if (!links[0])
		return -errno;
	links[1] = attach_function(w, p->skeleton->progs.probe_returns, file, i, true);
	return links[1] ? 0 : -errno;
}

int probes_attach(struct probes *p, pid_t target, char *why, size_t room)
{
	for (size_t i = 0; p && i < p->count; i++) {
		const struct probe_wanted *w = &p->wanted[i];
		char file[sizeof w->file];
		snprintf(file, sizeof file, "%s", w->file);
		if (!*file && !target) {
			snprintf(why, room, "--probe %s: name its FILE, because no target runs yet", w->text);
			return -1;
		}
		if (!*file)
			snprintf(file, sizeof file, "/proc/%d/exe", (int)target);
		if (access(file, R_OK)) {
			snprintf(why, room, "--probe %s: cannot read %s: %s", w->text, file, strerror(errno));
			return -1;
		}
		const int err = attach_one(p, i, file);
		if (err == -ENOENT || err == -ESRCH)
			snprintf(why, room, "--probe %s: %s has no %s %s%s", w->text, file,
				 w->is_static ? "static probe" : "function", w->name,
				 w->is_static
				     ? ""
				     : " among its symbols (it may be stripped, or the function inlined)");
		else if (err <= -LIBBPF_ERRORS)
			snprintf(why, room, "--probe %s: %s is no program or library", w->text, file);
		else if (err)
			snprintf(why, room, "--probe %s: the kernel refused: %s", w->text, strerror(-err));
		if (err)
			return -1;
	}
	return 0;
}

void probes_tick(struct probes *p, struct ft_writer *w)
{
	if (!p)
		return;
	p->writer = w;
	ring_buffer__consume(p->ring);
}

void probes_stop(struct probes *p, struct ft_writer *w)
{
	if (!p)
		return;
	probes_tick(p, w);
	for (size_t i = 0; i < p->count; i++) {
		const uint64_t beyond = p->skeleton->bss->beyond[i];
		char what[300];
		if (!beyond)
			continue;
		json_t *note = json_note(ft_now_ns(), "missing");
		snprintf(what, sizeof what, "%llu hits of the probe %s", (unsigned long long)beyond,
			 p->wanted[i].text);
		json_put_text(note, "what", what);
		json_put_text(note, "why", "there were more than 2 in 100 ms");
		write_json_note(w, note);
	}
}

uint64_t probes_lost(const struct probes *p)
{
	return p ? p->skeleton->bss->lost : 0;
}

struct counted_programs probes_programs(const struct probes *p)
{
	static const char *const names[] = {FT_PROBE_PROGRAMS(FT_NAME_OF)};
	return p ? (struct counted_programs){.object = p->skeleton->obj,
					     .runs = p->skeleton->bss->program_runs[0],
					     .row = FT_PROBE_PROGRAM_ROW,
					     .count = FT_PROBE_PROGRAM_COUNT,
					     .names = names}
		 : (struct counted_programs){.object = NULL};
}

void probes_close(struct probes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < 2 * FT_PROBES_MAX; i++)
		bpf_link__destroy(p->links[i]);
	ring_buffer__free(p->ring);
	probes_bpf__destroy(p->skeleton);
	free(p);
}
