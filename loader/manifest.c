/* SPDX-License-Identifier: MIT */
/* Members of the manifest. Everything is looked up once, when the programs are loaded and nothing is attached
 * yet. The file must contain everything that a reader needs to interpret numbers (devices, system calls,
 * programs), because the host will not be available then. */
#include "loader/manifest.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "loader/system/machine.h"
#include "loader/system/text.h"
#include "recording/json/json_block.h"
#include "recording/recording.h"
#include "recording/syscalls.h"

/* {"254:0": "vda", ...}: block requests carry numbers, but readers know names. Empty without sysfs. */
static json_t *block_devices(void)
{
	json_t *names = json_object();
	DIR *d = opendir("/sys/dev/block");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[300], target[512], *name;
		ssize_t n;

		snprintf(path, sizeof path, "/sys/dev/block/%s", e->d_name);
		n = readlink(path, target, sizeof target - 1);
		if (n <= 0)
			continue;
		target[n] = 0;
		name = strrchr(target, '/');
		json_put_text(names, e->d_name, name ? name + 1 : target);
	}
	if (d)
		closedir(d);
	return names;
}

/* {"0": "read", ...}: spans contain system call numbers, whose meaning depends on the machine. */
static json_t *syscall_names(void)
{
	json_t *names = json_object();
	for (int i = 0; i < ft_syscall_limit(); i++) {
		char number[16];
		snprintf(number, sizeof number, "%d", i);
		if (ft_syscall_name(i))
			json_object_set_new(names, number, json_string(ft_syscall_name(i)));
	}
	return names;
}

/* The machine, the processor's name, and the active setting of transparent huge pages: two runs to be
 * compared should agree in them. */
static void put_host(json_t *manifest)
{
	char line[256], *text;
	FILE *in = fopen("/proc/cpuinfo", "re");
	while (in && fgets(line, sizeof line, in)) {
		if (strncmp(line, machine.cpu_line, strlen(machine.cpu_line)) || !(text = strchr(line, ':')))
			continue;
		text += strspn(text, ": \t");
		text[strcspn(text, "\n")] = 0;
		json_put_text(manifest, "cpu", text);
		break;
	}
	if (in)
		fclose(in);
	json_put_text(manifest, "machine", machine.name);
	if (read_text("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line) > 0 &&
	    (text = strchr(line, '['))) {
		text[strcspn(text, "]")] = 0;
		json_put_text(manifest, "thp", text + 1);
	}
}

json_t *manifest(const struct record_options *options, json_t *targets, const struct support *support,
		 struct programs *p, uint64_t start_ns, json_t *missing)
{
	json_t *argv = json_array(), *programs = json_array();
	struct program_cost costs[PROGRAMS_MAX];
	size_t count = programs_costs(p, costs, PROGRAMS_MAX);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(programs, json_string(costs[i].name));
	for (int i = 0; i < options->argc; i++)
		json_put_text(argv, NULL, options->argv[i]);
	struct utsname u;
	uname(&u);
	char boot[40];
	ft_boot_id(boot);
	json_t *all =
	    json_pack("{s:s, s:s, s:o, s:s, s:s, s:o, s:I, s:b, s:s, s:s, s:o, s:i, s:I, s:O, s:o, s:o, s:o}",
		      "program", "forktail-record", "version", FORKTAIL_VERSION, "host",
		      json_text(u.nodename, strlen(u.nodename)), "kernel", u.release, "boot_id", boot, "argv",
		      argv, "min_span_ns", (json_int_t)options->wanted.min_span_ns, "exact",
		      support->exact != EXACT_NOT, "exact_by", support_exact_name(support->exact),
		      "accounts_in", support->has_task_storage ? "task storage" : "hash", "targets", targets,
		      "cpus", support->cpus, "start_ns", (json_int_t)start_ns, "missing", missing,
		      "block_devices", block_devices(), "programs", programs, "syscalls", syscall_names());
	if (all) {
		char clock[FT_CLOCK_ID_BYTES];
		ft_clock_id(clock);
		json_put_text(all, "clock_id", clock);
		json_put_text(all, "counters", support_counters_name(programs_cpu_counters(p)));
		put_host(all);
	}
	return all;
}
