/* SPDX-License-Identifier: MIT */
/* Messages to and from the process that unwinds (unwind_helper.h), one packet each (SOCK_SEQPACKET). Address
 * spaces come from the process that opens targets' files (files_helper.h), samples from the recorder. All are
 * from one build, so these are plain structs. But the helper has read files that may be malicious, so the
 * recorder validates everything in its answers. */
#ifndef FORKTAIL_LOADER_UNWIND_MESSAGES_H
#define FORKTAIL_LOADER_UNWIND_MESSAGES_H

#include <stdint.h>

#include "bpf/events.h"
#include "loader/samples/unwind.h"

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
	char text[UNWIND_ANSWER_TEXT]; /* frames as lines of stack_text.h; only the used length is sent */
};

/* To the process that opens files, on a separate socket, because the helper waits for the answer: a debug
 * file by build id. The answer is a byte, with the file's descriptor if it was found. */
enum { BUILD_ID_MAX = 64 };
struct debug_file_question {
	uint8_t bytes;
	uint8_t build_id[BUILD_ID_MAX];
};

#endif
