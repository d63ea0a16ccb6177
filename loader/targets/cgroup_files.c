/* SPDX-License-Identifier: MIT */
/* Version 1 has a hierarchy per controller or group of controllers, version 2 has one for all. A host may
 * have both. In a container only a part of a hierarchy may be mounted, while paths in /proc begin at its
 * root. */
#include "loader/targets/cgroup_files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/system/text.h"
#include "loader/targets/cgroups.h"

/* Whether a comma-separated list contains this word. */
static bool lists(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ',') && strchr(",\n:", at[length]))
			return true;
	return false;
}

bool cgroup_hierarchy_find(struct cgroup_hierarchy *h, const char *proc, const char *controller)
{
	char path[PATH_MAX];
	*h = (struct cgroup_hierarchy){.controller = controller};
	snprintf(h->proc, sizeof h->proc, "%s", proc);
	snprintf(path, sizeof path, "%s/self/mountinfo", proc);
	FILE *f = fopen(path, "re");
	char line[4096], root[CGROUP_PATH_BYTES], mount[CGROUP_PATH_BYTES], type[32], options[1024];
	bool found = false;
	while (f && fgets(line, sizeof line, f)) {
		const char *rest = strstr(line, " - ");
		if (!rest || sscanf(line, "%*d %*d %*s %255s %255s", root, mount) != 2 ||
		    sscanf(rest, " - %31s %*s %1023s", type, options) != 2)
			continue;
		bool v1 = strcmp(type, "cgroup") == 0 && lists(options, controller);
		if (!v1 && (found || strcmp(type, "cgroup2") != 0))
			continue;
		h->v2 = !v1;
		memcpy(h->mount, mount, sizeof mount);
		memcpy(h->root, root, sizeof root);
		found = true;
		if (v1)
			break;
	}
	if (f)
		fclose(f);
	return found;
}

bool cgroup_hierarchy_of(const struct cgroup_hierarchy *h, const char *directory,
			 char cgroup[CGROUP_PATH_BYTES])
{
	char file[PATH_MAX], path[CGROUP_BYTES];
	snprintf(file, sizeof file, "%s/%s/cgroup", h->proc, directory);
	if (!cgroup_in(file, h->v2 ? "" : h->controller, path))
		return false;
	size_t root = strcmp(h->root, "/") ? strlen(h->root) : 0;
	snprintf(cgroup, CGROUP_PATH_BYTES, "%.*s", CGROUP_PATH_BYTES - 1,
		 strncmp(path, h->root, root) ? path : path + root);
	return true;
}

bool cgroup_file_read(const struct cgroup_hierarchy *h, const char *cgroup, const char *file, char *text,
		      size_t size)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s%s/%s", h->mount, cgroup, file);
	return read_text(path, text, size) >= 0;
}

bool cgroup_number(const char *text, const char *key, double *value)
{
	const size_t length = strlen(key);
	for (const char *at = text; (at = strstr(at, key)); at += length)
		if ((at == text || at[-1] == '\n') && at[length] == ' ') {
			*value = strtod(at + length, NULL);
			return true;
		}
	return false;
}
