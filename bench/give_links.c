/* SPDX-License-Identifier: MIT */
/* A library that bench/overhead --toggle preloads into forktail-record, of any build. It gives each BPF link
 * that the recorder creates to the process at the other end of a socket, whose descriptor is in
 * $FORKTAIL_GIVE_LINKS, and leaves /dev/null in its place. That process then attaches and detaches the
 * recorder's programs by opening and closing links, while the recorder runs as usual. */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static long (*next)(long number, ...);
static int links = -1; /* the socket */
static pid_t recorder; /* its helpers have other descriptors of the same numbers */

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("FORKTAIL_GIVE_LINKS");
	*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	links = text ? atoi(text) : -1;
	recorder = getpid();
}

/* Iterators stay the recorder's. So do links to perf events, which are switched by their events. */
static bool creates_link(long command, const union bpf_attr *attr)
{
	if (command == BPF_RAW_TRACEPOINT_OPEN)
		return true;
	return command == BPF_LINK_CREATE && (attr->link_create.attach_type == BPF_TRACE_FENTRY ||
					      attr->link_create.attach_type == BPF_TRACE_FEXIT ||
					      attr->link_create.attach_type == BPF_TRACE_RAW_TP);
}

static void give(int link)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	char byte = 0;
	struct iovec one = {&byte, 1};
	const struct msghdr message = {.msg_iov = &one,
				       .msg_iovlen = 1,
				       .msg_control = control.bytes,
				       .msg_controllen = sizeof control.bytes};
	*(int *)(void *)CMSG_DATA(&control.header) = link;
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || sendmsg(links, &message, 0) != 1 || dup3(null, link, O_CLOEXEC) < 0)
		abort();
	close(null);
}

/* libbpf calls it for bpf(). */
long syscall(long number, ...)
{
	long a[6];
	va_list list;
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	const long result = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (number == SYS_bpf && result >= 0 && links >= 0 &&
	    creates_link(a[0], (const union bpf_attr *)a[1]) && getpid() == recorder)
		give((int)result);
	return result;
}
