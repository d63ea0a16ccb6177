/* SPDX-License-Identifier: MIT */
/* Traced processes: how they are selected and described, their threads, sockets and cgroups. */
#ifndef FORKTAIL_LOADER_TARGETS_H
#define FORKTAIL_LOADER_TARGETS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "bpf/probe_events.h"
#include "common/hash.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sockets in /proc: the links of a process' descriptors, and the tables of TCP sockets, which can be read for
 * the network namespace of any process. */

/* Calls `see` with the target of each descriptor's link ("socket:[1234]") until it returns true. Returns
 * whether it did. */
bool any_link(pid_t pid, bool (*see)(void *context, const char *link), void *context);

/* The sockets of a process by inode: {"1234": true}. Empty for most processes, for which no table of sockets
 * need be read. */
json_t *socket_inodes(pid_t pid);
bool has_inode(const json_t *inodes, unsigned long inode);

struct tcp_socket {
	unsigned long inode; /* 0: no process has it open any more */
	unsigned local_port, peer_port;
	unsigned state; /* the kernel's number */
	/* As in the table: hexadecimal, words in the host's byte order. */
	char local_address[33], peer_address[33];
};
/* Calls `see` with each socket of a table ("tcp", "tcp6"). `pid`: a process id, or "self". Returns 0 or a
 * negative errno. */
int each_tcp_socket(const char *pid, const char *table,
		    void (*see)(void *context, const struct tcp_socket *s), void *context);

/* The addresses of a process' network namespace. In a run on several hosts they identify the server that a
 * load generator used: ports and process ids are the same on many hosts. */

/* ["10.0.0.1", "fd00::1"], in the format of inet_ntop(), each once, without loopback addresses. Empty if
 * /proc does not show them. */
json_t *addresses_of(pid_t pid);

/* The same from files like /proc/PID/net/fib_trie and if_inet6. Either file may be missing. */
json_t *addresses_read(const char *fib_trie, const char *if_inet6);

/* Whether a process uses io_uring: then the descriptors of its event loop do not show its connections. */

/* Whether the process has a descriptor of an io_uring. A ring that registered its own descriptor and then
 * closed it is not detected. Also false if /proc cannot be read. */
bool has_io_uring(pid_t pid);

/* Listening sockets of a network namespace and the processes that hold them, from /proc. */

enum { INODES_MAX = 64 };

/* Sockets by inode, at most INODES_MAX. */
struct inodes {
	unsigned long inode[INODES_MAX];
	size_t count;
};

/* Adds the sockets that listen on a TCP port or on a Unix socket's path (as bound, or by real path) in this
 * network namespace. Negative errno if /proc cannot be read. */
int listeners_on_port(struct inodes *found, int port);
int listeners_on_path(struct inodes *found, const char *path);

/* Whether the process holds one of these sockets. */
bool holds_socket(pid_t pid, const struct inodes *wanted);

/* The sockets that a process listens on: ["tcp:6379", "unix:/path"]. Empty if none is visible. */
json_t *listen_addresses(pid_t pid);

/* The servers that a process is a client of. A proxy that is idle in the middle of a request waits for one of
 * them; if that one is not recorded, its address is all that is known. If another host's recorder saw the
 * proxy's requests, the local ends of the connections say that these are the proxy's. */

enum { PEERS_MAX = 64, LOCAL_ENDS_MAX = 1024 };

/* Puts the process' outgoing TCP connections: "peers", where they lead to, each address once and at most
 * PEERS_MAX (["10.0.0.7:6379", "[fd00::1]:6379"]), and "local_ends", the address and port of this end of
 * each, at most LOCAL_ENDS_MAX. A connection is outgoing if no socket of the network namespace listens on its
 * local port. */
void peers_put(json_t *object, pid_t pid);

/* Netlink sockets that tell about sockets (sock_diag), one per network namespace. */

enum { NAMESPACES_MAX = 16 };

struct diag {
	int fd;
	uint64_t netns; /* the inode of the namespace */
};

/* The inode of a process' network namespace (0: this process'), or 0 if it cannot be read. */
uint64_t network_namespace(pid_t pid);
/* Opens one for this process' namespace and for each further one of the processes, which needs
 * CAP_SYS_ADMIN. Returns their number. */
size_t diag_open(struct diag all[NAMESPACES_MAX], const pid_t *pids, size_t count);

