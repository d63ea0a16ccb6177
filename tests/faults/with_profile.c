/* SPDX-License-Identifier: MIT */
/* Runs a program under a seccomp profile in the format of container runtimes, as they would:
 *
 *   with_profile PROFILE PROGRAM [ARGUMENT...]
 *
 * It knows the parts of the format that contrib/kubernetes uses. Exit status 3: the profile cannot be used.
 */
#include <errno.h>
#include <jansson.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CANT = 3 };

static uint32_t action_of(const json_t *object, const char *member)
{
	const char *name = json_string_value(json_object_get(object, member));
	const json_t *number = json_object_get(object, "errnoRet"),
		     *other = json_object_get(object, "defaultErrnoRet");
	const unsigned err = (unsigned)json_integer_value(number ? number : other);
	if (name && strcmp(name, "SCMP_ACT_ALLOW") == 0)
		return SCMP_ACT_ALLOW;
	if (name && strcmp(name, "SCMP_ACT_ERRNO") == 0)
		return SCMP_ACT_ERRNO(err ? err : EPERM);
	fprintf(stderr, "with_profile: unknown action %s\n", name ? name : "");
	exit(CANT);
}

/* A call that this machine's kernel does not have is left out, as runtimes do. */
static int add_calls(scmp_filter_ctx filter, const json_t *rule)
{
	const json_t *name;
	size_t i;
	int err = 0;
	json_array_foreach(json_object_get(rule, "names"), i, name)
	{
		const int call = seccomp_syscall_resolve_name(json_string_value(name));
		if (call != __NR_SCMP_ERROR && !err)
			err = seccomp_rule_add(filter, action_of(rule, "action"), call, 0);
	}
	return err;
}

int main(int argc, char **argv)
{
	json_error_t error;
	const json_t *rule;
	size_t i;
	json_t *profile = argc > 2 ? json_load_file(argv[1], 0, &error) : NULL;
	if (!profile) {
		fprintf(stderr, "with_profile: %s\n", argc > 2 ? error.text : "name a profile and a program");
		return CANT;
	}
	scmp_filter_ctx filter = seccomp_init(action_of(profile, "defaultAction"));
	int err = filter ? 0 : -ENOMEM;
	json_array_foreach(json_object_get(profile, "syscalls"), i, rule)
	{
		err = err ? err : add_calls(filter, rule);
	}
	err = err ? err : seccomp_load(filter);
	if (!err)
		execv(argv[2], argv + 2);
	fprintf(stderr, "with_profile: %s\n", strerror(err ? -err : errno));
	return CANT;
}
