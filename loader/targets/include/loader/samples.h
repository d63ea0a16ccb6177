/* SPDX-License-Identifier: MIT */
/* CPU samples: from registers and stack to function names, by helper processes that touch what targets
 * chose. */
#ifndef FORKTAIL_LOADER_SAMPLES_H
#define FORKTAIL_LOADER_SAMPLES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "loader/system.h"
#include "loader/targets.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which files a process executes code from, and their addresses: parses /proc/PID/maps. */

enum { MAPPED_FILES = 1024, MAPPED_PATH = 4096 };

/* A mapped file with an executable part. */
struct mapped_file {
	uint64_t start, end;	       /* of all consecutive mappings of the file */
	uint64_t code_start, code_end; /* of its first executable mapping */
	uint64_t inode;		       /* 0: the kernel's code page, "[vdso]" */
	uint32_t device[2];	       /* major and minor */
	char path[MAPPED_PATH];	       /* as the process sees it; with " (deleted)" if it was deleted */
};

/* Calls `found` for every file with code in the text, which has the form of /proc/PID/maps, in order of
 * addresses, at most MAPPED_FILES. Lines that are not mappings are skipped. */
typedef void (*mapping_handler)(void *context, const struct mapped_file *file);
void mappings_each(const char *text, mapping_handler found, void *context);

/* Reads a process' maps into memory that the caller frees. NULL if they cannot be read or are larger than 16
 * MB. */
char *mappings_read(pid_t pid);

/* The last component of a path, without " (deleted)", truncated to `size`. */
void mappings_base_name(const char *path, char *name, size_t size);

/* Opens files that a target has mapped, as root, without being redirected to other files. */

/* Which mounts of a process are served by another process (FUSE). Caller frees it. NULL: no memory. */
struct mounts;
struct mounts *mounts_read(pid_t pid);

/* Those of the process, and our own; either may be NULL. */
enum { MOUNTS = 2 };

/* Opens a mapped file of a process for reading. Opens only the regular file that is mapped, whatever its path
 * leads to now. Returns a negative errno on failure: -ESTALE if another file is at its path, -ENOTSUP if it
 * is not a regular file or is on a file system that a process serves (FUSE), or may serve: on a mount that
 * neither the process nor the recorder sees. */
int mapped_open(const struct mounts *const mounts[MOUNTS], pid_t pid, const struct mapped_file *file);

/* The helper process that touches what targets chose: their mapped files, their memory maps, their command
 * lines, the pipes for which they wait. Each of these calls may block for good: a file system of a process
 * that does not answer, a memory map that is locked. So the recorder makes none of them; this process is
 * abandoned and replaced if it is hung. It passes the files to the unwinding helper, never to the recorder.
 */

enum files_request_kind {
	FILES_MAPS = 1, /* answered with the process' program and its mapped files */
	FILES_SEND = 2, /* sends the files to the unwinding helper as the space `space`; answered when done */
	FILES_TITLE = 3,   /* answered with the process' command line */
	FILES_REFUSE = 4,  /* `key` is a file that is not to be sent; no answer */
	FILES_CONNECT = 5, /* with two descriptors, the other ends of UNWIND_SOURCE's; no answer */
	FILES_PIPE = 6,	   /* answered with the processes at the other end of a pipe */
};

struct files_request {
	uint32_t kind;
	int32_t pid;
	uint32_t space;
	uint32_t preload;
	union {
		uint64_t key[4];
		struct ft_event_pipe pipe;
	};
};

/* A file's mapping. These fields distinguish address spaces. */
struct mapped_place {
	uint64_t start, end, inode;
	uint32_t device[2];
};

enum {
	FILES_TITLE_BYTES = 1024,
	FILES_REFUSED_MAX = 64, /* files that are not sent; further ones are */
	FILES_PIPE_ENDS = 8,	/* processes of a pipe; further ones are not reported */
};

/* A process that can read what another one writes into a pipe, or write what it reads. */
struct pipe_end {
	int32_t pid;
	int32_t fd;
	char state; /* as in /proc/PID/stat: 'T' is stopped; 0: unknown */
	char comm[16];
};

