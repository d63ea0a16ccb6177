/* SPDX-License-Identifier: MIT */
/* The recorder's thread decides when a segment begins. The writer's thread does the work that waits for a
 * disk (creating, sealing and deleting files), in the requested order, so the list of segments belongs to it
 * once it runs. A segment's age is the recorded time after it. For segments found at startup, the age is
 * estimated from their modification times, so none of them has to be read. */
#include "loader/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "loader/system.h"

#define SECOND_NS 1000000000ull
#define SEGMENT_NS (5 * SECOND_NS)
#define LONGEST_SEGMENT_NS (60 * SECOND_NS)
#define SEGMENT_BYTES (8ull << 20)
/* A segment is at most this part of the ring, because whole segments are deleted. */
enum { LEAST_SEGMENTS = 8 };
/* The number of segments to aim at: a ring of a week must not have a hundred thousand files. */
enum { SEGMENTS_AIMED_AT = 720 };

enum { NAME_BYTES = 40 };

struct segment {
	uint64_t number, bytes, lasts_ns;
};

struct segments {
	struct ring_limits limits;
	struct file_owner user;
	int directory;
	uint64_t segment_ns, segment_bytes; /* when the next segment is due */
	uint64_t number, began_ns;	    /* of the segment being written */
	uint32_t begun;			    /* number of files requested from the writer */
	uint64_t tried_ns;		    /* when continuing after an error was last tried */
	/* Owned by the writer's thread: sealed segments, oldest first. */
	struct segment *all;
	size_t count, room;
	uint64_t bytes;
};

/* Reads a number that sudo left in the environment. */
static bool number_of(const char *variable, uint32_t *number)
{
	const char *text = getenv(variable);
	uint64_t n;
	if (!text || !parse_count(text, 0, UINT32_MAX - 1, &n))
		return false;
	*number = (uint32_t)n;
	return true;
}

int file_owner_find(const char *name, struct file_owner *user)
{
	uint32_t uid, gid;
	*user = (struct file_owner){geteuid(), getegid()};
	if (!name && geteuid() == 0 && number_of("SUDO_UID", &uid) && number_of("SUDO_GID", &gid)) {
		*user = (struct file_owner){uid, gid};
		return 0;
	}
	const struct passwd *p = getpwnam(name ? name : "forktail");
	if (!p)
		return name ? -ENOENT : 0;
	if (geteuid() == 0 || name)
		*user = (struct file_owner){p->pw_uid, p->pw_gid};
	return 0;
}

