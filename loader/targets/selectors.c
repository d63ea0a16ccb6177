/* SPDX-License-Identifier: MIT */
/* Finding a listening process is expensive: the kernel's tables contain sockets without processes, so all
 * descriptors of all processes are searched. The tables alone show whether that has to be repeated. */
#include "loader/targets/selectors.h"

#include <errno.h>
#include <string.h>

bool selectors_add(struct selectors *s, enum selector_kind kind, const char *text, int port)
{
	if (s->count == SELECTORS_MAX)
		return false;
	s->all[s->count++] = (struct selector){.kind = kind, .text = text, .port = port};
	return true;
}

int selector_find(const struct selector *s, struct targets *found)
{
	switch (s->kind) {
	case SELECT_PORT:
		return targets_add_port(found, s->port);
	case SELECT_UNIX:
		return targets_add_unix(found, s->text);
	case SELECT_NAME:
		return targets_add_name(found, s->text);
	case SELECT_CGROUP:
		return targets_add_cgroup(found, s->text);
	case SELECT_CONTAINER:
		return targets_add_container(found, s->text);
	case SELECT_UNIT:
		return targets_add_unit(found, s->text);
	}
	return -EINVAL;
}

int selector_find_more(struct selector *s, struct targets *found)
{
	struct inodes now = {.count = 0};
	if (s->kind != SELECT_PORT && s->kind != SELECT_UNIX)
		return selector_find(s, found);
	int n = s->kind == SELECT_PORT ? listeners_on_port(&now, s->port) : listeners_on_path(&now, s->text);
	if (n < 0 || (now.count == s->listening.count &&
		      memcmp(now.inode, s->listening.inode, now.count * sizeof *now.inode) == 0))
		return n < 0 ? n : 0;
	n = selector_find(s, found);
	s->listening = n > 0 ? now : (struct inodes){.count = 0};
	return n;
}

bool selectors_look_at_descriptors(const struct selectors *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->all[i].kind == SELECT_PORT || s->all[i].kind == SELECT_UNIX)
			return true;
	return false;
}

void selectors_forget(struct selectors *s)
{
	for (size_t i = 0; i < s->count; i++)
		s->all[i].listening.count = 0;
}
