/* SPDX-License-Identifier: MIT */
/* The starter is forked while the recorder has nothing open that it should not have. It drops its privileges
 * before anything else. */
#include "loader/guard_start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/system/privileges.h"

enum { LONGEST_PAUSE_S = 60, USAGE = 2 };

int guard_args_add(struct guard_args *g, const char *option, const char *value)
{
	if (g->count + 2 > GUARD_ARGS_MAX)
		return -E2BIG;
	g->all[g->count++] = option;
	if (value)
		g->all[g->count++] = value;
	return 0;
}

/* Finds the program in the directory of this one. */
static int find_guard(char path[PATH_MAX])
{
	static const char name[] = "forktail-guard";
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof name);
	if (n <= 0)
		return -errno;
	path[n] = 0;
	strcpy(strrchr(path, '/') + 1, name);
	return access(path, X_OK) ? -errno : 0;
}

/* Resets signals to their defaults and closes everything except the standard descriptors. */
static void reset_process(void)
{
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);
	dup2(null, STDIN_FILENO);
	close_range(3, ~0u, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
}

/* The caller's environment may hold passwords, and the guard and its commands belong to another user. */
static void keep_environment(const char *kept[], size_t room)
{
	static const char *const names[] = {"PATH=", "LANG=", "LC_", "TZ=", "NOTIFY_SOCKET=", "WATCHDOG_"};
	size_t count = 0;
	for (char **e = environ; *e; e++)
		for (size_t i = 0; i < sizeof names / sizeof *names && count + 1 < room; i++)
			if (strncmp(*e, names[i], strlen(names[i])) == 0)
				kept[count++] = *e;
	kept[count] = NULL;
}

/* Runs the guard once. Returns its exit status, or 128. The guard ends with the recorder: it checks each
 * second whether the recorder is alive, because the recorder has no right to send a signal to another user's
 * process. */
static int run(pid_t recorder, const char *path, char *const *argv)
{
	pid_t starter = getpid(), pid = fork();
	int status = 0;
	if (pid < 0)
		return 128;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
		if (getppid() != starter)
			_exit(0);
		signal(SIGINT, SIG_DFL);
		const char *environment[32];
		keep_environment(environment, sizeof environment / sizeof *environment);
		execve(path, argv, (char *const *)environment);
		_exit(USAGE);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (getppid() != recorder) {
			kill(pid, SIGTERM);
			_exit(0);
		}
		sleep(1);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Becomes the ring's user and tells the recorder whether that user can run the guard. */
static int begin(pid_t recorder, int answer, const char *path, const struct file_owner *user)
{
	int err = privileges_become_user(recorder, user->uid, user->gid);
	if (!err && access(path, X_OK))
		err = -errno;
	if (write(answer, &err, sizeof err) != sizeof err)
		err = -EPIPE; /* the recorder has exited */
	return err;
}

__attribute__((noreturn)) static void live(pid_t recorder, int answer, const char *path, char *const *argv,
					   const struct file_owner *user)
{
	prctl(PR_SET_NAME, "forktail-start");
	signal(SIGINT, SIG_IGN); /* Ctrl-C is for the recorder, and the guard ends with it */
	if (begin(recorder, answer, path, user))
		_exit(3);
	reset_process();
	for (unsigned pause_s = 1;;) {
		time_t begun = time(NULL);
		int status = getppid() == recorder ? run(recorder, path, argv) : USAGE;
		if (status == USAGE) {
			if (getppid() == recorder)
				fputs("forktail record: forktail-guard did not accept its options. The "
				      "recording continues without triggers, snapshots and metrics\n",
				      stderr);
			_exit(USAGE);
		}
		if (time(NULL) - begun > LONGEST_PAUSE_S)
			pause_s = 1;
		fprintf(stderr, "forktail record: forktail-guard exited; restarting it in %u s\n", pause_s);
		sleep(pause_s);
		pause_s = 2 * pause_s < LONGEST_PAUSE_S ? 2 * pause_s : LONGEST_PAUSE_S;
	}
}

int guard_start(const struct guard_args *g, const char *ring, const struct file_owner *user)
{
	char path[PATH_MAX];
	const char *argv[GUARD_ARGS_MAX + 3] = {path, ring};
	pid_t recorder = getpid();
	int err = find_guard(path);
	if (err)
		return err;
	memcpy(argv + 2, g->all, g->count * sizeof *g->all);
	int answer[2];
	if (pipe2(answer, O_CLOEXEC))
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		live(recorder, answer[1], path, (char *const *)argv, user);
	err = pid < 0 ? -errno : 0;
	close(answer[1]);
	if (!err && read(answer[0], &err, sizeof err) != sizeof err)
		err = -ECHILD;
	close(answer[0]);
	return err;
}