/* What TCP did with the connections of recorded servers, at both ends if these are on this host:
 * retransmissions, resets and dropped packets, by programs that are always attached; and what connections
 * wait for, by looks at all of them, at most ten per second while something is slow and at most one part in
 * 500 of the time, and by looks at 16 of them, at most one part in 2000. */

struct tcp;

/* Loads the programs that this kernel supports. `pids`: the targets, in whose network namespaces connections
 * are looked at; connections in namespaces of later targets are not. NULL: see errno. */
struct tcp *tcp_open(const pid_t *pids, size_t count);
/* Returns 0 or a negative errno. */
int tcp_attach(struct tcp *t);
/* What a target listens on and is connected to, as in the manifest (descriptions_add), from now on. */
void tcp_target(struct tcp *t, const json_t *target);
/* A target that ended. */
void tcp_forget(struct tcp *t, pid_t pid);
/* Writes what was seen. `slow`: something was since the last call. Call it at every tick. */
void tcp_tick(struct tcp *t, struct ft_writer *w, bool slow, uint64_t now_ns);
/* How many events were lost because the ring was full. */
uint64_t tcp_lost(const struct tcp *t);
struct counted_programs;
/* The programs, for their cost. */
struct counted_programs tcp_programs(const struct tcp *t);
void tcp_close(struct tcp *t);

/* Places in programs that the user named: a function, from entry to return, or a static probe (USDT). Each
 * hit in a target or its child is a note of kind "probe". */

struct probe_wanted {
	const char *text; /* as given */
	bool is_static;
	char file[256]; /* "": the program of the first target */
	char provider[64];
	const char *name; /* a part of `text` */
};

/* Reads uprobe:FILE:FUNCTION or usdt:FILE:PROVIDER:NAME. False: it is neither. */
bool probe_parse(const char *text, struct probe_wanted *p);

struct probes;

/* Loads the programs, which share the map of targets. `wanted` lives as long. NULL: see errno. */
struct probes *probes_open(const struct probe_wanted *wanted, size_t count, int targets_map,
			   uint32_t pid_namespace);
/* `target`: whose program is meant where no file is named; 0: none runs yet. -1: `why` is one sentence that
 * begins with the option. */
int probes_attach(struct probes *p, pid_t target, char *why, size_t room);
/* Writes the hits. Call it at every tick. */
void probes_tick(struct probes *p, struct ft_writer *w);
/* Writes what is left, and how many hits were too many. */
void probes_stop(struct probes *p, struct ft_writer *w);
/* How many hits were lost because the ring was full. */
uint64_t probes_lost(const struct probes *p);
/* The programs, for their cost. */
struct counted_programs probes_programs(const struct probes *p);
void probes_close(struct probes *p);

/* Which sockets are in the epoll instances that the targets' threads wait for: the serving thread of each
 * connection. They are read at intervals instead of traced, because a tracepoint of epoll_ctl would slow
 * every system call of the host. A delay is harmless: the inode number shows that a socket is new and was in
 * no other instance before. A connection that opens and closes between two reads is missed. */

struct sockets;

/* `pids`: the targets, whose network namespaces are searched for Unix sockets besides the caller's. That
 * needs CAP_SYS_ADMIN; later only reading /proc of the targets is needed. NULL: no memory. */
struct sockets *sockets_open(struct ft_writer *writer, const pid_t *pids, size_t count);
/* A thread of this process waits for events of the epoll instance. Does nothing if `s` is NULL. */
void sockets_watch(struct sockets *s, pid_t pid, uint32_t epoll);
/* Whether threads of one process wait for different instances. Only then a connection's thread must be found.
 */
bool sockets_several(const struct sockets *s);
/* For kernels without the tracepoints of requests.h. Reads all instances of such processes and writes what
 * has changed. Call it often: it reads four times per second, or less often where servers would have to wait
 * for it for more than a 2000th of the time (a 200th while connections are opened or closed). */
void sockets_look(struct sockets *s, uint64_t now_ns);
/* A new file begins: writes all sockets again. Forgets the instances of processes that have ended. */
void sockets_begin_segment(struct sockets *s);
void sockets_close(struct sockets *s);

/* Files of the cgroups of processes, in version 1 or 2: cpu.max, memory.events. */

enum { CGROUP_PATH_BYTES = 256 };

