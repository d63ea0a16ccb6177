/* SPDX-License-Identifier: MIT */
/* Runs a program and lets one system call of it, or of a process that it starts, fail or take long:
 *
 *   inject CALL PROCESS FAULT PROGRAM [ARGUMENT...]
 *
 * CALL is a system call's name, PROCESS a name as in /proc/PID/comm, FAULT an errno's name, "SIGBUS", "1s" or
 * "forever". The first such call after SIGUSR1 is the one; a line on standard output says which process made
 * it. All other calls are left as they are. The kernel asks this program about each such call (a seccomp
 * notifier), so calls that the C library makes by itself are covered, too, and the program's own filters stay
 * in effect. Exit status: that of PROGRAM; 128 and a signal's number; 3: it could not be started. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DELAY_MS = 1000, CANT = 3 };

static const struct {
	const char *name;
	int number;
} errors[] = {{"EIO", EIO}, {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE}, {"ENOSPC", ENOSPC}};

/* In memory that we share with the program before it begins. */
struct handover {
	volatile int notifier; /* the program's descriptor; 0: not yet */
	volatile bool taken;
};

struct fault {
	const char *call, *process, *name;
	int error;	  /* 0: none */
	bool armed, done; /* done: later calls are left alone */
	uint64_t held;	  /* the call that waits */
	int64_t until_ms; /* when it is answered; -1: never */
};

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void die(const char *what)
{
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(CANT);
}

static void answer(int notifier, uint64_t id, int error)
{
	struct seccomp_notif_resp r = {
	    .id = id, .error = -error, .flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE};
	ioctl(notifier, SECCOMP_IOCTL_NOTIF_SEND, &r); /* fails if the caller has ended */
}

static bool is_process(pid_t tid, const char *name)
{
	char path[64], comm[32] = "";
	snprintf(path, sizeof path, "/proc/%d/comm", tid);
	FILE *file = fopen(path, "r");
	if (file && !fgets(comm, sizeof comm, file))
		comm[0] = 0;
	if (file)
		fclose(file);
	comm[strcspn(comm, "\n")] = 0;
	return strcmp(comm, name) == 0;
}

static void inject(int notifier, struct fault *f, const struct seccomp_notif *n)
{
	f->done = true;
	printf("%s of %s (%u): %s\n", f->call, f->process, n->pid, f->name);
	fflush(stdout);
	if (strcmp(f->name, "1s") == 0 || strcmp(f->name, "forever") == 0) {
		f->held = n->id;
		f->until_ms = f->name[0] == '1' ? now_ms() + DELAY_MS : -1;
		return;
	}
	if (strcmp(f->name, "SIGBUS") == 0)
		kill((pid_t)n->pid, SIGBUS);
	answer(notifier, n->id, f->error);
}

static void take_call(int notifier, struct fault *f)
{
	struct seccomp_notif n = {.id = 0};
	if (ioctl(notifier, SECCOMP_IOCTL_NOTIF_RECV, &n))
		return; /* the caller has ended */
	if (f->armed && !f->done && is_process((pid_t)n.pid, f->process))
		inject(notifier, f, &n);
	else
		answer(notifier, n.id, 0);
}

/* The program. Its calls wait for answers as soon as it has the filter, so it tells us the notifier's number
 * without another call. Exec closes the notifier. */
__attribute__((noreturn)) static void become(struct handover *h, int call, char **argv)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	h->notifier =
	    (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	while (h->notifier >= 0 && !h->taken)
		;
	execv(argv[0], argv);
	_exit(CANT);
}

/* Our descriptor of the program's notifier. */
static int notifier_of(pid_t program, struct handover *h)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, program, 0);
	while (!h->notifier)
		usleep(1000);
	const int notifier = (int)syscall(SYS_pidfd_getfd, pidfd, h->notifier, 0);
	if (notifier < 0)
		die("cannot watch the program's calls");
	h->taken = true;
	close(pidfd);
	return notifier;
}

/* Until the program ends. Returns its exit status. */
static int watch(pid_t program, int notifier, int signals, struct fault *f)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = notifier, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
		const int64_t left = f->until_ms - now_ms();
		struct signalfd_siginfo signal;
		int status;
		poll(fds, 2, f->held && f->until_ms >= 0 ? (left > 0 ? (int)left : 0) : -1);
		if (f->held && f->until_ms >= 0 && now_ms() >= f->until_ms) {
			answer(notifier, f->held, 0);
			f->held = 0;
		}
		if (fds[0].revents & POLLIN)
			take_call(notifier, f);
		if (!(fds[1].revents & POLLIN) || read(signals, &signal, sizeof signal) != sizeof signal)
			continue;
		if (signal.ssi_signo == SIGUSR1)
			f->armed = true;
		else if (signal.ssi_signo != SIGCHLD)
			kill(program, (int)signal.ssi_signo);
		else if (waitpid(program, &status, WNOHANG) == program)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

static bool parse(int argc, char **argv, struct fault *f, int *call)
{
	if (argc < 5)
		return false;
	*f = (struct fault){.call = argv[1], .process = argv[2], .name = argv[3]};
	*call = seccomp_syscall_resolve_name(f->call);
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (strcmp(f->name, errors[i].name) == 0)
			f->error = errors[i].number;
	return *call != __NR_SCMP_ERROR &&
	       (f->error || strcmp(f->name, "1s") == 0 || strcmp(f->name, "forever") == 0 ||
		strcmp(f->name, "SIGBUS") == 0);
}

int main(int argc, char **argv)
{
	struct fault f;
	int call;
	sigset_t ours;
	if (!parse(argc, argv, &f, &call)) {
		fputs("usage: inject CALL PROCESS FAULT PROGRAM [ARGUMENT...]\n", stderr);
		return 2;
	}
	struct handover *handover =
	    mmap(NULL, sizeof *handover, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigemptyset(&ours);
	for (size_t i = 0; i < 4; i++)
		sigaddset(&ours, ((const int[]){SIGUSR1, SIGTERM, SIGINT, SIGCHLD})[i]);
	sigprocmask(SIG_BLOCK, &ours, NULL);
	const int signals = signalfd(-1, &ours, SFD_CLOEXEC);
	if (handover == MAP_FAILED || signals < 0)
		die("cannot begin");
	const pid_t program = fork();
	if (program == 0)
		become(handover, call, argv + 4);
	if (program < 0)
		die("fork");
	return watch(program, notifier_of(program, handover), signals, &f);
}
