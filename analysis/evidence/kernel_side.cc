// SPDX-License-Identifier: MIT
// Maps system calls and kernel functions to activities. Function names are those of Linux 5.10 and later. A
// call without a rule becomes "kernel/CALL".
#include "kernel_side.h"

#include <algorithm>
#include <cstring>

#include "recording/owners.h"

namespace forktail::analysis
{

namespace
{

struct CallRule {
	const char *call;
	const char *on_socket; // also for calls that take no other kind
	const char *on_disk;
	const char *on_other;
};

constexpr const char *kSend = "kernel/send", *kReceive = "kernel/receive", *kPoll = "kernel/poll",
		     *kAccept = "kernel/accept", *kClose = "kernel/close", *kConnection = "kernel/connection",
		     *kMemory = "kernel/memory", *kFutex = "kernel/futex", *kFileRead = "kernel/file-read",
		     *kFileWrite = "kernel/file-write", *kFileMeta = "kernel/file-meta",
		     *kPipe = "kernel/pipe";

const CallRule kCallRules[] = {
    {"write", kSend, kFileWrite, kPipe},
    {"writev", kSend, kFileWrite, kPipe},
    {"sendto", kSend, kSend, kSend},
    {"sendmsg", kSend, kSend, kSend},
    {"sendmmsg", kSend, kSend, kSend},
    {"sendfile", kSend, kFileWrite, kPipe},
    {"pwrite64", kFileWrite, kFileWrite, kFileWrite},
    {"pwritev", kFileWrite, kFileWrite, kFileWrite},
    {"ftruncate", kFileWrite, kFileWrite, kFileWrite},
    {"fallocate", kFileWrite, kFileWrite, kFileWrite},

    {"read", kReceive, kFileRead, kPipe},
    {"readv", kReceive, kFileRead, kPipe},
    {"recvfrom", kReceive, kReceive, kReceive},
    {"recvmsg", kReceive, kReceive, kReceive},
    {"recvmmsg", kReceive, kReceive, kReceive},
    {"pread64", kFileRead, kFileRead, kFileRead},
    {"preadv", kFileRead, kFileRead, kFileRead},

    {"epoll_wait", kPoll, kPoll, kPoll},
    {"epoll_pwait", kPoll, kPoll, kPoll},
    {"epoll_pwait2", kPoll, kPoll, kPoll},
    {"poll", kPoll, kPoll, kPoll},
    {"ppoll", kPoll, kPoll, kPoll},
    {"select", kPoll, kPoll, kPoll},
    {"pselect6", kPoll, kPoll, kPoll},

    {"accept", kAccept, kAccept, kAccept},
    {"accept4", kAccept, kAccept, kAccept},
    {"close", kClose, kClose, kClose},
    {"shutdown", kClose, kClose, kClose},
    {"epoll_ctl", kConnection, kConnection, kConnection},
    {"socket", kConnection, kConnection, kConnection},
    {"connect", kConnection, kConnection, kConnection},
    {"getpeername", kConnection, kConnection, kConnection},
    {"getsockname", kConnection, kConnection, kConnection},
    {"getsockopt", kConnection, kConnection, kConnection},
    {"setsockopt", kConnection, kConnection, kConnection},

    {"mmap", kMemory, kMemory, kMemory},
    {"munmap", kMemory, kMemory, kMemory},
    {"mremap", kMemory, kMemory, kMemory},
    {"mprotect", kMemory, kMemory, kMemory},
    {"madvise", kMemory, kMemory, kMemory},
    {"brk", kMemory, kMemory, kMemory},

    {"futex", kFutex, kFutex, kFutex},

    {"open", kFileMeta, kFileMeta, kFileMeta},
    {"openat", kFileMeta, kFileMeta, kFileMeta},
    {"stat", kFileMeta, kFileMeta, kFileMeta},
    {"fstat", kFileMeta, kFileMeta, kFileMeta},
    {"lstat", kFileMeta, kFileMeta, kFileMeta},
    {"newfstatat", kFileMeta, kFileMeta, kFileMeta},
    {"statx", kFileMeta, kFileMeta, kFileMeta},
    {"rename", kFileMeta, kFileMeta, kFileMeta},
    {"renameat", kFileMeta, kFileMeta, kFileMeta},
    {"renameat2", kFileMeta, kFileMeta, kFileMeta},
    {"unlink", kFileMeta, kFileMeta, kFileMeta},
    {"unlinkat", kFileMeta, kFileMeta, kFileMeta},
    {"getdents64", kFileMeta, kFileMeta, kFileMeta},
};

struct FunctionRule {
	const char *function;
	const char *activity;
};

// For kernel stacks. The first rule with a function in the stack counts, so a protocol comes before its
// callers, and inner functions before outer ones.
const FunctionRule kFunctions[] = {
    {"tcp_sendmsg", kSend},
    {"unix_stream_sendmsg", kSend},
    {"sock_sendmsg", kSend},
    {"sock_write_iter", kSend},
    {"tcp_recvmsg", kReceive},
    {"unix_stream_recvmsg", kReceive},
    {"unix_stream_read_generic", kReceive},
    {"sock_recvmsg", kReceive},
    {"sock_read_iter", kReceive},
    {"inet_csk_accept", kAccept},
    {"unix_accept", kAccept},
    {"do_accept", kAccept},
    {"tcp_close", kClose},
    {"unix_release", kClose},
    {"sock_close", kClose},
    {"pipe_write", kPipe},
    {"pipe_read", kPipe},
    {"eventfd_write", kPipe},
    {"eventfd_read", kPipe},
};

// The activity of a call on a file of this kind.
const char *ActivityOn(const CallRule &rule, uint8_t file)
{
	switch (file) {
	case FT_SAMPLE_FILE_SOCKET:
		return rule.on_socket;
	case FT_SAMPLE_FILE_DISK:
		return rule.on_disk;
	case FT_SAMPLE_FILE_OTHER:
		return rule.on_other;
	default: // unknown kind: only if sockets and disks have the same activity
		return rule.on_socket == rule.on_disk ? rule.on_socket : nullptr;
	}
}

} // namespace

KernelWork KernelWorkOf(const KernelSide &side, const std::vector<std::string> &stack)
{
	for (const FunctionRule &rule : kFunctions)
		if (std::find(stack.begin(), stack.end(), rule.function) != stack.end())
			return {rule.activity, rule.function};
	if (!side.in_kernel || side.call.empty())
		return {};
	for (const CallRule &rule : kCallRules)
		if (side.call == rule.call)
			if (const char *activity = ActivityOn(rule, side.file))
				return {activity, side.call + "()"};
	return {"kernel/" + side.call, side.call + "()"};
}

} // namespace forktail::analysis