/* The hierarchy with one controller. */
struct cgroup_hierarchy {
	bool v2;
	const char *controller;
	char proc[CGROUP_PATH_BYTES];  /* where proc is mounted */
	char mount[CGROUP_PATH_BYTES]; /* where the hierarchy is mounted */
	char root[CGROUP_PATH_BYTES];  /* which part of it is mounted: "/" except in a container */
};

/* Finds a version 1 mount with the controller ("cpu"), otherwise the unified hierarchy. False: neither.
 * `controller` is kept. */
bool cgroup_hierarchy_find(struct cgroup_hierarchy *h, const char *proc, const char *controller);

/* The cgroup in the hierarchy ("/a/b") of the process or thread with this directory in proc ("12/task/13").
 * False: none. */
bool cgroup_hierarchy_of(const struct cgroup_hierarchy *h, const char *directory,
			 char cgroup[CGROUP_PATH_BYTES]);

/* Reads a file of a cgroup, as read_text() does. False if it cannot be read. */
bool cgroup_file_read(const struct cgroup_hierarchy *h, const char *cgroup, const char *file, char *text,
		      size_t size);

/* The number after a key at the beginning of a line: "oom_kill 3". False: no such line. */
bool cgroup_number(const char *text, const char *key, double *value);

/* Cgroups of processes, and the container or unit that their paths name. No container engine is asked: ids
 * are in the paths, names in files that engines write. */

enum {
	CGROUP_BYTES = 1024,   /* a path with its terminator */
	CONTAINER_BYTES = 256, /* a container's id (64 hex digits), or for LXC its name */
	CGROUP_NAME_BYTES = 320,
};

/* `root` is "" or a directory that replaces the root of the file system. */

/* The path of a process' cgroup, "/docker/1f2e...", in the hierarchy of a version 1 controller ("freezer"),
 * or with "" of version 2. False: it has none, or the process has exited. */
bool cgroup_of(const char *root, pid_t pid, const char *controller, char path[CGROUP_BYTES]);
/* The same from a file like /proc/PID/cgroup. */
bool cgroup_in(const char *file, const char *controller, char path[CGROUP_BYTES]);
/* The most informative path: one with a container, otherwise one with a unit, otherwise the first that is not
 * the root. */
bool cgroup_best(const char *root, pid_t pid, char path[CGROUP_BYTES]);

/* The container that the path, or a part of it, belongs to. */
bool cgroup_container(const char *path, char id[CONTAINER_BYTES]);
/* The innermost systemd service or scope in the path: "redis-server.service". False: none. */
bool cgroup_unit(const char *path, char *name, size_t size);
/* A description: "container web (1f2e3d4c5b6a)", "container 1f2e3d4c5b6a" if its name is unknown, "unit
 * redis.service", or "". */
void cgroup_name(const char *root, const char *path, char name[CGROUP_NAME_BYTES]);

/* The id of the container with this name, from the files of Docker and Podman. False: not found. */
bool container_id(const char *root, const char *name, char id[CONTAINER_BYTES]);
/* The reverse. */
bool container_name(const char *root, const char *id, char name[CONTAINER_BYTES]);

/* Which processes to trace: by pid, listening port or Unix socket, name, cgroup or container. */

enum { TARGETS_MAX = 1024 };

struct targets {
	pid_t pids[TARGETS_MAX]; /* without duplicates */
	size_t count;
};

/* Each function adds the processes it finds and returns their number (duplicates included), or a negative
 * errno: -ESRCH no such process, -ENOENT no process listens there or has that name, -E2BIG too many, -EACCES
 * the listening process is not visible. */
int targets_add_pid(struct targets *t, pid_t pid);
/* "17" or "17,18". -EINVAL: not such a list. *which is the process for -ESRCH and -E2BIG; processes before it
 * have been added. */
int targets_add_pids(struct targets *t, const char *list, pid_t *which);
int targets_add_port(struct targets *t, int port); /* TCP, in this network namespace */
int targets_add_unix(struct targets *t,
		     const char *path); /* compared with the path that the server bound, then by real path */
int targets_add_name(struct targets *t, const char *name); /* comm, or the file name of the executable */

/* Every process in a cgroup and its child cgroups. `path` is a directory of a cgroup file system, or the path
 * in any hierarchy below /sys/fs/cgroup ("/docker/1f2e...", "system.slice/redis.service"). -ENOENT: no such
 * cgroup, or no process in it. */
