/* SPDX-License-Identifier: GPL-2.0-only */
/* The file that a system call works on: the file behind a task's descriptor, and its kind. */
#ifndef FORKTAIL_BPF_FILES_H
#define FORKTAIL_BPF_FILES_H

#include "recording/owners.h"
#include "types.h"

enum {
	FILE_KIND = 0170000,
	SOCKET = 0140000,
	FIFO = 0010000,
	CHARACTER_DEVICE = 0020000,
	REGULAR = 0100000,
	BLOCK_DEVICE = 0060000,
	DIRECTORY = 0040000
};

static __always_inline struct file *file_of(struct task_struct *task, u64 fd)
{
	struct file **table = BPF_CORE_READ(task, files, fdt, fd), *file = NULL;
	if (!table || fd > 1 << 20)
		return NULL;
	bpf_probe_read_kernel(&file, sizeof file, &table[fd]);
	return file;
}

static __always_inline enum ft_sample_file file_kind(struct file *file)
{
	if (!file)
		return FT_SAMPLE_FILE_UNKNOWN;
	switch (BPF_CORE_READ(file, f_inode, i_mode) & FILE_KIND) {
	case SOCKET:
		return FT_SAMPLE_FILE_SOCKET;
	case REGULAR:
	case BLOCK_DEVICE:
	case DIRECTORY:
		return FT_SAMPLE_FILE_DISK;
	default:
		return FT_SAMPLE_FILE_OTHER;
	}
}

#endif