struct files_answer {
	uint32_t kind;
	int32_t pid;
	int32_t error; /* negative errno */
	uint32_t count;
	char program[NAME_MAX + 1];
	union {
		struct mapped_place places[MAPPED_FILES]; /* only `count` are sent */
		char title[FILES_TITLE_BYTES];		  /* only `count` bytes are sent */
		struct pipe_end ends[FILES_PIPE_ENDS];	  /* only `count` are sent */
	};
};

extern const struct helper_setup files_helper;

/* The recorder's side of the helper that touches what targets chose. Nothing here waits for
 * that helper, but for a bounded time in target_files_title_now(). If the helper gets nowhere for two
 * seconds, it is abandoned and replaced, and the process that it was busy with is left alone for a while: 10
 * s at first, each time twice as long. If two processes of a user who is not root did that, all of that user
 * are left alone. */

struct target_files;

/* What address spaces are made of. */
struct target_files_handler {
	/* The mapped files of a process, in order of addresses, and its program's name. */
	void (*maps)(void *context, pid_t pid, const struct mapped_place *places, size_t count,
		     const char *program);
	/* A process' maps are not known: it has exited, or its files are left alone. */
	void (*no_maps)(void *context, pid_t pid);
	/* The unwinding helper has all files of a space, or (error < 0) will not get them. */
	void (*sent)(void *context, uint32_t space, int error);
	/* The helper is a new one: the unwinding helper needs a connection to it. */
	void (*restarted)(void *context);
	void *context;
};

/* Starts the helper. NULL: it cannot be started, errno says why. */
struct target_files *target_files_open(void);
void target_files_close(struct target_files *f);
void target_files_handle(struct target_files *f, const struct target_files_handler *handler);
/* Who gets titles that were asked for. */
void target_files_on_title(struct target_files *f, void (*title)(void *context, pid_t pid, const char *title),
			   void *context);

/* Who gets the processes at the other end of a pipe for which a thread waits. */
void target_files_on_pipe(struct target_files *f,
			  void (*pipe)(void *context, const struct ft_event_pipe *wait,
				       const struct pipe_end *ends, size_t count),
			  void *context);

/* Ask for something; the answer comes through a handler during target_files_take() or target_files_tick(),
 * never within these calls. False: too much is waiting, so no answer will come. */
bool target_files_ask_maps(struct target_files *f, pid_t pid);
bool target_files_send(struct target_files *f, pid_t pid, uint32_t space, bool preload);
bool target_files_ask_title(struct target_files *f, pid_t pid);
bool target_files_ask_pipe(struct target_files *f, const struct ft_event_pipe *wait);
/* The command line of a process, with blanks between its words; "" if it is not known within 100 ms. */
void target_files_title_now(struct target_files *f, pid_t pid, char *title, size_t size);
/* The ends of an unwinding helper's source of address spaces and of its questions. Takes them. */
void target_files_connect(struct target_files *f, int spaces, int questions);
/* This file ended an unwinding helper: it is not sent again. */
void target_files_refuse(struct target_files *f, const uint64_t key[4]);
/* The process has ended. */
void target_files_forget(struct target_files *f, pid_t pid);

/* Readable when there is an answer; -1: there is no helper now. */
int target_files_fd(const struct target_files *f);
void target_files_take(struct target_files *f);
/* At every tick: replaces a helper that hangs or has ended. */
void target_files_tick(struct target_files *f);

struct target_files_figures {
	uint64_t cpu_ns; /* of all helpers */
	pid_t pid;	 /* of the helper; 0: none now */
};
struct target_files_figures target_files_so_far(const struct target_files *f);

/* A stack as text: the program, then a line per frame, "function\tmodule", then a line per kernel function.
 * This text identifies a stack and is also what is written. */

enum {
	STACK_TEXT_BYTES = 8192,
	STACK_NAME_BYTES = 256, /* of a name; C++ templates and malicious files have longer ones */
};

struct stack_text {
	char bytes[STACK_TEXT_BYTES]; /* terminated by 0 */
	size_t length;		      /* without the terminator */
};

/* Begins with a program's name. Names may contain any bytes: they are truncated, and a line break becomes
 * '?'. */
void stack_text_begin(struct stack_text *t, const char *program);
/* Adds a line, completely or not at all. False: no space. Half of the space is reserved for kernel
 * functions. */
bool stack_text_frame(struct stack_text *t, const char *function, const char *module);
bool stack_text_kernel(struct stack_text *t, const char *function);

