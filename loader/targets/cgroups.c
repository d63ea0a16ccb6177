/* SPDX-License-Identifier: MIT */
/* Cgroups of targets.
 *
 * How container engines name cgroups: Docker "/docker/ID" or "docker-ID.scope", Podman "libpod-ID.scope",
 * Kubernetes ".../podUID/ID" or "cri-containerd-ID.scope", LXC "/lxc.payload.NAME". So for every engine, a
 * part of the path ends with the id. Monitors of containers have separate groups next to them and are not
 * part of the container. */
#include <ctype.h>
#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/system.h"
#include "loader/targets.h"

enum { ID_DIGITS = 64, SHORT_ID_DIGITS = 12 };

static const char docker[] = "/var/lib/docker/containers";
static const char podman[] = "/var/lib/containers/storage/overlay-containers/containers.json";

/* Calls each(controllers, path, context) for the lines of a process' cgroup file until one returns true. */
static bool any_line(const char *file, bool (*each)(const char *controllers, const char *path, void *context),
		     void *context)
{
	char text[16384], *rest;
	if (read_text(file, text, sizeof text) < 0)
		return false;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *controllers = strchr(line, ':'),
		     *path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		if (each(controllers + 1, path, context))
			return true;
	}
	return false;
}

struct cgroup_query {
	const char *controller;
	char *path;
};

static bool matches_query(const char *controllers, const char *path, void *context)
{
	const struct cgroup_query *w = context;
	size_t length = strlen(w->controller);
	bool lists = !length && !*controllers;
	for (const char *at = controllers; length && at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		lists |= strncmp(at, w->controller, length) == 0 && (!at[length] || at[length] == ',');
	if (lists)
		snprintf(w->path, CGROUP_BYTES, "%s", path);
	return lists;
}

bool cgroup_in(const char *file, const char *controller, char path[CGROUP_BYTES])
{
	struct cgroup_query w = {controller, path};
	return any_line(file, matches_query, &w);
}

bool cgroup_of(const char *root, pid_t pid, const char *controller, char path[CGROUP_BYTES])
{
	char file[PATH_MAX];
	snprintf(file, sizeof file, "%s/proc/%d/cgroup", root, pid);
	return cgroup_in(file, controller, path);
}

/* Returns the next part of a path from its end, and its length in *length. NULL: no more. `end` is where the
 * previous one began. */
static const char *part_before(const char *path, const char *end, size_t *length)
{
	while (end > path && end[-1] == '/')
		end--;
	const char *at = end;
	while (at > path && at[-1] != '/')
		at--;
	*length = (size_t)(end - at);
	return *length ? at : NULL;
}

static bool ends_with(const char *part, size_t length, const char *suffix)
{
	size_t n = strlen(suffix);
	return length > n && memcmp(part + length - n, suffix, n) == 0;
}

static bool begins_with(const char *part, size_t length, const char *prefix)
{
	size_t n = strlen(prefix);
	return length > n && memcmp(part, prefix, n) == 0;
}

static bool is_hex(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isdigit((unsigned char)text[i]) && (text[i] < 'a' || text[i] > 'f'))
			return false;
	return length > 0;
}

/* "ID" or "engine-ID", both also with ".scope". */
static bool id_in(const char *part, size_t length, char *id)
{
	if (ends_with(part, length, ".scope"))
		length -= strlen(".scope");
	if (length < ID_DIGITS || memmem(part, length, "conmon", strlen("conmon")))
		return false;
	const char *at = part + length - ID_DIGITS;
	if (!is_hex(at, ID_DIGITS) || (at > part && at[-1] != '-'))
		return false;
	memcpy(id, at, ID_DIGITS);
	id[ID_DIGITS] = 0;
	return true;
}

/* "lxc.payload.NAME", or NAME in "lxc" or "lxc.payload". */
static bool lxc_in(const char *path, const char *part, size_t length, char *id)
{
	size_t above;
	const char *parent = part_before(path, part, &above);
	bool below = parent && ((above == 3 && memcmp(parent, "lxc", 3) == 0) ||
				(above == 11 && memcmp(parent, "lxc.payload", 11) == 0));
	size_t skip = begins_with(part, length, "lxc.payload.") ? strlen("lxc.payload.") : 0;
	if ((!below && !skip) || length - skip >= CONTAINER_BYTES)
		return false;
	memcpy(id, part + skip, length - skip);
	id[length - skip] = 0;
	return true;
}

bool cgroup_container(const char *path, char id[CONTAINER_BYTES])
{
	size_t length;
	for (const char *part = path + strlen(path); (part = part_before(path, part, &length));)
		if (id_in(part, length, id) || lxc_in(path, part, length, id))
			return true;
	return false;
}