int targets_add_cgroup(struct targets *t, const char *path);
/* Every process of a systemd unit: "redis-server" (a service), "redis-server.service", "web.scope". */
int targets_add_unit(struct targets *t, const char *unit);
/* Every process of a container, given its name (Docker, Podman, LXC) or the beginning of its id. -ENOTUNIQ:
 * several ids begin like this. */
int targets_add_container(struct targets *t, const char *which);

bool targets_has(const struct targets *t, pid_t pid);

/* A TCP port, 1 to 65535, or -EINVAL. */
int port_number(const char *text);

/* What manifests say of each target: its names, where it listens, the servers that it is a client of, its
 * cgroup. */

struct descriptions;

enum { DESCRIPTION_CMDLINE_BYTES = 1024 };

/* NULL: no memory, which all others accept: then nothing is known of any target. */
struct descriptions *descriptions_open(void);

/* Looks the process up, but for its command line: reading that may take long, so the caller knows it. The
 * result is valid until its next look or descriptions_forget(): {"pid", "comm", "cmdline", "listens",
 * "io_uring", "addresses", "peers", "local_ends", and, if it is in a cgroup, "cgroup" and "cgroup_of"}. */
json_t *descriptions_add(struct descriptions *d, pid_t pid, const char *cmdline, uint64_t now_ns);
void descriptions_forget(struct descriptions *d, pid_t pid);

/* Those of all added processes: a new array. */
json_t *descriptions_all(const struct descriptions *d);

/* Call it at every tick. Looks up one process again, if it is time for one: after a minute, and after some
 * seconds in its first 15 seconds, in which a server begins to listen. Less often where this would take
 * more than one part in 500 of a CPU's time. Returns its description, or NULL: none was looked up. */
json_t *descriptions_tick(struct descriptions *d, uint64_t now_ns);

void descriptions_close(struct descriptions *d);

/* Targets as the user named them. They are looked up once, or by a flight recorder repeatedly, because a
 * restarted server is another process. */

enum selector_kind { SELECT_PORT, SELECT_UNIX, SELECT_NAME, SELECT_CGROUP, SELECT_CONTAINER, SELECT_UNIT };

struct selector {
	enum selector_kind kind;
	const char *text;
	int port;
	struct inodes listening; /* sockets that matched when all of their processes were found */
};

enum { SELECTORS_MAX = 64 };

struct selectors {
	struct selector all[SELECTORS_MAX];
	size_t count;
};

/* False: too many. `text` must stay valid. */
bool selectors_add(struct selectors *s, enum selector_kind kind, const char *text, int port);

/* Adds the processes that one selector matches now. Returns like targets_add_... */
int selector_find(const struct selector *s, struct targets *found);
/* The same, but returns 0 if the same sockets listen as last time. Otherwise all descriptors of all processes
 * have to be searched. */
int selector_find_more(struct selector *s, struct targets *found);
/* Whether one of them finds processes by their descriptors. */
bool selectors_look_at_descriptors(const struct selectors *s);
/* Searches completely the next time, because a found process has exited. */
void selectors_forget(struct selectors *s);

/* The traced threads known to the recorder: names, roles, and when they exited. */

/* A process that has traced threads. */
struct process {
	uint32_t tgid, parent_tgid;
	uint32_t flags; /* of its threads: FT_THREAD_CHILD, FT_THREAD_CLIENT */
	size_t threads;
	UT_hash_handle hh;
};

struct thread {
	struct ft_thread record; /* as last written */
	struct ft_loop loop;	 /* t_ns 0: it was not seen waiting for an epoll instance */
	struct process *process;
	size_t place;	     /* in `all` */
	unsigned looks;	     /* how often its name was read at ticks */
	uint64_t look_tick;  /* when it is read next */
	uint64_t missing_ns; /* the first sweep that did not find it; 0: it was found */
	UT_hash_handle hh;
};

/* A target whose threads have exited. */
struct ended_target {
	pid_t pid;
	uint64_t t_ns; /* when the last one exited; 0: threads other than its main thread still run */
	char comm[16];
	uint32_t exit_code, exit_flags; /* of the last thread, as in struct ft_event_thread */
};