/* Creates the directory, or opens the existing one. */
static int open_directory(const char *path, const struct file_owner *user, const char **why)
{
	bool made = mkdir(path, 0700) == 0;
	int fd, err = made || errno == EEXIST ? 0 : -errno;
	struct stat st;
	if (err) {
		*why = strerror(-err);
		return err;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	err = fd < 0 || fstat(fd, &st) ? -errno : 0;
	/* In this order: afterwards only CAP_FOWNER could change the mode. */
	if (!err && made && (fchmod(fd, 0700) || fchown(fd, user->uid, user->gid)))
		err = -errno;
	*why = err ? strerror(-err) : NULL;
	if (!err && !made && st.st_uid != user->uid) {
		err = -EACCES;
		*why = "it belongs to a user other than the owner of the files (--user)";
	} else if (!err && !made && st.st_mode & 077) {
		err = -EACCES;
		*why = "other users have access to it. Run chmod 0700 on it";
	} else if (!err && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		err = -EWOULDBLOCK;
		*why = "another recorder is writing to it";
	}
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

static void name_of(uint64_t number, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "segment-%010" PRIu64 ".forktail", number);
}

/* The number in a segment's name, or 0 if it is not a segment. */
static uint64_t number_in(const char *name)
{
	char again[NAME_BYTES];
	uint64_t number;
	if (sscanf(name, "segment-%" SCNu64 ".forktail", &number) != 1)
		return 0;
	name_of(number, again);
	return strcmp(name, again) == 0 ? number : 0;
}

static bool add(struct segments *r, const struct segment *s)
{
	if (!grow(&r->all, &r->room, r->count, sizeof *r->all))
		return false;
	r->all[r->count++] = *s;
	r->bytes += s->bytes;
	return true;
}

static int by_number(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Finds existing segments. `lasts_ns` is first the time each was last written to, then the time since the
 * previous one. Without a recorder no time is recorded, so it is at most the length of a segment. */
static int find_segments(struct segments *r)
{
	int fd = openat(r->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return -errno;
	for (struct dirent *e; (e = readdir(d));) {
		struct segment s = {.number = number_in(e->d_name)};
		struct stat st;
		if (!s.number || fstatat(r->directory, e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		s.bytes = (uint64_t)st.st_size;
		s.lasts_ns = (uint64_t)st.st_mtim.tv_sec * SECOND_NS + (uint64_t)st.st_mtim.tv_nsec;
		if (!add(r, &s)) {
			closedir(d);
			return -ENOMEM;
		}
	}
	closedir(d);
	if (r->count)
		qsort(r->all, r->count, sizeof *r->all, by_number);
	for (uint64_t i = 0, before = 0; i < r->count; i++) {
		uint64_t written = r->all[i].lasts_ns, since = written > before ? written - before : 0;
		r->all[i].lasts_ns = since < r->segment_ns ? since : r->segment_ns;
		before = written;
	}
	r->number = r->count ? r->all[r->count - 1].number : 0;
	return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int segments_open(struct segments **out, const char *path, const struct ring_limits *limits,
		  const struct file_owner *user, const char **why)
{
	struct segments *r = calloc(1, sizeof *r);
	*out = NULL;
	*why = strerror(ENOMEM);
	if (!r)
		return -ENOMEM;
	r->limits = *limits;
	r->user = *user;
	r->segment_ns = limits->age_ns / SEGMENTS_AIMED_AT;
	r->segment_ns = r->segment_ns < SEGMENT_NS ? SEGMENT_NS : least(r->segment_ns, LONGEST_SEGMENT_NS);
	r->segment_ns = least(r->segment_ns, limits->age_ns / LEAST_SEGMENTS);
	r->segment_bytes = least(SEGMENT_BYTES, limits->bytes / LEAST_SEGMENTS);
	r->directory = open_directory(path, user, why);
	int err = r->directory < 0 ? r->directory : find_segments(r);
	if (err) {
		if (r->directory >= 0)
			*why = strerror(-err);
		segments_close(r);
		return err;
	}
	*out = r;
	return 0;
}

void segments_close(struct segments *r)
{
	if (!r)
		return;
	if (r->directory >= 0)
		close(r->directory);
	free(r->all);
	free(r);
}

int segments_become_owner(const struct segments *r)
{
	setfsgid(r->user.gid);
	setfsuid(r->user.uid);
	/* These functions return no error. Setting an impossible id changes nothing and returns the current
	 * one. */
	return (uid_t)setfsuid((uid_t)-1) == r->user.uid && (gid_t)setfsgid((gid_t)-1) == r->user.gid
		   ? 0
		   : -EPERM;
}

static void remove_oldest(struct segments *r)
{
	char name[NAME_BYTES];
	name_of(r->all[0].number, name);
	/* A segment that was deleted by another process counts as deleted. */
	if (unlinkat(r->directory, name, 0)) {
	}
	r->bytes -= r->all[0].bytes;
	memmove(r->all, r->all + 1, --r->count * sizeof *r->all);
}

/* Deletes segments that are no longer needed because newer ones alone cover the limits. The segment being
 * written may still grow to its maximum size. */
static void evict(struct segments *r)
{
	uint64_t newer_ns = 0;
	for (size_t i = 1; i < r->count; i++)
		newer_ns += r->all[i].lasts_ns;
	while (r->count && (newer_ns >= r->limits.age_ns || r->bytes + r->segment_bytes > r->limits.bytes)) {
		newer_ns -= r->count > 1 ? r->all[1].lasts_ns : 0;
		remove_oldest(r);
	}
}

/* Work after a segment was sealed. */
struct sealed {
	struct segments *ring;
	struct segment segment;
};

/* A job for the writer's thread. */
static void take_sealed(void *arg)
{
	struct sealed *s = arg;
	struct segments *r = s->ring;
	char name[NAME_BYTES];
	struct stat st;
	name_of(s->segment.number, name);
	if (fstatat(r->directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0) { /* else it was not created */
		s->segment.bytes = (uint64_t)st.st_size;
		add(r, &s->segment);
	}
	evict(r);
	free(s);
}

static void make_room(void *arg)
{
	struct segments *r = arg;
	if (r->count)
		remove_oldest(r);
}

static bool is_full(int err)
{
	return err == -ENOSPC || err == -EDQUOT;
}

int segments_begin(struct segments *r, struct ft_writer **out, const char *manifest, uint64_t now_ns)
{
	char name[NAME_BYTES];
	int err;
	evict(r); /* the limits may have changed */
	name_of(++r->number, name);
	/* Takes the user's file-system identity for now only, so that the user owns the files: other things
	 * still have to be opened. */
	setfsgid(r->user.gid);
	setfsuid(r->user.uid);
	do
		err = ft_writer_open_first(out, r->directory, name, manifest);
	while (is_full(err) && r->count && (remove_oldest(r), true));
	setfsuid(geteuid());
	setfsgid(getegid());
	r->began_ns = now_ns;
	r->begun = 1;
	return err;
}

bool segments_due(const struct segments *r, const struct ft_writer *w, uint64_t now_ns)
{
	/* Until the writer has begun the latest segment, its byte count is that of the previous one. A disk
	 * that does not respond gets no more requests. */
	return ft_writer_files(w) == r->begun &&
	       (now_ns - r->began_ns >= r->segment_ns || ft_writer_bytes(w) >= r->segment_bytes);
}

int segments_next(struct segments *r, struct ft_writer *w, const char *manifest, const char *summary,
		  uint64_t now_ns)
{
	char name[NAME_BYTES];
	struct sealed *s = malloc(sizeof *s);
	if (!s)
		return -ENOMEM;
	*s = (struct sealed){r, {.number = r->number, .lasts_ns = now_ns - r->began_ns}};
	name_of(r->number + 1, name);
	int err = ft_writer_next(w, r->directory, name, manifest, summary);
	if (err) {
		free(s);
		return err;
	}
	r->number++;
	r->began_ns = now_ns;
	r->begun++;
	if (ft_writer_then(w, take_sealed, s))
		free(s); /* it stays there until the ring is opened again */
	return 0;
}

bool segments_recover(struct segments *r, struct ft_writer *w, uint64_t now_ns)
{
	int err = ft_writer_error(w);
	if (!err || now_ns - r->tried_ns < SECOND_NS)
		return false;
	r->tried_ns = now_ns;
	if (is_full(err))
		ft_writer_then(w, make_room, r);
	return true;
}

uint64_t segments_number(const struct segments *r)
{
	return r->number;
}

const struct file_owner *segments_owner(const struct segments *r)
{
	return &r->user;
}

int segments_directory(const struct segments *r)
{
	return r->directory;
}

size_t segments_count(const struct segments *r)
{
	return r->count;
}

uint64_t segments_bytes(const struct segments *r)
{
	return r->bytes;
}