/* Splits the next line of a text and moves *text after it. False at the end. A line without a module returns
 * NULL and length 0 for it. */
struct stack_line {
	const char *function, *module;
	size_t function_length, module_length;
};
bool stack_text_line(const char **text, struct stack_line *line);

/* Resolves the registers and stack of a sampled thread to functions by name, with libdw. It knows address
 * spaces and their opened files, and asks the host for nothing else, so it can run in a sandbox
 *. */

enum {
	UNWIND_FRAMES = 64, /* the innermost frames; the rest is cut off */
	UNWIND_NAME = 64,   /* of a file's name */
};

/* A file that is mapped into an address space. */
struct unwind_file {
	uint64_t start, end;
	uint64_t key[4]; /* identifies a file: of two files with the same key, the first is used for both */
	char name[UNWIND_NAME];
};

/* Names are valid until the next call. */
struct unwind_frame {
	const char *function; /* "" if the file has no name for the address */
	const char *module;   /* file name of the program or library; "" without one */
};

struct unwind_stack {
	size_t count;
	struct unwind_frame frames[UNWIND_FRAMES]; /* innermost first */
	bool cut;				   /* there are more callers than could be found */
};

struct unwinder;

/* Opens the debug file of a program by its build id, for reading. Negative: not found. */
typedef int (*debug_file_finder)(void *context, const uint8_t *build_id, size_t bytes);

/* Called before a file is read: its key, and its name. Either the file's reading ends, or this process does.
 */
typedef void (*file_reporter)(const uint64_t key[4], const char *name);

/* `report` may be NULL. */
struct unwinder *unwinder_open(debug_file_finder find_debug_file, void *context, file_reporter report);
void unwinder_close(struct unwinder *u);

/* An address space, identified by a number that the caller chooses: creates an empty one (replacing one with
 * the same number), */
void unwinder_begin_space(struct unwinder *u, uint32_t id);
/* adds its files, and takes ownership of their descriptors (-1: the kernel's code page), */
void unwinder_add_file(struct unwinder *u, uint32_t id, const struct unwind_file *file, int fd);
/* and makes it ready for use. `preload`: read symbols and unwind tables now. */
void unwinder_end_space(struct unwinder *u, uint32_t id, bool preload);
void unwinder_forget_space(struct unwinder *u, uint32_t id);
/* After a crash in a function of this space: it is not used any more, and its memory is left as it is. */
void unwinder_abandon_space(struct unwinder *u, uint32_t id);

/* Resolves the function at the sample's address and, with `callers`, all callers in the copied stack. */
void unwinder_unwind(struct unwinder *u, uint32_t id, const struct ft_event_sample_stack *e, bool callers,
		     struct unwind_stack *out);

/* Messages to and from the process that unwinds, one packet each (SOCK_SEQPACKET). Address
 * spaces come from the process that opens targets' files, samples from the recorder. All are
 * from one build, so these are plain structs. But the helper has read files that may be malicious, so the
 * recorder validates everything in its answers. */

enum unwind_request_kind {
	UNWIND_BEGIN_SPACE = 1,
	UNWIND_ADD_FILE = 2, /* with the file's descriptor, if it has one */
	UNWIND_END_SPACE = 3,
	UNWIND_FORGET_SPACE = 4,
	UNWIND_SAMPLE = 5, /* gets an answer */
	/* With two descriptors: where address spaces come from, and who is asked for debug files. */
	UNWIND_SOURCE = 6,
};

struct unwind_request {
	uint32_t kind;
	uint32_t space;
	uint64_t serial;
	uint8_t flag; /* UNWIND_END_SPACE: preload; UNWIND_SAMPLE: with callers */
	union {
		struct unwind_file file;
		struct ft_event_sample_stack sample; /* as much of the stack as could be read */
	};
};

enum { UNWIND_ANSWER_TEXT = 4096 };

struct unwind_answer {
	uint64_t serial;
	uint64_t took_ns; /* of CPU time */
	uint8_t cut;
	char text[UNWIND_ANSWER_TEXT]; /* frames as lines (stack text); only the used length is sent */
};

/* To the process that opens files, on a separate socket, because the helper waits for the answer: a debug
 * file by build id. The answer is a byte, with the file's descriptor if it was found. */
enum { BUILD_ID_MAX = 64 };
struct debug_file_question {
	uint8_t bytes;
	uint8_t build_id[BUILD_ID_MAX];
};

