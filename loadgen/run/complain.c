/* SPDX-License-Identifier: MIT */
/* A sentence must not follow the progress line on the same line, so that is ended first. The exit status
 * follows the sentences: an error of the environment takes precedence over an exceeded limit. */
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
	put_visible(stderr, text); /* it may contain text from a server */
	fputc('\n', stderr);
	r->status = EXIT_ENVIRONMENT;
}

void complain_of_limit(struct run *r, const char *text)
{
	int status = r->status;

	complain(r, text);
	r->status = status ? status : EXIT_NO;
}