struct threads {
	struct thread **all; /* threads that exited are forgotten: their last record is on disk */
	size_t count, room;
	struct thread *by_tid; /* hash tables */
	struct process *by_tgid;
	size_t young;	  /* threads whose names are still read */
	size_t next_look; /* index of the thread that is examined next */
	uint64_t ticks;
	uint64_t unnamed_until_ns;  /* until when a child may have no role */
	struct ended_target *ended; /* in order of their end */
	size_t ended_count, ended_room;
	uint64_t begun; /* of targets and their children, so far */
	bool closing;	/* from now on accounts end because the recording ends */
	/* Asks for the command line of a process, for threads_title(). NULL: roles of children stay unknown.
	 */
	void (*ask_title)(void *context, pid_t pid);
	void *ask_context;
};

void threads_free(struct threads *t);

/* Writes the thread's record. threads_tick reads a name again that may still change. */
void threads_begin(struct threads *t, const struct ft_event_thread *e, struct ft_writer *w);
void threads_end(struct threads *t, const struct ft_event_thread *e, struct ft_writer *w);
/* How a process ended: "killed by SIGKILL (OOM killer)", "exit status 1"; "" if unknown. */
void exit_text(uint32_t exit_code, uint32_t exit_flags, char *text, size_t size);
/* The same as members of an object: status or signal, core_dumped, oom_killer. */
void json_put_exit(json_t *object, uint32_t exit_code, uint32_t exit_flags);
/* Writes which epoll instance a thread waits for from now on. */
void threads_loop(struct threads *t, const struct ft_loop *l, struct ft_writer *w);
/* A new file begins: writes all threads that are alive and what they wait for. Targets that have exited
 * belong to earlier files. */
void threads_begin_segment(struct threads *t, struct ft_writer *w);
/* At every tick: redis-server names its threads and children a moment after they start. Reads a limited
 * number of names, and a thread's name less and less often. */
void threads_tick(struct threads *t, struct ft_writer *w);
/* Whether a child started within the last 200 ms and its role is not known yet. */
bool threads_unnamed(const struct threads *t);
/* Reads the names of those children again. */
void threads_look(struct threads *t, struct ft_writer *w);
/* A child's command line: its role, if it is known by that. */
void threads_title(struct threads *t, pid_t pid, const char *title, struct ft_writer *w);
/* At intervals: calls `ended` with an exit event for each thread that exited without one, because a full ring
 * drops events. They would count as alive, and in a long recording their number would have no limit. The
 * event's time is when the thread was first not found. */
void threads_sweep(struct threads *t, void (*ended)(void *context, const struct ft_event_thread *e),
		   void *context);
/* The target that forked this process, or 0. */
pid_t threads_parent(const struct threads *t, pid_t tgid);
/* The process of a thread that is alive; for other threads the id itself. */
uint32_t threads_tgid(const struct threads *t, uint32_t tid);
/* Whether two threads are alive and belong to one process. */
bool threads_are_mates(const struct threads *t, uint32_t tid, uint32_t other);
/* Whether any thread of this process is alive. */
bool threads_alive(const struct threads *t, pid_t tgid);
/* Whether this process is alive and traced although it is no target: a target's child or a load generator. */
bool threads_of_other(const struct threads *t, pid_t tgid);

/* What suspended traced threads: the cgroup that was frozen, or the process that traced them. Each is written
 * once, as a note. */

struct frozen_group {
	uint32_t tgid;
	char path[CGROUP_BYTES];
};

struct tracer {
	uint64_t t_ns, pid;
	char comm[FT_NAME_BYTES];
};
enum { TRACERS_MAX = 64 };

struct suspensions {
	const char *root;	     /* of the file system; "" except in tests */
	struct frozen_group *groups; /* number noted so far */
	size_t count, room;
	struct tracer tracers[TRACERS_MAX]; /* the last ones: the kernel programs report each once */
	size_t tracer_count;
};

/* A thread runs again after it was frozen. */
void suspensions_frozen(struct suspensions *h, struct ft_writer *w, const struct threads *threads,
			const struct ft_event_span *e);
/* A thread runs again after a tracer stopped it that has not been written yet. */
void suspensions_traced(struct suspensions *h, struct ft_writer *w, const struct ft_event_span_detail *e);
/* A new file begins without these notes: freezers are noted again when they freeze something, tracers at
 * once. */
void suspensions_begin_segment(struct suspensions *h, struct ft_writer *w);
void suspensions_free(struct suspensions *h);

#ifdef __cplusplus
}
#endif
#endif