/* The helper process that reads untrusted data of targets: ELF files, unwind tables, stacks. */

/* It cannot look for anything on the host: it has no capabilities, no files except those it is given
 *, and few system calls. Its note says which file it is reading. */
extern const struct helper_setup unwind_helper;

/* The recorder's side of unwinding: processes, waiting samples, and recovery when the helper does not answer.
 * Nothing here blocks except at the end. Samples are sent as they arrive, those of a new process when its
 * files have been opened; answers are read at ticks of the recorder. A sample without an answer within a
 * second gets an empty result. A helper that is silent longer is ended and replaced, and the file that it
 * read is not read again. */

struct unwind_queue;
struct target_files;

/* A sample and its result. */
struct unwind_queue_result {
	struct ft_cpu_sample record; /* as it was submitted */
	const char *program;	     /* name of the process' program */
	const char *frames;	     /* lines (stack text); NULL: unresolved */
	bool callers, cut;
	size_t kernel_count;
	const uint64_t *kernel; /* addresses, innermost first */
};
typedef void (*unwind_queue_handler)(void *context, const struct unwind_queue_result *result);

/* Starts the helper. `files` must stay open longer; its answers come here from now on. NULL: it cannot be
 * started. */
struct unwind_queue *unwind_queue_open(struct target_files *files);
/* Sets who receives the results. */
void unwind_queue_handle(struct unwind_queue *u, unwind_queue_handler handler, void *context);
void unwind_queue_close(struct unwind_queue *u);

/* Reads a process' files in advance. */
void unwind_queue_prepare(struct unwind_queue *u, pid_t pid);
void unwind_queue_forget(struct unwind_queue *u, pid_t pid);

/* Takes a sample. Its result arrives later, or at once if there is no time, space or helper for it. `parent`
 * (0: none) is used if the process has exited: a child has its parent's mappings. `whole` may be NULL, then
 * only the innermost function is resolved. */
void unwind_queue_add(struct unwind_queue *u, const struct ft_cpu_sample *record,
		      const struct ft_event_sample *e, const struct ft_event_sample_stack *whole,
		      pid_t parent);

/* Called at every tick of the recorder: reads answers, sends queued requests, renews the budget, replaces
 * helpers. */
void unwind_queue_tick(struct unwind_queue *u);
/* Whether a sample waits for its stack. */
bool unwind_queue_waits(const struct unwind_queue *u);
/* Waits for the last answers, at most one second. */
void unwind_queue_settle(struct unwind_queue *u);

struct unwind_queue_figures {
	uint64_t unwound, unwind_ns; /* stacks, and the CPU time that samples took */
	uint64_t not_unwound;	     /* samples that lack callers or names that they should have */
	uint64_t helper_cpu_ns;	     /* of all helpers in total */
	pid_t helper, files_helper;  /* running now; 0: none */
};
struct unwind_queue_figures unwind_queue_so_far(const struct unwind_queue *u);

/* Turns CPU samples of the ring into records. Each distinct stack is written once, and samples refer to it.
 */

struct samples;

/* `threads` and `unwinding` must outlive it. Returns NULL without memory. All other functions accept NULL,
 * which means that no samples are wanted. */
struct samples *samples_open(struct ft_writer *writer, const struct threads *threads,
			     struct unwind_queue *unwind_queue);
void samples_close(struct samples *s);

/* Reads the process' symbols in advance. */
void samples_prepare(struct samples *s, pid_t pid);

/* An event of type FT_EVENT_SAMPLE or FT_EVENT_SAMPLE_STACK. */
void samples_add(struct samples *s, const void *event, size_t bytes);
void samples_thread_ended(struct samples *s, const struct ft_event_thread *e);

/* Called at every tick of the recorder: writes samples whose stacks are resolved. */
void samples_tick(struct samples *s);
/* Whether one waits for its stack. */
bool samples_wait(const struct samples *s);
/* Waits for the last stacks, at most one second. */
void samples_settle(struct samples *s);

/* A new file begins: no stack has been written to it. */
void samples_begin_segment(struct samples *s);

struct samples_figures {
	uint64_t samples; /* number of stacks written to this file */
	struct unwind_queue_figures unwinding;
};
struct samples_figures samples_so_far(const struct samples *s);

#ifdef __cplusplus
}
#endif
#endif
