/* SPDX-License-Identifier: MIT */
/* A sentence must not end up behind the line of progress, so that is ended first. The exit status follows
 * the sentences: the environment's fault outweighs a limit that wasn't kept. */
#include "complain.h"

#include "common/text/visible.h"

void end_progress(struct run *r)
{
	if (r->progress_open)
		fputc('\n', stderr);
	r->progress_open = false;
}

void complain(struct run *r, const char *text)
{
	end_progress(r);
	fputs("forktail-load: ", stderr);
	put_visible(stderr, text); /* a server may have had a part in it */
	fputc('\n', stderr);
	r->status = EXIT_ENVIRONMENT;
}

void complain_of_limit(struct run *r, const char *text)
{
	int status = r->status;

	complain(r, text);
	r->status = status ? status : EXIT_NO;
}