bool cgroup_unit(const char *path, char *name, size_t size)
{
	size_t length;
	for (const char *part = path + strlen(path); (part = part_before(path, part, &length));) {
		if (ends_with(part, length, ".service") || ends_with(part, length, ".scope")) {
			snprintf(name, size, "%.*s", (int)length, part);
			return true;
		}
	}
	return false;
}

/* The better of the two paths. */
struct best_path {
	char *path;
	int rank;
};

static bool rank_path(const char *controllers, const char *path, void *context)
{
	struct best_path *t = context;
	char name[CONTAINER_BYTES];
	int rank = cgroup_container(path, name)		     ? 4
		   : cgroup_unit(path, name, sizeof name)    ? 3
		   : strcmp(path, "/") != 0 && !*controllers ? 2
		   : strcmp(path, "/") != 0		     ? 1
							     : 0;
	if (rank > t->rank) {
		t->rank = rank;
		snprintf(t->path, CGROUP_BYTES, "%s", path);
	}
	return false;
}

bool cgroup_best(const char *root, pid_t pid, char path[CGROUP_BYTES])
{
	char file[PATH_MAX];
	struct best_path t = {path, -1};
	snprintf(file, sizeof file, "%s/proc/%d/cgroup", root, pid);
	any_line(file, rank_path, &t);
	return t.rank >= 0;
}

/* The name in a container file of Docker, which begins with a slash. */
static bool docker_name(const char *root, const char *id, char name[CONTAINER_BYTES])
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s%s/%s/config.v2.json", root, docker, id);
	json_t *config = json_load_file(path, 0, NULL);
	const char *text = json_string_value(json_object_get(config, "Name"));
	if (text)
		snprintf(name, CONTAINER_BYTES, "%s", *text == '/' ? text + 1 : text);
	json_decref(config);
	return text && *name;
}

/* Podman stores all containers in one file: finds the name of `id`, or the id of `name`. */
static bool podman_container(const char *root, const char *id, const char *name, char found[CONTAINER_BYTES])
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s%s", root, podman);
	json_t *all = json_load_file(path, 0, NULL), *one, *known;
	size_t i, k;
	bool is_found = false;
	json_array_foreach(all, i, one)
	{
		const char *its_id = json_string_value(json_object_get(one, "id"));
		json_array_foreach(json_object_get(one, "names"), k, known)
		{
			const char *its_name = json_string_value(known);
			if (is_found || !its_id || !its_name ||
			    (id ? strcmp(id, its_id) : strcmp(name, its_name)))
				continue;
			snprintf(found, CONTAINER_BYTES, "%s", id ? its_name : its_id);
			is_found = true;
		}
	}
	json_decref(all);
	return is_found;
}

bool container_name(const char *root, const char *id, char name[CONTAINER_BYTES])
{
	return docker_name(root, id, name) || podman_container(root, id, NULL, name);
}

bool container_id(const char *root, const char *name, char id[CONTAINER_BYTES])
{
	char path[PATH_MAX], known[CONTAINER_BYTES];
	snprintf(path, sizeof path, "%s%s", root, docker);
	DIR *dir = opendir(path);
	bool found = false;
	for (struct dirent *e; dir && !found && (e = readdir(dir));) {
		if (strlen(e->d_name) != ID_DIGITS || !is_hex(e->d_name, ID_DIGITS))
			continue;
		found = docker_name(root, e->d_name, known) && strcmp(known, name) == 0;
		if (found)
			snprintf(id, CONTAINER_BYTES, "%s", e->d_name);
	}
	if (dir)
		closedir(dir);
	return found || podman_container(root, NULL, name, id);
}

void cgroup_name(const char *root, const char *path, char name[CGROUP_NAME_BYTES])
{
	char id[CONTAINER_BYTES], known[CONTAINER_BYTES];
	name[0] = 0;
	if (cgroup_container(path, id)) {
		int digits = strlen(id) == ID_DIGITS && is_hex(id, ID_DIGITS) ? SHORT_ID_DIGITS : ID_DIGITS;
		if (container_name(root, id, known))
			snprintf(name, CGROUP_NAME_BYTES, "container %s (%.*s)", known, digits, id);
		else
			snprintf(name, CGROUP_NAME_BYTES, "container %.*s", digits, id);
	} else if (cgroup_unit(path, known, sizeof known)) {
		snprintf(name, CGROUP_NAME_BYTES, "unit %s", known);
	}
}

/* Version 1 has a hierarchy per controller or group of controllers, version 2 has one for all. A host may
 * have both. In a container only a part of a hierarchy may be mounted, while paths in /proc begin at its
 * root. */

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
